/* handover.c - memory that passes from one host thread to another.
 *
 * A stream keeps the order in which it is given work. If two threads give it work and nothing
 * orders the threads, they may come the other way round in the next run; the stream, or a wait for
 * it, hides that in this one. So every thread has a clock of what it knows to have been submitted,
 * which only host synchronisation and the start of threads pass on, and every block remembers who
 * used which bytes last. If two threads use the same bytes, one of them writing, and no such clock
 * puts one use after the other, then only the timing of the threads ordered them. Such pairs are
 * counted, because they rule out a proof of order. */
#include <stdlib.h>

#include "verdict/replay.h"

enum { HANDED_MAX = 8 };

/* Which thread used bytes of a block last, and the number of that submission of the thread. */
struct handed {
    struct {
        uint64_t low, high; /* high 0: unused */
        uint32_t thread, number;
        bool writes;
    } by[HANDED_MAX];
    unsigned next;
};

static struct vclock *token_clock(struct replay *r, struct space *s, uint64_t token) {
    struct vclock *c = table_find(&s->submitted, token);
    if (c)
        return c;
    c = calloc(1, sizeof *c);
    if (!c || !table_set(&s->submitted, token, c)) {
        free(c);
        r->no_memory = true;
        return NULL;
    }
    return c;
}

void handover_on_host(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct vclock *token = token_clock(r, t->space, e->event.dst);
    if (!token)
        return;
    bool ok = e->event.kind == EVENT_HOST_RELEASE ? vclock_join(token, &t->submitted)
                                                  : vclock_join(&t->submitted, token);
    r->no_memory |= !ok;
}

void handover_on_host_fn(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (e->event.kind != EVENT_HOST_FN_BEGIN || !reader_event(r->r, e->event.src, r->other))
        return;
    /* The stream runs it after what the thread that queued it had submitted. */
    const struct thread *by = replay_thread(r, r->other->event.thread);
    if (by && by != t && !vclock_join(&t->submitted, &by->submitted))
        r->no_memory = true;
}

static void check_use(struct replay *r, const struct use *u, struct thread *t) {
    struct block *b = space_at(t->space, u->start);
    uint64_t end = u->flags & USE_VAGUE ? (b ? block_end(b) : 0) : use_end(u);
    bool writes = u->access != USE_READ;
    if (!b || end <= u->start)
        return;
    if (!b->handed && !(b->handed = calloc(1, sizeof *b->handed))) {
        r->no_memory = true;
        return;
    }
    struct handed *h = b->handed;
    unsigned mine = HANDED_MAX;
    for (unsigned i = 0; i < HANDED_MAX && h->by[i].high; i++) {
        bool same = h->by[i].low == u->start && h->by[i].high == end && h->by[i].writes == writes;
        if (h->by[i].thread == t->id) {
            mine = same ? i : mine;
            continue;
        }
        if (h->by[i].low < end && u->start < h->by[i].high && (writes || h->by[i].writes) &&
            !vclock_covers(&t->submitted, h->by[i].thread, h->by[i].number))
            r->seen.pairs_by_time++;
    }
    if (mine == HANDED_MAX)
        mine = h->next++ % HANDED_MAX;
    h->by[mine].low = u->start;
    h->by[mine].high = end;
    h->by[mine].thread = t->id;
    h->by[mine].number = t->submissions;
    h->by[mine].writes = writes;
}

void handover_on_op(struct replay *r, const struct op *op, struct thread *t) {
    if (!vclock_raise(&t->submitted, t->id, ++t->submissions))
        r->no_memory = true;
    for (unsigned i = 0; i < op->count; i++)
        check_use(r, &op->use[i], t);
}
