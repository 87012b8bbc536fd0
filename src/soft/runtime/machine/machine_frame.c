/* machine_frame.c - see machine_frame.h, and isa/frame.h for how it is known that an instruction is
 * for one variable only. Where variables are comes from the debug information, so nothing is
 * checked in code without any.
 *
 * Variables that lie upon each other, because they are not needed at the same time, are one. An
 * instruction remembers the first of them that it came into; if it comes into another one as well,
 * one of the two is a mistake. Which one is unknown, so both are reported. */
#include "soft/runtime/machine/machine_frame.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/lines.h"
#include "isa/frame.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/settings.h"

enum { LOCALS_MAX = 200, NAME_BYTES = 64 };

struct local {
    uint64_t start, end, element;
    unsigned group; /* from 1, of those that lie upon each other */
    char name[NAME_BYTES];
};

struct soft_frame {
    uint8_t *found;        /* by dword of the code: enum isa_frame_found */
    _Atomic uint8_t *came; /* by dword, the group that it came into first; 0: none yet */
    size_t words;
    unsigned count;
    struct local local[]; /* by start */
};

/* ---- making ---------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b) {
    const struct local *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted, and in groups. */
static unsigned arrange(struct local *local, unsigned count) {
    unsigned groups = 0;
    uint64_t end = 0;
    qsort(local, count, sizeof *local, by_start);
    for (unsigned i = 0; i < count; i++) {
        if (!i || local[i].start >= end)
            groups++;
        end = local[i].end > end ? local[i].end : end;
        local[i].group = groups;
    }
    return groups;
}

static unsigned read_locals(struct local *out, const void *image, size_t bytes,
                            const char *kernel) {
    struct codeobj_local found[LOCALS_MAX];
    codeobj_lines *lines = NULL;
    if (codeobj_lines_open(&lines, image, bytes, NULL) != RC_OK)
        return 0;
    unsigned count = codeobj_lines_locals(lines, kernel, found, LOCALS_MAX);
    count = count <= LOCALS_MAX ? count : 0;
    for (unsigned i = 0; i < count; i++) {
        out[i] = (struct local){ .start = found[i].offset,
                                 .end = found[i].offset + found[i].bytes,
                                 .element = found[i].element };
        snprintf(out[i].name, sizeof out[i].name, "%s", found[i].name ? found[i].name : "?");
    }
    codeobj_lines_close(&lines);
    return count;
}

void soft_machine_find_frame(struct soft_machine *m, uint64_t end, const void *image,
                             size_t bytes) {
    struct local local[LOCALS_MAX];
    if (!(soft_settings()->checks & SOFT_CHECK_BOUNDS) || !m->kernel->private_bytes ||
        end <= m->entry)
        return;
    unsigned count = read_locals(local, image, bytes, m->kernel->name);
    if (arrange(local, count) < 2)
        return;
    struct soft_frame *f = calloc(1, sizeof *f + count * sizeof *local);
    const struct isa_frame_kernel k = { .entry = m->entry,
                                        .end = end,
                                        .skip = m->start.entry_skip,
                                        .zero_is_null = local[0].start > 0 };
    if (!f)
        return;
    m->frame = f;
    memcpy(f->local, local, count * sizeof *local);
    f->count = count;
    f->words = (size_t)(end - m->entry) / 4;
    f->came = calloc(f->words + 1, sizeof *f->came);
    f->found = f->came ? isa_frame_find(m->code, &k) : NULL;
    if (!f->found)
        soft_machine_forget_frame(m);
}

void soft_machine_forget_frame(struct soft_machine *m) {
    struct soft_frame *f = m->frame;
    m->frame = NULL;
    if (!f)
        return;
    free(f->found);
    free(f->came);
    free(f);
}

/* ---- checking -------------------------------------------------------------------------------- */

static const struct local *local_at(const struct soft_frame *f, uint64_t offset) {
    for (unsigned i = 0; i < f->count; i++)
        if (offset >= f->local[i].start && offset < f->local[i].end)
            return &f->local[i];
    return NULL;
}

static const struct local *first_of(const struct soft_frame *f, unsigned group) {
    unsigned i = 0;
    while (i < f->count && f->local[i].group != group)
        i++;
    return i < f->count ? &f->local[i] : NULL;
}

/* "a[40]", or the name of what is no array. */
static int write_element(char *out, size_t room, const struct local *l, uint64_t offset) {
    int64_t from = (int64_t)offset - (int64_t)l->start, element = (int64_t)l->element;
    if (!element)
        return snprintf(out, room, "%s%+lld", l->name, (long long)from);
    return snprintf(out, room, "%s[%lld]", l->name,
                    (long long)((from - (from < 0 ? element - 1 : 0)) / element));
}

static void tell(struct machine_worker *w, const struct isa_access *a, unsigned lane,
                 uint64_t offset, const struct local *meant, const struct local *met) {
    char text[2 * NAME_BYTES + 64];
    int length = write_element(text, sizeof text / 2, meant, offset);
    length += snprintf(text + length, sizeof text - (size_t)length, " = ");
    write_element(text + length, sizeof text - (size_t)length, met, offset);
    struct greta_soft_caught c = { .kind = GRETA_SOFT_CAUGHT_ARRAYS,
                                   .space = GRETA_SOFT_SPACE_SCRATCH,
                                   .address = offset,
                                   .bytes = a->bytes,
                                   .all = met->start < meant->start };
    c.at[0].pc = isa_wave_pc(a->wave) - 4u * a->insn->words;
    c.at[0].kind = a->kind == ISA_LOAD ? GRETA_SOFT_TOUCH_READ : GRETA_SOFT_TOUCH_WRITE;
    c.at[1].place = text;
    machine_check_tell(w, a->wave, lane, &c);
}

/* One byte of one lane. */
static void check_byte(struct machine_worker *w, const struct isa_access *a, unsigned lane,
                       uint64_t offset, uint64_t word) {
    const struct soft_frame *f = w->launch->machine->frame;
    const struct local *met = local_at(f, offset);
    uint8_t group = 0;
    if (!met)
        return;
    if (atomic_compare_exchange_strong_explicit(&f->came[word], &group, (uint8_t)met->group,
                                                memory_order_relaxed, memory_order_relaxed) ||
        group == met->group)
        return;
    const struct local *meant = first_of(f, group), *there = first_of(f, met->group);
    uint64_t apart =
        meant->start > there->start ? meant->start - there->start : there->start - meant->start;
    if (f->found[word] == ISA_FRAME_ONE || apart > ISA_FRAME_STEP)
        tell(w, a, lane, offset, meant, met);
}

void machine_frame_check(void *context, const struct isa_access *a,
                         const uint32_t offset[ISA_LANES]) {
    struct machine_worker *w = context;
    const struct soft_frame *f = w->launch->machine->frame;
    /* The wave's program counter is at the next instruction already. */
    uint64_t word = (isa_wave_pc(a->wave) - w->launch->machine->entry) / 4 - a->insn->words;
    if (word >= f->words || !f->found[word])
        return;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(left);
        check_byte(w, a, lane, offset[lane], word);
        check_byte(w, a, lane, (uint64_t)offset[lane] + a->bytes - 1, word);
    }
}
