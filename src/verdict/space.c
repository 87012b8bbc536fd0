#include "verdict/space.h"

#include <stdlib.h>

#include "record/event.h"

struct space *space_open(uint32_t process) {
    struct space *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->process = process;
    s->sticky = s->fault = s->unknown_launch = EVENT_NO_SEQ;
    s->shadow = shadow_open();
    if (!s->shadow)
        space_close(&s);
    return s;
}

void space_forget_use(struct space *s, struct block *b) {
    if (!b->use)
        return;
    if (s->settle)
        s->settle(s, b, s->user);
    free(b->use->vague);
    free(b->use);
    b->use = NULL;
}

static void free_block(struct space *s, struct block *b) {
    space_forget_use(s, b);
    free(b->handed);
    free(b);
}

void space_close(struct space **space) {
    struct space *s = *space;
    if (!s)
        return;
    for (struct range *r = rangemap_first(&s->live); r; r = rangemap_next(&s->live, r))
        free_block(s, r->value);
    for (struct range *r = rangemap_first(&s->freed); r; r = rangemap_next(&s->freed, r))
        free_block(s, r->value);
    for (struct range *r = rangemap_first(&s->names); r; r = rangemap_next(&s->names, r))
        free(r->value);
    rangemap_clear(&s->live);
    rangemap_clear(&s->freed);
    rangemap_clear(&s->names);
    shadow_close(&s->shadow);
    free(s->streams);
    free(s->dirty);
    vclock_free(&s->published);
    vclock_free(&s->drained);
    table_clear(&s->host_pages);
    free(s);
    *space = NULL;
}

/* ---- freed blocks ---------------------------------------------------------------------------- */

static void forget_freed(struct space *s, struct block *b) {
    *(b->older ? &b->older->newer : &s->oldest_freed) = b->newer;
    *(b->newer ? &b->newer->older : &s->newest_freed) = b->older;
    s->freed_count--;
    rangemap_remove(&s->freed, b->base, NULL);
    free_block(s, b);
}

static void forget_freed_in(struct space *s, uint64_t start, uint64_t bytes) {
    for (;;) {
        struct range *r = rangemap_find_first_at_or_after(&s->freed, start);
        if (!r || (r->addr >= start && r->addr - start >= bytes))
            return;
        forget_freed(s, r->value);
    }
}

static void drop_names_in(struct space *s, uint64_t start, uint64_t bytes) {
    for (;;) {
        struct range *r = rangemap_find_first_at_or_after(&s->names, start);
        if (!r || (r->addr >= start && r->addr - start >= bytes))
            return;
        void *name;
        rangemap_remove(&s->names, r->addr, &name);
        free(name);
    }
}

bool space_free(struct space *s, struct block *b, uint64_t seq, uint32_t site, bool async) {
    for (unsigned i = 0; i < sizeof s->recent / sizeof *s->recent; i++)
        if (s->recent[i] == b)
            s->recent[i] = NULL;
    const struct space_name *n = space_name_at(s, b->base);
    b->name = n && n->at == b->base && n->bytes == b->bytes ? n->text : 0;
    rangemap_remove(&s->live, b->base, NULL);
    drop_names_in(s, b->base, b->bytes);
    space_forget_use(s, b);
    b->free = seq;
    b->free_site = site;
    b->free_async = async;
    free(b->handed);
    b->handed = NULL;
    forget_freed_in(s, b->base, b->bytes);
    if (rangemap_insert(&s->freed, b->base, b->bytes, b, NULL) != RC_OK) {
        free(b);
        return false;
    }
    b->older = s->newest_freed;
    b->newer = NULL;
    *(b->older ? &b->older->newer : &s->oldest_freed) = b;
    s->newest_freed = b;
    if (++s->freed_count > SPACE_FREED_MAX) {
        s->freed_forgotten++;
        forget_freed(s, s->oldest_freed);
    }
    return true;
}

/* ---- live ones ------------------------------------------------------------------------------- */

