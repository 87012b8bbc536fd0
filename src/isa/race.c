/* race.c - data races within one launch.
 *
 * Every memory instruction that a wave executes is written down once (struct done). For every four
 * bytes of memory it keeps which instructions wrote and read them last, with two readers of
 * different waves; a bit per byte says which of the four are meant. Where that is not enough room,
 * the older one is forgotten: a race may be missed then.
 *
 * What is released at an address is a list of waves, each with a time: everything the wave did up
 * to then happens before whatever takes it over. */
#include "isa/race.h"

#include "base/spin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 4, PAGE_CELLS = 1024, BUCKETS = 1 << 14, LDS_BUCKETS = 256, PAIRS_MAX = 64 };
enum { CHUNK = 1 << 14 };
enum { CHUNKS_MAX = 1 << 12, WAVES_MAX = 16, RELEASED_MAX = 4096 };

/* An instruction that was executed by a wave. */
struct done {
    uint64_t group, pc, time, released;
    uint32_t epoch;
    uint8_t wave, kind;
    bool past_caches;
};

/* The last accesses to the bytes of a cell: 1 + index of struct done, 0: none. */
struct mark {
    uint32_t done;
    uint8_t lane, bytes; /* bytes: one bit each */
};

struct cell {
    struct mark write, read[2];
};

struct page {
    struct page *next;
    uint64_t number;
    struct cell cell[PAGE_CELLS];
    /* Device memory only: the bytes before the launch wrote them, and a bit for each byte that was
     * kept. */
    unsigned char before[PAGE_CELLS][CELL];
    uint8_t kept[PAGE_CELLS];
};

struct entry { /* all that the wave did until then */
    uint64_t group, time;
    uint32_t wave;
};

struct list {
    struct entry *at;
    uint32_t count, room;
};

struct place { /* an address at which something was released */
    struct place *next;
    uint64_t address;
    struct list released;
};

struct bucket {
    struct page *page;
    struct place *place;
};

struct memory {
    struct bucket *bucket;
    size_t count;      /* of buckets, a power of two */
    struct page *last; /* that was asked for */
};

struct isa_race {
    struct spin lock;
    uint32_t waves;
    uint64_t time;
    uint64_t settled; /* everything up to then is before all that comes: the grid's barriers */
    uint64_t accesses, accesses_max, pages, pages_max;
    _Atomic bool full; /* something is not followed any more */
    bool unkept;       /* bytes were written whose former value is unknown */
    struct bucket bucket[BUCKETS];
    struct memory memory; /* of the buckets */
    struct done *chunk[CHUNKS_MAX];
    uint32_t count;
    uint64_t pair[PAIRS_MAX][2]; /* instructions that were told */
    unsigned pairs;
};

struct isa_race_group {
    struct isa_race *race;
    uint64_t number;
    uint32_t epoch;
    struct bucket bucket[LDS_BUCKETS];
    struct memory lds;                    /* of the buckets */
    uint64_t waited[WAVES_MAX];           /* when a wave last waited for its stores */
    uint64_t knows[WAVES_MAX][WAVES_MAX]; /* of each other wave of the group: until when */
    struct list others;                   /* of other groups */
};

/* ---- making and ending ----------------------------------------------------------------------- */

struct isa_race *isa_race_open(uint32_t waves, const struct isa_race_limits *limits) {
    struct isa_race *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->waves = waves;
    r->memory = (struct memory){ r->bucket, BUCKETS, NULL };
    r->accesses_max = limits ? limits->accesses : UINT64_MAX;
    r->pages_max = limits ? limits->bytes / CELL / PAGE_CELLS : UINT64_MAX;
    return r;
}

bool isa_race_is_full(const struct isa_race *r) {
    return atomic_load_explicit(&r->full, memory_order_relaxed);
}

uint64_t isa_race_accesses(const struct isa_race *r) {
    return r->accesses;
}

struct spin *isa_race_lock(struct isa_race *r) {
    return &r->lock;
}

/* Pages are kept for the next launch: new ones cost more than the accesses that they are for. */
enum { POOL_MAX = 2048 };
static struct spin pool_lock;
static struct page *pool;
static unsigned pool_count;

