/* machine_touch.c - which bytes a launch read and wrote.
 *
 * Each block that a launch reaches has three bitmaps, one bit per byte: bytes read before the
 * launch itself had written them, bytes written, and bytes that atomics wrote. Reads of bytes that
 * the launch has written itself do not matter to others. Pages of the bitmaps are only touched
 * where the kernel goes. Waves of several threads set bits at once, so bits are set atomically, and
 * only where they are missing.
 *
 * At the end bits become ranges, and ranges at equal distances, such as a column of a matrix,
 * become one pattern. If a kernel touches more ranges than are worth reporting, whole blocks are
 * reported as "at most", the most scattered block first. */
#include <stdlib.h>
#include <sys/mman.h>

#include "soft/runtime/machine/machine_touch.h"
#include "soft/runtime/memory.h"

enum { WORD = 64, BLOCKS_MAX = 512, KINDS = 3 };
enum { READ, WRITTEN, ATOMIC };

struct machine_touch {
    uint64_t start, bytes;
    size_t words; /* of each bitmap */
    _Atomic uint64_t *map[KINDS];
};

struct machine_touches {
    struct spin lock;
    uint64_t frame;  /* the block of the launch's arguments */
    bool incomplete; /* memory ran out */
    size_t count;
    struct machine_touch at[BLOCKS_MAX];
};

struct machine_touches *machine_touches_open(uint64_t frame) {
    struct machine_touches *t = calloc(1, sizeof *t);
    if (t)
        t->frame = frame;
    return t;
}

void machine_touches_close(struct machine_touches **touches) {
    struct machine_touches *t = *touches;
    *touches = NULL;
    for (size_t i = 0; t && i < t->count; i++)
        munmap((void *)t->at[i].map[0], KINDS * t->at[i].words * sizeof(uint64_t));
    free(t);
}

static struct machine_touch *find(struct machine_touches *t, uint64_t start) {
    for (size_t i = 0; i < t->count; i++)
        if (t->at[i].start == start)
            return &t->at[i];
    return NULL;
}