struct block *space_add(struct space *s, const struct block *what) {
    if (what->base + what->bytes <= what->base) /* empty, or to the last byte there is and beyond */
        return NULL;
    for (;;) {
        struct range *r = rangemap_find_first_at_or_after(&s->live, what->base);
        if (!r || (r->addr >= what->base && r->addr - what->base >= what->bytes))
            break;
        if (!space_free(s, r->value, what->alloc, what->alloc_site, false))
            return NULL;
    }
    forget_freed_in(s, what->base, what->bytes);
    struct block *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = *what;
    b->free = EVENT_NO_SEQ;
    b->use = NULL;
    b->handed = NULL;
    b->older = b->newer = NULL;
    if (rangemap_insert(&s->live, b->base, b->bytes, b, NULL) != RC_OK ||
        !shadow_clear(s->shadow, b->base, block_end(b))) {
        rangemap_remove(&s->live, b->base, NULL);
        free(b);
        return NULL;
    }
    return b;
}

struct block *space_at(struct space *s, uint64_t addr) {
    enum { RECENT = sizeof s->recent / sizeof *s->recent };
    for (unsigned i = 0; i < RECENT; i++)
        if (s->recent[i] && addr - s->recent[i]->base < s->recent[i]->bytes)
            return s->recent[i];
    const struct range *r = rangemap_find(&s->live, addr);
    if (!r)
        return NULL;
    s->recent[s->recent_next++ % RECENT] = r->value;
    return r->value;
}

struct block *space_freed_at(const struct space *s, uint64_t addr) {
    const struct range *r = rangemap_find(&s->freed, addr);
    return r ? r->value : NULL;
}

static void take_nearer(const struct range *r, uint64_t addr, struct block **best,
                        uint64_t *distance) {
    if (!r)
        return;
    uint64_t far = r->addr > addr            ? r->addr - addr
                   : addr - r->addr < r->len ? 0
                                             : addr - r->addr - r->len;
    if (!*best || far < *distance) {
        *best = r->value;
        *distance = far;
    }
}

struct block *space_near(const struct space *s, uint64_t addr, uint64_t *distance) {
    struct block *best = NULL;
    take_nearer(rangemap_find_first_at_or_after(&s->live, addr), addr, &best, distance);
    take_nearer(rangemap_find_last_before(&s->live, addr), addr, &best, distance);
    take_nearer(rangemap_find_first_at_or_after(&s->freed, addr), addr, &best, distance);
    take_nearer(rangemap_find_last_before(&s->freed, addr), addr, &best, distance);
    return best;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool space_set_name(struct space *s, uint64_t at, uint64_t bytes, uint32_t text) {
    if (!bytes || at + (bytes - 1) < at)
        return true;
    drop_names_in(s, at, bytes);
    struct space_name *n = malloc(sizeof *n);
    if (!n)
        return false;
    *n = (struct space_name){ at, bytes, text };
    if (rangemap_insert(&s->names, at, bytes, n, NULL) != RC_OK) {
        free(n);
        return false;
    }
    return true;
}

void space_drop_name(struct space *s, uint64_t at) {
    void *name = NULL;
    if (rangemap_remove(&s->names, at, &name) == RC_OK)
        free(name);
}

const struct space_name *space_name_at(const struct space *s, uint64_t addr) {
    const struct range *r = s->names.count ? rangemap_find(&s->names, addr) : NULL;
    return r ? r->value : NULL;
}

bool space_is_boundary(const struct space *s, const struct block *b, uint64_t addr) {
    const struct space_name *n = space_name_at(s, addr);
    return addr == block_end(b) || !n || n->at == addr;
}

enum space_side space_side(const struct block *b) {
    switch (b ? b->family : DETAIL_FAMILY_UNKNOWN) {
    case DETAIL_FAMILY_DEVICE:
    case DETAIL_FAMILY_ASYNC:
    case DETAIL_FAMILY_PITCHED:
    case DETAIL_FAMILY_ARRAY:
    case DETAIL_FAMILY_IMPORTED:
    case DETAIL_FAMILY_GRAPH:
    case DETAIL_FAMILY_SYMBOL:
    case DETAIL_FAMILY_VIRTUAL:
        return SPACE_DEVICE;
    case DETAIL_FAMILY_PINNED:
    case DETAIL_FAMILY_REGISTERED:
    case DETAIL_FAMILY_MANAGED:
        return SPACE_BOTH;
    default:
        return SPACE_UNKNOWN;
    }
}