static void give_page(struct page *p) {
    spin_lock(&pool_lock);
    bool room = pool_count < POOL_MAX;
    if (room) {
        p->next = pool;
        pool = p;
        pool_count++;
    }
    spin_unlock(&pool_lock);
    if (!room)
        free(p);
}

static struct page *take_page(void) {
    spin_lock(&pool_lock);
    struct page *p = pool;
    if (p) {
        pool = p->next;
        pool_count--;
    }
    spin_unlock(&pool_lock);
    return p ? memset(p, 0, sizeof *p) : calloc(1, sizeof *p);
}

static void free_memory(struct memory *m) {
    for (size_t i = 0; i < m->count; i++) {
        for (struct page *p = m->bucket[i].page, *next; p; p = next) {
            next = p->next;
            give_page(p);
        }
        for (struct place *p = m->bucket[i].place, *next; p; p = next) {
            next = p->next;
            free(p->released.at);
            free(p);
        }
    }
}

void isa_race_close(struct isa_race **race) {
    struct isa_race *r = *race;
    *race = NULL;
    if (!r)
        return;
    free_memory(&r->memory);
    for (size_t i = 0; i < CHUNKS_MAX; i++)
        free(r->chunk[i]);
    free(r);
}

struct isa_race_group *isa_race_begin(struct isa_race *r, uint64_t number) {
    struct isa_race_group *g = calloc(1, sizeof *g);
    if (!g) {
        r->full = true;
        return NULL;
    }
    g->race = r;
    g->number = number;
    g->lds = (struct memory){ g->bucket, LDS_BUCKETS, NULL };
    return g;
}

void isa_race_end(struct isa_race_group **group) {
    struct isa_race_group *g = *group;
    *group = NULL;
    if (!g)
        return;
    free_memory(&g->lds);
    free(g->others.at);
    free(g);
}

void isa_race_barrier(struct isa_race_group *g) {
    spin_lock(&g->race->lock);
    g->epoch++;
    spin_unlock(&g->race->lock);
}

void isa_race_grid_barrier(struct isa_race *r) {
    spin_lock(&r->lock);
    r->settled = r->time;
    spin_unlock(&r->lock);
}

void isa_race_wait(struct isa_race_group *g, uint32_t wave) {
    spin_lock(&g->race->lock);
    g->waited[wave] = g->race->time;
    spin_unlock(&g->race->lock);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static struct bucket *bucket_of(const struct memory *m, uint64_t key) {
    return &m->bucket[key * UINT64_C(0x9e3779b97f4a7c15) >> 50 & (m->count - 1)];
}

static struct page *new_page(struct isa_race *r, const struct memory *m, uint64_t number,
                             struct page **first) {
    bool lasts = m == &r->memory; /* LDS ends with its group */
    struct page *p = lasts && r->pages == r->pages_max ? NULL : take_page();
    if (!p) {
        r->full = true;
        return NULL;
    }
    r->pages += lasts;
    p->number = number;
    p->next = *first;
    return *first = p;
}

static struct page *find_page(const struct memory *m, uint64_t number) {
    struct page *p = bucket_of(m, number)->page;
    while (p && p->number != number)
        p = p->next;
    return p;
}

static struct page *other_page(struct isa_race *r, struct memory *m, uint64_t number) {
    struct page *p = find_page(m, number);
    if (p || (p = new_page(r, m, number, &bucket_of(m, number)->page)))
        m->last = p;
    return p;
}

static inline struct page *page_at(struct isa_race *r, struct memory *m, uint64_t address) {
    uint64_t number = address / CELL / PAGE_CELLS;
    return m->last && m->last->number == number ? m->last : other_page(r, m, number);
}

static struct cell *cell_at(struct isa_race *r, struct memory *m, uint64_t address) {
    struct page *p = page_at(r, m, address);
    return p ? &p->cell[address / CELL % PAGE_CELLS] : NULL;
}

static struct place *place_at(struct memory *m, uint64_t address, bool make) {
    struct place **first = &bucket_of(m, address)->place, *p = *first;
    while (p && p->address != address)
        p = p->next;
    if (p || !make || !(p = calloc(1, sizeof *p)))
        return p;
    p->address = address;
    p->next = *first;
    *first = p;
    return p;
}

static struct done *done_at(struct isa_race *r, uint32_t n) {
    return &r->chunk[(n - 1) / CHUNK][(n - 1) % CHUNK];
}

/* 1 + the index of a new one; 0 if there is no room: the access is not followed then. */
static uint32_t add_done(struct isa_race *r, const struct done *d) {
    uint32_t at = r->count / CHUNK;
    if (at == CHUNKS_MAX || (!r->chunk[at] && !(r->chunk[at] = malloc(CHUNK * sizeof *d)))) {
        r->full = true;
        return 0;
    }
    r->chunk[at][r->count % CHUNK] = *d;
    return ++r->count;
}

static void raise_entry(struct list *l, uint64_t group, uint32_t wave, uint64_t time) {
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].group == group && l->at[i].wave == wave) {
            l->at[i].time = time > l->at[i].time ? time : l->at[i].time;
            return;
        }
    if (l->count == l->room) {
        uint32_t room = l->room ? 2 * l->room : 4;
        struct entry *at = room > RELEASED_MAX ? NULL : realloc(l->at, room * sizeof *at);
        if (!at)
            return;
        l->at = at;
        l->room = room;
    }
    l->at[l->count++] = (struct entry){ group, time, wave };
}

