#include "report/report_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { FAMILIES = REPORT_FAMILIES };

/* What is alive in one process. Values of the maps are indices into blocks, plus one; UNLISTED for
 * blocks past the limit. */
struct report_space {
    uint32_t process;
    struct rangemap allocations, tensors;
    uint64_t alive[FAMILIES];
};

#define UNLISTED ((void *)UINTPTR_MAX)

static struct report_space *find_space(const struct report_memory *m, const reader *r,
                                       uint32_t thread) {
    const struct thread_value *t = reader_thread(r, thread);
    uintptr_t place = (uintptr_t)table_find(&m->space_of, t ? t->process : 0);
    return place ? &m->spaces[place - 1] : NULL;
}

static struct report_space *make_space(struct report_memory *m, const reader *r, uint32_t thread) {
    struct report_space *s = find_space(m, r, thread);
    if (s)
        return s;
    const struct thread_value *t = reader_thread(r, thread);
    uint32_t process = t ? t->process : 0;
    struct report_space *all = realloc(m->spaces, (m->space_count + 1) * sizeof *all);
    if (all)
        m->spaces = all;
    if (!all || !table_set(&m->space_of, process, (void *)(uintptr_t)(m->space_count + 1))) {
        m->out_of_memory = true;
        return NULL;
    }
    all[m->space_count] = (struct report_space){ .process = process };
    return &all[m->space_count++];
}

static struct report_block *block_of(const struct report_memory *m, void *value) {
    return value == UNLISTED || !value ? NULL : &m->blocks[(uintptr_t)value - 1];
}

/* Adds a block; the map's value for it. */
static void *add_block(struct report_memory *m, const struct report_block *b) {
    if (m->limit && m->count >= m->limit) {
        m->omitted++;
        return UNLISTED;
    }
    struct report_block *all = grow_array(m->blocks, &m->room, m->count, sizeof *all);
    if (!all) {
        m->out_of_memory = true;
        return UNLISTED;
    }
    m->blocks = all;
    m->blocks[m->count++] = *b;
    return (void *)(uintptr_t)m->count;
}

static void end_block(struct report_memory *m, void *value, const struct reader_event *e) {
    struct report_block *b = block_of(m, value);
    if (b) {
        b->end = e->seq;
        b->end_ns = e->event.t_ns;
    }
}

/* Ends all ranges that overlap [at, at + bytes). */
static void end_ranges(struct report_memory *m, struct rangemap *map, uint64_t at, uint64_t bytes,
                       const struct reader_event *e) {
    struct range *x = rangemap_find_first_at_or_after(map, at);
    while (x && (x->addr < at || x->addr - at < bytes)) {
        struct range *next = rangemap_next(map, x);
        end_block(m, x->value, e);
        rangemap_remove(map, x->addr, NULL);
        x = next;
    }
}

static void change_alive(struct report_memory *m, struct report_space *s, unsigned family,
                         uint64_t more, uint64_t less) {
    s->alive[family] += more - less;
    m->alive[family] += more - less;
}

static void see_range(struct report_memory *m, struct report_space *s,
                      const struct reader_event *full, bool tensor) {
    const struct event *e = &full->event;
    struct rangemap *map = tensor ? &s->tensors : &s->allocations;
    if (e->status || !e->len || e->dst + e->len - 1 < e->dst)
        return;
    end_ranges(m, map, e->dst, e->len, full);
    struct report_block b = { .base = e->dst,
                              .bytes = e->len,
                              .begin = full->seq,
                              .end = EVENT_NO_SEQ,
                              .begin_ns = e->t_ns,
                              .name = e->name,
                              .site = e->site,
                              .family = tensor ? 0 : (uint16_t)event_detail(e),
                              .device = tensor ? 0 : (uint16_t)(e->src >> 32),
                              .tensor = tensor };
    if (rangemap_insert(map, e->dst, e->len, add_block(m, &b), NULL) != RC_OK)
        m->out_of_memory = true;
    else if (!tensor)
        change_alive(m, s, event_detail(e), e->len, 0);
}

static void see_free(struct report_memory *m, struct report_space *s,
                     const struct reader_event *full) {
    const struct event *e = &full->event;
    const struct range *x = rangemap_find(&s->allocations, e->dst);
    if (!x || x->addr != e->dst || (e->status && !event_is_pending(e)))
        return;
    uint64_t bytes = x->len, alive = s->alive[event_detail(e)];
    change_alive(m, s, event_detail(e), 0, alive < bytes ? alive : bytes);
    end_ranges(m, &s->tensors, e->dst, bytes, full);
    end_ranges(m, &s->allocations, e->dst, 1, full);
}

static void see_reset(struct report_memory *m, struct report_space *s,
                      const struct reader_event *full) {
    if (full->event.status)
        return;
    end_ranges(m, &s->tensors, 0, UINT64_MAX, full);
    end_ranges(m, &s->allocations, 0, UINT64_MAX, full);
    for (unsigned family = 0; family < FAMILIES; family++)
        change_alive(m, s, family, 0, s->alive[family]);
}

void report_memory_see(struct report_memory *m, const reader *r, const struct reader_event *e) {
    unsigned kind = e->event.kind;
    if (kind != EVENT_ALLOC && kind != EVENT_FREE && kind != EVENT_NAME_RANGE &&
        kind != EVENT_UNNAME_RANGE && kind != EVENT_DEVICE_RESET)
        return;
    struct report_space *s = make_space(m, r, e->event.thread);
    if (!s)
        return;
    if (kind == EVENT_ALLOC || kind == EVENT_NAME_RANGE)
        see_range(m, s, e, kind == EVENT_NAME_RANGE);
    else if (kind == EVENT_FREE)
        see_free(m, s, e);
    else if (kind == EVENT_UNNAME_RANGE)
        end_ranges(m, &s->tensors, e->event.dst, 1, e);
    else
        see_reset(m, s, e);
}

size_t report_memory_find(const struct report_memory *m, const reader *r, uint32_t thread,
                          uint64_t address) {
    const struct report_space *s = find_space(m, r, thread);
    if (!s)
        return SIZE_MAX;
    const struct range *x = rangemap_find(&s->tensors, address);
    if (!x)
        x = rangemap_find(&s->allocations, address);
    const struct report_block *b = x ? block_of(m, x->value) : NULL;
    return b ? (size_t)(b - m->blocks) : SIZE_MAX;
}

uint64_t report_memory_alive(const struct report_memory *m, unsigned family) {
    return family < FAMILIES ? m->alive[family] : 0;
}

void report_memory_clear(struct report_memory *m) {
    for (size_t i = 0; i < m->space_count; i++) {
        rangemap_clear(&m->spaces[i].allocations);
        rangemap_clear(&m->spaces[i].tensors);
    }
    table_clear(&m->space_of);
    free(m->spaces);
    free(m->blocks);
    *m = (struct report_memory){ .limit = m->limit };
}
