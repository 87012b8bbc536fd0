/* values.c - streams that wait for a value in memory.
 *
 * Such a wait ends after whatever wrote the value: an operation of any stream, a kernel, the host.
 * Which of them it was is not in the recording, so a wait may order what nothing else orders, and
 * two accesses that it may order are neither accused nor called ordered. It cannot order
 * everything: once the host knows that it is over, nothing that is queued from then on comes before
 * it. */
#include <stdlib.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

enum { WAITS_MAX = 1024 };

static void give_up(struct replay *r) {
    r->order_doubt = sentence_plain(SENTENCE_DOUBT_VALUES);
}

void values_on_wait(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (!before_succeeded(&e->event))
        return;
    struct stream *s = e->event.stream && !event_is_captured(&e->event)
                           ? before_stream(r, e->event.stream, t)
                           : NULL;
    if (!s || r->value_wait_count == WAITS_MAX) {
        give_up(r);
        return;
    }
    if (!r->value_waits && !(r->value_waits = calloc(WAITS_MAX, sizeof *r->value_waits))) {
        r->no_memory = true;
        return;
    }
    before_enter(r, s, t);
    r->value_waits[r->value_wait_count++] = (struct value_wait){
        .space = t->space,
        .lane = s->lane,
        .number = before_number(r, s->lane),
        .over = EVENT_NO_SEQ,
    };
    before_done(r, &s->clock, s->lane, e->seq);
    before_changed(r, s);
}

void values_on_access(struct replay *r, const struct thread *t, uint64_t seq) {
    (void)effort_steps(r->value_wait_count);
    for (size_t i = 0; i < r->value_wait_count; i++) {
        struct value_wait *w = &r->value_waits[i];
        if (w->over == EVENT_NO_SEQ && w->space == t->space &&
            vclock_covers(&t->known, w->lane, w->number))
            w->over = seq;
    }
}

bool values_may_order(const struct replay *r, const struct space *s, const struct vclock *clock,
                      uint64_t first) {
    (void)effort_steps(r->value_wait_count);
    for (size_t i = 0; i < r->value_wait_count; i++) {
        const struct value_wait *w = &r->value_waits[i];
        if (w->space == s &&
            (w->over == EVENT_NO_SEQ ||
             (first < w->over && (!clock || vclock_covers(clock, w->lane, w->number)))))
            return true;
    }
    return false;
}