/* ---- order ----------------------------------------------------------------------------------- */

static void release(struct isa_race_group *g, struct memory *m, uint64_t address, uint32_t wave,
                    uint64_t time) {
    struct place *p = place_at(m, address, true);
    if (!p)
        return;
    raise_entry(&p->released, g->number, wave, time);
    for (uint32_t i = 0; i < g->race->waves; i++)
        if (g->knows[wave][i])
            raise_entry(&p->released, g->number, i, g->knows[wave][i]);
    for (uint32_t i = 0; i < g->others.count; i++)
        raise_entry(&p->released, g->others.at[i].group, g->others.at[i].wave,
                    g->others.at[i].time);
}

static void take_over(struct isa_race_group *g, uint32_t wave, const struct entry *e) {
    if (e->group != g->number)
        raise_entry(&g->others, e->group, 0, e->time);
    else if (e->time > g->knows[wave][e->wave])
        g->knows[wave][e->wave] = e->time;
}

static void acquire(struct isa_race_group *g, struct memory *m, uint64_t address, uint32_t wave) {
    const struct place *p = place_at(m, address, false);
    for (uint32_t i = 0; p && i < p->released.count; i++)
        take_over(g, wave, &p->released.at[i]);
}

static bool is_before(const struct isa_race_group *g, const struct done *old,
                      const struct done *now) {
    if (old->time <= g->race->settled)
        return true;
    if (old->group == now->group)
        return old->wave == now->wave || old->epoch != now->epoch ||
               g->knows[now->wave][old->wave] >= old->time;
    for (uint32_t i = 0; i < g->others.count; i++)
        if (g->others.at[i].group == old->group)
            return g->others.at[i].time >= old->time;
    return false;
}

static bool is_atomic(const struct done *d) {
    return d->kind == ISA_ATOMIC || d->past_caches;
}

/* Compilers turn atomic stores into plain ones, and begin a loop of compare-and-swap, such as an
 * atomic sum of floats, with a plain load. */
static bool may_meet(const struct done *a, const struct done *b) {
    return (a->kind == ISA_LOAD && b->kind == ISA_LOAD) || is_atomic(a) || is_atomic(b);
}

/* ---- one access ------------------------------------------------------------------------------ */

/* Lanes of one instruction mostly meet the same other instruction: what was found out about some of
 * those is remembered, by their numbers, for the access. */
enum { FINE = 4 };

struct look {
    struct isa_race_group *g;
    struct memory *memory;
    const struct isa_access *a;
    const struct done *now;
    uint32_t number; /* of now */
    void *const *host;
    const uint32_t (*data)[ISA_LANES]; /* of a store; NULL: not known */
    struct isa_race_found *found;
    bool is_found;
    uint32_t fine[FINE];   /* in order with this one, whatever the lane */
    uint32_t mine, theirs; /* loads of this wave, and of another one */
};

