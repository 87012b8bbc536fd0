/* machine_memory.c - which memory a wave may access.
 *
 * Every byte of every access lies in a live block of the device's table, within the size the
 * program asked for. Each thread remembers a few blocks for the length of the launch, because waves
 * return to the same buffers; a block that is freed while a kernel runs is unmapped, so accesses to
 * it fault all the same. */
#include "isa/race.h"
#include "soft/runtime/heap.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/machine/machine_copies.h"
#include "soft/runtime/machine/machine_count.h"
#include "soft/runtime/machine/machine_frame.h"
#include "soft/runtime/machine/machine_through.h"
#include "soft/runtime/machine/machine_touch.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/settings.h"

#include <string.h>

/* An instruction mostly returns to the buffer it was in before. */
static const struct machine_range *recall(struct machine_worker *w, const struct isa_insn *insn,
                                          uint64_t address) {
    uint8_t *hint = &w->hints[(uintptr_t)insn / sizeof *insn % MACHINE_HINTS];
    const struct machine_range *r = &w->ranges[*hint];
    if (address - r->start < r->bytes)
        return r;
    for (unsigned i = 0; i < w->range_count; i++)
        if (address - w->ranges[i].start < w->ranges[i].bytes) {
            *hint = (uint8_t)i;
            return &w->ranges[i];
        }
    return NULL;
}

/* A place for one more; the oldest if there is none. */
static struct machine_range *next_range(struct machine_worker *w) {
    unsigned i = w->next_range++ % MACHINE_RANGES;
    if (w->range_count <= i)
        w->range_count = i + 1;
    return &w->ranges[i];
}

/* Memory that the program has made, or the variables of the kernel's module; the rest is the
 * runtime's own. */
static bool is_the_programs(const struct machine_launch *l, const struct soft_block *b) {
    return b->kind != SOFT_GLOBAL || l->machine->object - b->addr < b->size;
}

/* A launch that is run again goes to copies. */
static bool reach_copy(const struct machine_again *again, struct machine_range *r,
                       const struct soft_block *b) {
    unsigned char *copy = machine_copies_reach(again->copies, b);
    if (copy)
        r->host = copy + (r->start - b->addr);
    else
        r->bytes = 0;
    return copy;
}

static const struct machine_range *look_up(struct machine_worker *w, const struct isa_insn *insn,
                                           uint64_t address) {
    struct soft_block b;
    const struct machine_range *known = recall(w, insn, address);
    if (known)
        return known;
    if (!soft_memory_find(address, &b) || b.state != SOFT_LIVE)
        return NULL;
    struct soft_heap_piece piece = { .start = b.addr, .bytes = b.size };
    bool of_heap = soft_heap_find(address, &piece);
    if (of_heap && (piece.freed || address - piece.start >= piece.bytes))
        return NULL;
    struct machine_range *r = of_heap ? &w->piece : next_range(w);
    *r = (struct machine_range){ piece.start, piece.bytes, soft_reach(piece.start), NULL,
                                 is_the_programs(w->launch, &b) };
    bool is_scratch = w->scratch && w->scratch->addr == b.addr;
    if (w->touches && !is_scratch)
        r->touch = machine_touch_of(w->touches, &b);
    if (w->launch->again && !is_scratch)
        return reach_copy(w->launch->again, r, &b) ? r : NULL;
    return r;
}

/* Whether some of the bytes lie outside the memory of the argument that the instruction goes
 * through. */
static bool is_astray(const struct machine_worker *w, const struct isa_access *a, uint64_t address,
                      uint64_t bytes) {
    const struct machine_own *own = machine_through_own(w->launch, a);
    return own && own->bytes && a->space == ISA_SPACE_GLOBAL &&
           (address - own->start >= own->bytes || bytes > own->bytes - (address - own->start));
}

static void *span(void *context, const struct isa_access *a, uint64_t address, uint64_t bytes) {
    const struct machine_range *r = look_up(context, a->insn, address);
    if (!r || bytes > r->bytes - (address - r->start) || is_astray(context, a, address, bytes))
        return NULL;
    return r->host + (address - r->start);
}

/* The range that all lanes are in, each where it should be, as they mostly are; NULL: they may not
 * be. *row: they access the bytes from *first on one after the other. */
