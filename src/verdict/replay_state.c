/* replay_state.c - what every file of the replay asks about its state: processes and threads,
 * missing events, failing calls; and what they count in it. */
#include <stdlib.h>

#include "verdict/replay.h"

/* ---- processes and threads ------------------------------------------------------------------- */

static struct space *space_of(struct replay *r, uint32_t process) {
    struct space *known = table_find(&r->space_of, process);
    if (known)
        return known;
    struct space **spaces = realloc(r->spaces, (r->space_count + 1) * sizeof *spaces);
    if (spaces)
        r->spaces = spaces;
    struct space *s = spaces ? space_open(process) : NULL;
    if (!s || !table_set(&r->space_of, process, s)) {
        space_close(&s);
        r->no_memory = true;
        return NULL;
    }
    s->settle = r->settle;
    s->user = r;
    const struct process_value *p = reader_process(r->r, process);
    s->gap = r->gap;
    if (p && p->how == PROCESS_FORKED && !s->gap)
        s->gap = 1; /* it has its parent's memory, which was allocated elsewhere */
    r->seen.processes++;
    return r->spaces[r->space_count++] = s;
}

struct thread *replay_thread(struct replay *r, uint32_t id) {
    struct thread *t = &r->threads[id < r->thread_count ? id : 0];
    if (t->seen)
        return t;
    const struct thread_value *v = reader_thread(r->r, id);
    t->space = space_of(r, v ? v->process : 0);
    if (!t->space)
        return NULL;
    t->seen = true;
    t->id = (uint32_t)(t - r->threads); /* a damaged event may give another number */
    t->safe = t->safe_op = t->last_work = t->read = t->host_fn_begin = EVENT_NO_SEQ;
    t->space->threads++;
    return t;
}

void replay_symbol(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct block b = {
        .base = e->event.dst,
        .bytes = e->event.len,
        .alloc = e->seq,
        .alloc_site = e->event.site,
        .family = DETAIL_FAMILY_SYMBOL,
        .found = true,
        .owner = e->event.src,
    };
    if (e->event.status == hipSuccess && b.base && b.bytes && !space_at(t->space, b.base) &&
        !space_add(t->space, &b))
        r->no_memory |= b.base + b.bytes > b.base;
}

/* ---- missing events, failing calls ----------------------------------------------------------- */

bool replay_is_torn(const struct replay *r, uint64_t from, uint64_t to) {
    size_t low = 0, high = r->gap_count;
    while (low < high) { /* the first gap that ends after `from` */
        size_t middle = low + (high - low) / 2;
        if (r->gaps[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->gap_count && r->gaps[low].first <= to;
}

struct failure *replay_failure(struct replay *r, uint64_t seq) {
    size_t low = 0, high = r->failure_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->failures[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->failure_count && r->failures[low].seq == seq ? &r->failures[low] : NULL;
}

/* ---- work ------------------------------------------------------------------------------------ */

void replay_count_work(struct replay *r, const struct op *op) {
    switch (op->what) {
    case SHADOW_COPY:
        r->seen.copies++;
        r->seen.copies_d2h += op->copy_kind == hipMemcpyDeviceToHost;
        break;
    case SHADOW_SET:
        r->seen.sets++;
        break;
    default:
        r->seen.launches++;
        r->seen.launches_exact += op->exact;
        r->seen.launches_by_args += op->known && !op->exact;
        r->seen.launches_unknown += !op->known;
    }
}

void replay_count_host_memory(struct replay *r, const struct op *op, struct space *s) {
    bool replayed = op->launch != EVENT_NO_SEQ;
    if (op->what != SHADOW_LAUNCH && !(op->async || replayed))
        return;
    for (unsigned i = 0; i < op->count; i++) {
        struct block *b = space_at(s, op->use[i].start);
        if (!b || !(b->family == DETAIL_FAMILY_PINNED || b->family == DETAIL_FAMILY_REGISTERED))
            continue;
        b->outlasts = true;
        if (op->what != SHADOW_COPY)
            continue;
        r->checked[HYPOTHESIS_HOST_BUFFER_LIFETIME]++;
        r->registered_async += b->family == DETAIL_FAMILY_REGISTERED;
    }
}

void replay_note_host_use(struct replay *r, const struct op *op, struct space *s) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(s, op->use[i].start);
        if (!b || space_side(b) != SPACE_BOTH)
            continue;
        if (!r->host_open++)
            r->host_first = op->seq;
        return;
    }
}