static bool is_told(struct isa_race *r, uint64_t a, uint64_t b) {
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    for (unsigned i = 0; i < r->pairs; i++)
        if (r->pair[i][0] == low && r->pair[i][1] == high)
            return true;
    if (r->pairs == PAIRS_MAX)
        return true;
    r->pair[r->pairs][0] = low;
    r->pair[r->pairs++][1] = high;
    return false;
}

static struct isa_race_side side_of(const struct done *d, unsigned lane) {
    return (struct isa_race_side){ d->group, d->pc, d->wave, lane, d->kind };
}

static void tell(struct look *l, uint64_t address, const struct done *old, unsigned old_lane,
                 unsigned lane) {
    if (l->is_found || is_told(l->g->race, old->pc, l->now->pc))
        return;
    l->is_found = true;
    *l->found =
        (struct isa_race_found){ .space = l->a->space,
                                 .address = address,
                                 .side = { side_of(old, old_lane), side_of(l->now, lane) } };
}

/* The data registers of a store, where there is one set of them; NULL: not known. */
static const uint32_t (*data_of(const struct isa_access *a))[ISA_LANES] {
    const struct isa_insn *i = a->insn;
    unsigned encoding = isa_info[i->op].encoding;
    unsigned code = encoding == ISA_ENC_MUBUF ? i->dst : i->src[1];
    bool single = encoding == ISA_ENC_FLAT || encoding == ISA_ENC_GLOBAL ||
                  encoding == ISA_ENC_MUBUF ||
                  (encoding == ISA_ENC_DS && isa_info[i->op].type[3] == ISA_TYPE_NONE);
    if (!single || code < ISA_VGPR0 || code - ISA_VGPR0 + 4 > ISA_VGPRS ||
        isa_info[i->op].forms & ISA_FORM_TOLDS)
        return NULL;
    return (const uint32_t(*)[ISA_LANES])a->wave->vgpr[code - ISA_VGPR0];
}

/* Does a store of the lane leave the bytes as another store has made them? */
static bool stores_the_same(const struct look *l, const struct done *old, unsigned lane) {
    const uint32_t(*data)[ISA_LANES] = l->data;
    uint32_t value[4];
    if (old->kind != ISA_STORE || l->now->kind != ISA_STORE || !data || !l->host ||
        l->a->bytes > sizeof value)
        return false;
    for (unsigned d = 0; d < (l->a->bytes + 3) / 4; d++)
        value[d] = data[d][lane];
    return !memcmp(value, l->host[lane], l->a->bytes);
}

static void compare_other(struct look *l, uint64_t base, const struct mark *m, unsigned lane,
                          uint8_t bytes) {
    const struct done *old = done_at(l->g->race, m->done);
    if (may_meet(old, l->now) || is_before(l->g, old, l->now))
        l->fine[m->done % FINE] = m->done;
    else if (!stores_the_same(l, old, lane))
        tell(l, base + (unsigned)__builtin_ctz((unsigned)(m->bytes & bytes)), old, m->lane, lane);
}

static inline void compare(struct look *l, uint64_t base, const struct mark *m, unsigned lane,
                           uint8_t bytes) {
    if (m->done && m->bytes & bytes && m->done != l->number && m->done != l->fine[m->done % FINE])
        compare_other(l, base, m, lane, bytes);
}

/* Do two lanes of one store write different values to the same bytes? */
static void compare_lanes(struct look *l, uint64_t base, const struct mark *m, unsigned lane,
                          uint8_t bytes) {
    const uint32_t(*data)[ISA_LANES] = l->data;
    if (!(m->bytes & bytes) || m->lane == lane || !data || l->now->kind != ISA_STORE)
        return;
    uint32_t mask = l->a->bytes >= 4 ? ~0u : (1u << 8 * l->a->bytes) - 1;
    bool differ = false;
    for (unsigned d = 0; d < (l->a->bytes + 3) / 4; d++)
        differ |= ((data[d][lane] ^ data[d][m->lane]) & mask) != 0;
    if (differ)
        tell(l, base, l->now, m->lane, lane);
}