static const struct machine_range *look_up_all(struct machine_worker *w, const struct isa_access *a,
                                               const uint64_t address[ISA_LANES], uint64_t *first,
                                               bool *row) {
    uint64_t low = UINT64_MAX, high = 0, count = 0;
    uint64_t begin = a->lanes ? address[__builtin_ctzll(a->lanes)] : 0;
    *row = true;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        uint64_t at = address[__builtin_ctzll(left)];
        low = at < low ? at : low;
        high = at > high ? at : high;
        *row &= at == begin + count++ * a->bytes;
    }
    const struct machine_range *r = a->lanes ? look_up(w, a->insn, low) : NULL;
    uint64_t bytes = high - low + a->bytes;
    *first = low;
    return !r || bytes > r->bytes - (low - r->start) || is_astray(w, a, low, bytes) ? NULL : r;
}

static void set_hosts(const struct machine_range *r, const struct isa_access *a,
                      const uint64_t address[ISA_LANES], void *host[ISA_LANES]) {
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        host[l] = r->host + (address[l] - r->start);
    }
}

static bool lanes(void *context, const struct isa_access *a, const uint64_t address[ISA_LANES],
                  void *host[ISA_LANES], unsigned *lane, uint64_t *at) {
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        const struct machine_range *r = look_up(context, a->insn, address[l]);
        uint64_t inside = r ? r->bytes - (address[l] - r->start) : 0;
        if (!r || inside < a->bytes) {
            *lane = l;
            *at = address[l] + inside; /* the first byte that is not there */
            return false;
        }
        host[l] = r->host + (address[l] - r->start);
        if (is_astray(context, a, address[l], a->bytes))
            machine_through_tell(context, a, l, address[l]);
    }
    return true;
}

/* ---- the same, with an account of what is touched -------------------------------------------- */

static void *touching_row(void *context, const struct isa_access *a, uint64_t address,
                          uint64_t bytes) {
    const struct machine_range *r = look_up(context, a->insn, address);
    if (!r || bytes > r->bytes - (address - r->start) || is_astray(context, a, address, bytes))
        return NULL;
    if (r->touch)
        machine_touch_mark(r->touch, address, bytes, a->kind);
    return r->host + (address - r->start);
}

/* Which bytes of a span are touched only lanes() sees; one element is all of it. */
static void *touching_span(void *context, const struct isa_access *a, uint64_t address,
                           uint64_t bytes) {
    if (a->space == ISA_SPACE_SCRATCH)
        return span(context, a, address, bytes);
    return bytes == a->bytes ? touching_row(context, a, address, bytes) : NULL;
}

static void touch_all(const struct machine_range *r, const struct isa_access *a,
                      const uint64_t address[ISA_LANES], uint64_t first, bool row) {
    if (!r->touch)
        return;
    if (row) {
        machine_touch_mark(r->touch, first, (uint64_t)__builtin_popcountll(a->lanes) * a->bytes,
                           a->kind);
        return;
    }
    for (uint64_t left = a->lanes; left; left &= left - 1)
        machine_touch_mark(r->touch, address[__builtin_ctzll(left)], a->bytes, a->kind);
}

static bool touching_lanes(void *context, const struct isa_access *a,
                           const uint64_t address[ISA_LANES], void *host[ISA_LANES], unsigned *lane,
                           uint64_t *at) {
    uint64_t first;
    bool row;
    const struct machine_range *all = look_up_all(context, a, address, &first, &row);
    if (all) {
        set_hosts(all, a, address, host);
        touch_all(all, a, address, first, row);
        return true;
    }
    if (!lanes(context, a, address, host, lane, at))
        return false;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        const struct machine_range *r = look_up(context, a->insn, address[l]);
        if (r && r->touch)
            machine_touch_mark(r->touch, address[l], a->bytes, a->kind);
    }
    return true;
}

/* ---- the same, with checks that see every lane ----------------------------------------------- */

/* Nothing but the whole of a wave's scratch, of which watching_scratch() says more. */
static void *watching_span(void *context, const struct isa_access *a, uint64_t address,
                           uint64_t bytes) {
    uint64_t all = (uint64_t)a->wave->scratch_bytes * ISA_LANES;
    return a->space == ISA_SPACE_SCRATCH && bytes == all ? span(context, a, address, bytes) : NULL;
}