struct machine_touch *machine_touch_of(struct machine_touches *t, const struct soft_block *b) {
    if (b->addr == t->frame)
        return NULL;
    spin_lock(&t->lock);
    struct machine_touch *found = find(t, b->addr);
    if (!found && t->count < BLOCKS_MAX) {
        size_t words = (size_t)((b->size + WORD - 1) / WORD);
        void *maps = mmap(NULL, KINDS * words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (maps != MAP_FAILED) {
            found = &t->at[t->count++];
            *found = (struct machine_touch){ .start = b->addr, .bytes = b->size, .words = words };
            for (size_t k = 0; k < KINDS; k++)
                found->map[k] = (_Atomic uint64_t *)maps + k * words;
        }
    }
    t->incomplete |= !found;
    spin_unlock(&t->lock);
    return found;
}

/* ---- setting bits ---------------------------------------------------------------------------- */

static void set(_Atomic uint64_t *word, uint64_t bits) {
    if (bits & ~atomic_load_explicit(word, memory_order_relaxed))
        atomic_fetch_or_explicit(word, bits, memory_order_relaxed);
}

static void mark_word(struct machine_touch *t, uint64_t word, uint64_t bits,
                      enum isa_access_kind kind) {
    if (kind != ISA_STORE)
        set(&t->map[READ][word],
            bits & ~atomic_load_explicit(&t->map[WRITTEN][word], memory_order_relaxed));
    if (kind != ISA_LOAD)
        set(&t->map[WRITTEN][word], bits);
    if (kind == ISA_ATOMIC)
        set(&t->map[ATOMIC][word], bits);
}

void machine_touch_mark(struct machine_touch *t, uint64_t address, uint64_t bytes,
                        enum isa_access_kind kind) {
    uint64_t at = address - t->start, end = at + bytes;
    while (at < end) {
        uint64_t word = at / WORD, bit = at % WORD, left = end - at;
        uint64_t n = left < WORD - bit ? left : WORD - bit;
        mark_word(t, word, (n == WORD ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << bit, kind);
        at += n;
    }
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* The next bit from `at` on that is (or is not) set; end if there is none. */
static uint64_t next_bit(const _Atomic uint64_t *map, uint64_t at, uint64_t end, bool is_set) {
    while (at < end) {
        uint64_t word = atomic_load_explicit(&map[at / WORD], memory_order_relaxed);
        word = (is_set ? word : ~word) >> at % WORD;
        if (word) {
            at += (uint64_t)__builtin_ctzll(word);
            return at < end ? at : end;
        }
        at += WORD - at % WORD;
    }
    return end;
}

/* Patterns as they are found, in the order of their addresses. A range joins the last pattern if
 * it is its next row, and a pattern that is complete the one before it if it is its next slice. */
struct patterns {
    struct greta_soft_touch *out;         /* NULL: they are only counted */
    size_t count, room;                   /* count: at most room + 1 */
    struct greta_soft_touch slices, rows; /* under way; bytes 0: none */
};

static void put_slices(struct patterns *p) {
    if (p->slices.bytes && p->out && p->count < p->room)
        p->out[p->count] = p->slices;
    p->count += p->slices.bytes != 0;
    p->slices.bytes = 0;
}

static void put_rows(struct patterns *p) {
    struct greta_soft_touch *s = &p->slices;
    const struct greta_soft_touch *r = &p->rows;
    bool same = s->bytes && s->bytes == r->bytes && s->pitch == r->pitch && s->rows == r->rows;
    if (same && s->slices == 1) {
        s->slice = r->address - s->address;
        s->slices = 2;
    } else if (same && r->address == s->address + s->slices * s->slice) {
        s->slices++;
    } else {
        put_slices(p);
        *s = *r;
    }
    p->rows.bytes = 0;
}

static void put_range(struct patterns *p, uint64_t address, uint64_t bytes, int kind) {
    struct greta_soft_touch *r = &p->rows;
    if (r->bytes == bytes && r->rows == 1) {
        r->pitch = address - r->address;
        r->rows = 2;
    } else if (r->bytes == bytes && address == r->address + r->rows * r->pitch) {
        r->rows++;
    } else {
        if (r->bytes)
            put_rows(p);
        *r = (struct greta_soft_touch){
            .address = address, .bytes = bytes, .kind = kind, .rows = 1, .slices = 1
        };
    }
}

/* One bitmap of one block as patterns: out holds `room`, or is NULL; returns how many there are, at
 * most room + 1. */
static size_t find_patterns(const struct machine_touch *t, const _Atomic uint64_t *map, int kind,
                            struct greta_soft_touch *out, size_t room) {
    struct patterns p = { .out = out, .room = room };
    for (uint64_t at = next_bit(map, 0, t->bytes, true); at < t->bytes && p.count <= room;) {
        uint64_t end = next_bit(map, at, t->bytes, false);
        put_range(&p, t->start + at, end - at, kind);
        at = next_bit(map, end, t->bytes, true);
    }
    if (p.rows.bytes)
        put_rows(&p);
    put_slices(&p);
    return p.count <= room ? p.count : room + 1;
}

/* From the first to the last byte. */
static struct greta_soft_touch hull(const struct machine_touch *t, const _Atomic uint64_t *map,
                                    int kind) {
    uint64_t first = next_bit(map, 0, t->bytes, true);
    size_t word = t->words;
    while (word && !atomic_load_explicit(&map[word - 1], memory_order_relaxed))
        word--;
    uint64_t last = atomic_load_explicit(&map[word - 1], memory_order_relaxed);
    uint64_t end = word * WORD - (uint64_t)__builtin_clzll(last);
    return (struct greta_soft_touch){ .address = t->start + first,
                                      .bytes = end - first,
                                      .kind = kind,
                                      .at_most = 1,
                                      .rows = 1,
                                      .slices = 1 };
}

static const int told_kinds[KINDS] = { GRETA_SOFT_TOUCH_READ, GRETA_SOFT_TOUCH_WRITE,
                                       GRETA_SOFT_TOUCH_ATOMIC };

/* How many patterns each bitmap has, MACHINE_TOUCHES_MAX + 1 if more than can be told. */
static void count_patterns(const struct machine_touches *t, size_t found[][KINDS]) {
    for (size_t i = 0; i < t->count; i++)
        for (int k = 0; k < KINDS; k++)
            found[i][k] =
                find_patterns(&t->at[i], t->at[i].map[k], told_kinds[k], NULL, MACHINE_TOUCHES_MAX);
}

/* How many are reported if a bitmap of more than `each` is reported as its hull. */
static size_t count_told(const struct machine_touches *t, size_t found[][KINDS], size_t each) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        for (int k = 0; k < KINDS; k++)
            count += found[i][k] > each ? 1 : found[i][k];
    return count;
}

static size_t tell(const struct machine_touches *t, size_t found[][KINDS], size_t each,
                   struct greta_soft_touch *out) {
    size_t count = 0;
    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < t->count; i++) {
            const struct machine_touch *b = &t->at[i];
            if (found[i][k] > each)
                out[count++] = hull(b, b->map[k], told_kinds[k]);
            else
                count += find_patterns(b, b->map[k], told_kinds[k], out + count, found[i][k]);
        }
    return count;
}

/* What atomics wrote is reported separately. */
static void take_atomics_out(struct machine_touch *b) {
    for (size_t i = 0; i < b->words; i++) {
        uint64_t bits = atomic_load_explicit(&b->map[ATOMIC][i], memory_order_relaxed);
        if (bits)
            atomic_fetch_and_explicit(&b->map[WRITTEN][i], ~bits, memory_order_relaxed);
    }
}

bool machine_touches_tell(struct machine_touches *t,
                          struct greta_soft_touch out[MACHINE_TOUCHES_MAX], size_t *count) {
    size_t found[BLOCKS_MAX][KINDS];
    if (t->incomplete)
        return false;
    for (size_t i = 0; i < t->count; i++)
        take_atomics_out(&t->at[i]);
    count_patterns(t, found);
    size_t each = MACHINE_TOUCHES_MAX;
    while (each && count_told(t, found, each) > MACHINE_TOUCHES_MAX)
        each /= 2;
    if (!each)
        return false;
    *count = tell(t, found, each, out);
    return true;
}