static inline void put(struct mark *m, uint32_t number, unsigned lane, uint8_t bytes) {
    if (m->done == number)
        bytes |= m->bytes;
    *m = (struct mark){ number, (uint8_t)lane, bytes };
}

/* Is the load of another wave than the access? */
static bool is_theirs(struct look *l, uint32_t load) {
    const struct done *d = done_at(l->g->race, load);
    bool theirs = d->group != l->now->group || d->wave != l->now->wave;
    *(theirs ? &l->theirs : &l->mine) = load;
    return theirs;
}

static inline void enter_load(struct look *l, struct cell *c, unsigned lane, uint8_t bytes) {
    uint32_t last = c->read[0].done;
    if (last && last != l->number && last != l->mine && (last == l->theirs || is_theirs(l, last)))
        c->read[1] = c->read[0];
    put(&c->read[0], l->number, lane, bytes);
}

/* Keeps what the bytes of a cell are before they are written for the first time. from: where the
 * first of them is. */
static void keep(struct look *l, struct page *p, unsigned cell, const unsigned char *from,
                 uint8_t bytes) {
    uint8_t fresh = (uint8_t)(bytes & ~p->kept[cell]);
    if (!l->host) {
        l->g->race->unkept = true;
        return;
    }
    unsigned first = (unsigned)__builtin_ctz(bytes);
    if (fresh == (1 << CELL) - 1)
        memcpy(p->before[cell], from, CELL);
    else
        for (unsigned i = first; i < CELL; i++)
            if (fresh >> i & 1)
                p->before[cell][i] = from[i - first];
    p->kept[cell] |= fresh;
}

/* Some bytes of one lane that are in one cell. from: where the first of them is; NULL: not known.
 */
static inline void visit_load(struct look *l, struct cell *c, uint64_t base, unsigned lane,
                              uint8_t bytes) {
    compare(l, base, &c->write, lane, bytes);
    enter_load(l, c, lane, bytes);
}

static inline void visit_write(struct look *l, struct page *p, unsigned number, uint64_t base,
                               unsigned lane, uint8_t bytes, const unsigned char *from) {
    struct cell *c = &p->cell[number];
    if (bytes & ~p->kept[number] && l->a->space != ISA_SPACE_LDS)
        keep(l, p, number, from, bytes);
    compare(l, base, &c->write, lane, bytes);
    if (c->write.done == l->number)
        compare_lanes(l, base, &c->write, lane, bytes);
    compare(l, base, &c->read[0], lane, bytes);
    compare(l, base, &c->read[1], lane, bytes);
    put(&c->write, l->number, lane, bytes);
}

/* The bytes of one lane, cell by cell. */
static void visit_bytes(struct look *l, uint64_t address, unsigned lane) {
    for (uint64_t at = address, end = address + l->a->bytes; at < end;) {
        uint64_t base = at / CELL * CELL, stop = base + CELL < end ? base + CELL : end;
        unsigned number = base / CELL % PAGE_CELLS;
        struct page *page = page_at(l->g->race, l->memory, base);
        uint8_t bytes = (uint8_t)(((1u << (stop - at)) - 1) << (at - base));
        if (!page)
            return;
        if (l->now->kind == ISA_LOAD)
            visit_load(l, &page->cell[number], base, lane, bytes);
        else
            visit_write(l, page, number, base, lane, bytes,
                        l->host ? (const unsigned char *)l->host[lane] + (at - address) : NULL);
        at = stop;
    }
}

/* The same where they are whole cells, as they mostly are. */
static void visit(struct look *l, uint64_t address, unsigned lane) {
    enum { WHOLE = (1 << CELL) - 1 };
    if ((address | l->a->bytes) % CELL) {
        visit_bytes(l, address, lane);
        return;
    }
    for (uint64_t at = 0; at < l->a->bytes; at += CELL) {
        uint64_t base = address + at;
        unsigned number = base / CELL % PAGE_CELLS;
        struct page *page = page_at(l->g->race, l->memory, base);
        if (!page)
            return;
        if (l->now->kind == ISA_LOAD)
            visit_load(l, &page->cell[number], base, lane, WHOLE);
        else
            visit_write(l, page, number, base, lane, WHOLE,
                        l->host ? (const unsigned char *)l->host[lane] + at : NULL);
    }
}