static bool watching_lanes(void *context, const struct isa_access *a,
                           const uint64_t address[ISA_LANES], void *host[ISA_LANES], unsigned *lane,
                           uint64_t *at) {
    struct machine_worker *w = context;
    struct isa_access seen = *a;
    if (!touching_lanes(context, a, address, host, lane, at))
        return false;
    if (a->space == ISA_SPACE_SCRATCH) {
        machine_check_scratch(w, a, -1, address);
        return true;
    }
    const struct machine_range *r = NULL; /* of the last lane */
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        if (!r || address[l] - r->start >= r->bytes)
            r = look_up(w, a->insn, address[l]);
        if (!r || !r->is_the_programs)
            seen.lanes &= ~(UINT64_C(1) << l);
    }
    if (seen.lanes)
        machine_check_access(w, &seen, address, host);
    if (seen.lanes && machine_count_is_on())
        machine_count_memory(&seen, address);
    return true;
}

/* Dword d of lane l is at (d * 64 + l) * 4. */
static void watching_scratch(void *context, const struct isa_access *a,
                             const uint32_t offset[ISA_LANES]) {
    struct isa_access piece = *a;
    uint64_t address[ISA_LANES];
    for (uint32_t done = 0; done < a->bytes; done += 4) {
        piece.bytes = a->bytes - done < 4 ? a->bytes - done : 4;
        for (uint32_t l = 0; l < ISA_LANES; l++)
            address[l] = a->wave->scratch_base +
                         ((uint64_t)((offset[l] + done) / 4) * ISA_LANES + l) * 4 +
                         (offset[l] + done) % 4;
        machine_check_scratch(context, &piece, (int)(done / 4), address);
    }
}

static bool watching_lds(void *context, const struct isa_access *a,
                         const uint32_t offset[ISA_LANES], unsigned *lane, uint64_t *at) {
    uint64_t address[ISA_LANES];
    void *host[ISA_LANES];
    (void)lane, (void)at;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        address[l] = offset[l];
        host[l] = a->wave->group->lds + offset[l];
    }
    machine_check_access(context, a, address, host);
    if (machine_count_is_on())
        machine_count_lds(a, offset);
    return true;
}

/* ---- GRETA_SOFT_CHECK=off: whatever is mapped ------------------------------------------------ */

static void *unchecked_span(void *context, const struct isa_access *a, uint64_t address,
                            uint64_t bytes) {
    (void)context, (void)a, (void)bytes;
    return soft_reach(address);
}

static bool unchecked_lanes(void *context, const struct isa_access *a,
                            const uint64_t address[ISA_LANES], void *host[ISA_LANES],
                            unsigned *lane, uint64_t *at) {
    (void)context, (void)lane, (void)at;
    for (uint64_t left = a->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctzll(left);
        host[l] = soft_reach(address[l]);
    }
    return true;
}

void machine_memory_begin(struct machine_worker *w, struct machine_launch *l) {
    w->touches = l->touches;
    w->launch = l;
    w->memory = (struct isa_memory){ .context = w, .span = span, .row = span, .lanes = lanes };
    if (!(soft_settings()->checks & SOFT_CHECK_BOUNDS)) {
        w->memory.span = w->memory.row = unchecked_span;
        w->memory.lanes = unchecked_lanes;
    } else if (l->again ? l->again->follows
                        : (l->race && !isa_race_is_full(l->race)) ||
                              soft_settings()->checks & SOFT_CHECK_INIT || machine_count_is_on()) {
        w->memory.span = watching_span;
        w->memory.row = NULL;
        w->memory.lanes = watching_lanes;
        w->memory.lds = watching_lds;
        w->memory.scratch = watching_scratch;
    } else if (w->touches) {
        w->memory.span = touching_span;
        w->memory.row = touching_row;
        w->memory.lanes = touching_lanes;
    }
    if (l->machine->frame && !l->again)
        w->memory.frame = machine_frame_check;
}

void machine_memory_forget(struct machine_worker *w) {
    memset(w->ranges, 0, w->range_count * sizeof w->ranges[0]);
    w->range_count = w->next_range = 0;
}
