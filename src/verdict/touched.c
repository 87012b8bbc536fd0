/* touched.c - which bytes the device saw a launch touch.
 *
 * The statement stands in the recording after the launch ran, the launch is judged where it was
 * queued. So when the first launch comes up whose accesses the device sees, all statements from
 * there to the end are looked for, once. */
#include "verdict/replay.h"

static void find_all(struct replay *r, uint64_t from) {
    struct reader_cursor c = reader_events(r->r, from, UINT64_MAX);
    r->touched_is_known = true;
    while (!r->no_memory && reader_next(&c, r->other))
        if (r->other->event.kind == EVENT_TOUCHED &&
            !table_set(&r->touched, r->other->event.src, (void *)(uintptr_t)(r->other->seq + 1)))
            r->no_memory = true;
}

static bool sees_every_access(const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_CHECKED);
    return x && event_checked_of(x).how == DETAIL_CHECKED_EVERY_ACCESS;
}

/* The argument whose pointer the range begins at, or that lies nearest below it. */
static uint8_t argument_of(const struct op *op, uint64_t address, struct space *s) {
    uint64_t best = 0;
    uint8_t argument = EVENT_NO_ARGUMENT;
    const struct block *b = space_at(s, address);
    for (unsigned i = 0; b && i < op->count; i++) {
        const struct use *u = &op->use[i];
        if (u->start <= address && u->start >= best && u->start >= b->base) {
            best = u->start;
            argument = u->argument;
        }
    }
    return argument;
}

/* A range, cut where blocks end: what lies in none of them is a module's. */
static void add(struct op *seen, const struct op *op, const struct event_access *a,
                struct space *s) {
    bool at_most = a->access & EVENT_ACCESS_AT_MOST;
    bool reads = (a->access & 15) == DETAIL_ACCESS_READ;
    /* Atomics of two kernels may meet; what they meet is not known byte by byte. */
    bool doubt = at_most || (a->access & 15) == DETAIL_ACCESS_READ_WRITE;
    uint64_t at = a->address, end = at + a->bytes;
    seen->exact &= !at_most;
    while (at < end) {
        const struct block *b = space_at(s, at);
        if (!b || seen->count == USES_MAX) {
            seen->strays = true;
            return;
        }
        uint64_t stop = block_end(b) < end ? block_end(b) : end;
        seen->use[seen->count++] = (struct use){
            .start = at,
            .bytes = stop - at,
            .rows = 1,
            .slices = 1,
            .access = reads ? USE_READ : USE_WRITE,
            .flags = (uint8_t)(USE_SEEN | (doubt ? USE_VAGUE | USE_BOUND : 0)),
            .argument = argument_of(op, at, s),
        };
        at = stop;
    }
}

void touched_apply(struct replay *r, const struct reader_event *e, struct op *op) {
    struct event_access a[EVENT_ACCESSES_PER_SLOT];
    struct thread *t = replay_thread(r, e->event.thread);
    if (!t || op->what != SHADOW_LAUNCH || !sees_every_access(e))
        return;
    if (!r->touched_is_known)
        find_all(r, e->seq);
    uintptr_t at = (uintptr_t)table_find(&r->touched, e->seq);
    if (!at || !reader_event(r->r, at - 1, r->other) || r->other->extras_lost)
        return;
    struct op seen = *op;
    seen.count = 0;
    seen.known = seen.exact = true;
    for (unsigned i = 0; i < r->other->extras; i++) {
        const struct event_extra *x = &r->other->extra[i];
        unsigned n = event_extra_type(x) == EXTRA_ACCESS ? event_accesses_of(x, a) : 0;
        for (unsigned k = 0; k < n; k++)
            add(&seen, op, &a[k], t->space);
    }
    *op = seen;
}