/* What the lane takes over and gives on at this address. */
static void synchronise(struct look *l, uint64_t address) {
    const struct done *now = l->now;
    uint32_t wave = now->wave;
    bool lds = l->a->space == ISA_SPACE_LDS;
    acquire(l->g, l->memory, address, wave);
    const struct cell *c = cell_at(l->g->race, l->memory, address / CELL * CELL);
    const struct done *old = c && c->write.done ? done_at(l->g->race, c->write.done) : NULL;
    if (old)
        take_over(l->g, wave, &(struct entry){ old->group, old->released, old->wave });
    if (now->kind == ISA_ATOMIC)
        release(l->g, l->memory, address, wave, lds ? now->time : now->released);
}

bool isa_race_access(struct isa_race_group *g, const struct isa_access *a, uint64_t pc,
                     const uint64_t address[ISA_LANES], void *const host[ISA_LANES],
                     struct isa_race_found *found) {
    struct isa_race *r = g->race;
    if (isa_race_is_full(r))
        return false;
    r->accesses += (unsigned)__builtin_popcountll(a->lanes);
    r->full = r->full || r->accesses > r->accesses_max;
    uint32_t wave = a->wave->index;
    struct done now = { .group = g->number,
                        .pc = pc,
                        .time = ++r->time,
                        .released = g->waited[wave],
                        .epoch = g->epoch,
                        .wave = (uint8_t)wave,
                        .kind = a->kind,
                        .past_caches = a->kind == ISA_LOAD && a->space == ISA_SPACE_GLOBAL &&
                                       !a->scalar &&
                                       a->insn->memory & (ISA_MEM_GLC | ISA_MEM_SCC) };
    struct look l = { .g = g,
                      .memory = a->space == ISA_SPACE_LDS ? &g->lds : &r->memory,
                      .a = a,
                      .now = &now,
                      .number = add_done(r, &now),
                      .host = host,
                      .data = a->kind == ISA_STORE ? data_of(a) : NULL,
                      .found = found };
    for (uint64_t left = a->lanes; left && l.number; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(left);
        if (now.kind == ISA_ATOMIC || now.past_caches)
            synchronise(&l, address[lane]);
        visit(&l, address[lane], lane);
    }
    return l.is_found;
}

/* ---- what the launch wrote ------------------------------------------------------------------- */

bool isa_race_is_restorable(const struct isa_race *r) {
    return !isa_race_is_full(r) && !r->unkept;
}

bool isa_race_is_written(const struct isa_race *r, uint64_t address) {
    const struct page *p = find_page(&r->memory, address / CELL / PAGE_CELLS);
    return p && p->kept[address / CELL % PAGE_CELLS] >> address % CELL & 1;
}

void isa_race_visit_pages(const struct isa_race *r, void (*visit)(uint64_t address, void *user),
                          void *user) {
    for (size_t i = 0; i < r->memory.count; i++)
        for (const struct page *p = r->memory.bucket[i].page; p; p = p->next)
            for (unsigned c = 0; c < PAGE_CELLS; c++)
                if (p->kept[c]) {
                    visit((p->number * PAGE_CELLS + c) * CELL + (unsigned)__builtin_ctz(p->kept[c]),
                          user);
                    break;
                }
}

static void restore_page(const struct page *p, uint64_t start, uint64_t bytes, unsigned char *out) {
    for (unsigned c = 0; c < PAGE_CELLS; c++)
        for (unsigned i = 0; p->kept[c] && i < CELL; i++) {
            uint64_t at = (p->number * PAGE_CELLS + c) * CELL + i - start;
            if (p->kept[c] >> i & 1 && at < bytes)
                out[at] = p->before[c][i];
        }
}

void isa_race_restore(const struct isa_race *r, uint64_t start, uint64_t bytes,
                      unsigned char *out) {
    const uint64_t each = PAGE_CELLS * CELL;
    for (uint64_t n = start / each; bytes && n <= (start + bytes - 1) / each; n++) {
        const struct page *p = find_page(&r->memory, n);
        if (p)
            restore_page(p, start, bytes, out);
    }
}
