/* values.c - streams that wait for a value in memory.
 *
 * Such a wait ends after whatever wrote the value: an operation of any stream, a kernel, the host.
 * If a stream wrote it, the software device says which write it was, and the wait comes after what
 * that stream had done until then, as if an event had been recorded there. The write may be queued
 * after the wait: values_late.c.
 *
 * Without such a statement a wait may order what nothing else orders, and two accesses that it may
 * order are neither accused nor called ordered. It cannot order everything: once the host knows
 * that it is over, nothing that is queued from then on comes before it. */
#include <stdlib.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

enum { WAITS_MAX = 1024, WRITES_MAX = 4096 };

/* ---- what the device says ------------------------------------------------------------------- */

/* Statements come after the wait has ended, and are needed where it was queued: all are looked for
 * at the first write or wait. Of a write that one of them names, the stream's clock is kept. */
static void find_all(struct replay *r, uint64_t from) {
    struct reader_cursor c = reader_events(r->r, from, UINT64_MAX);
    r->values_are_known = true;
    while (!r->no_memory && r->values.count < WRITES_MAX && reader_next(&c, r->said)) {
        const struct event *e = &r->said->event;
        if (e->kind == EVENT_VALUE_MET && !table_find(&r->values, e->dst) &&
            (!table_set(&r->values, e->dst, (void *)(uintptr_t)(e->src + 1)) ||
             !table_set(&r->writes, e->src, &r->unwritten)))
            r->no_memory = true;
    }
}

void values_on_write(struct replay *r, const struct reader_event *e, struct thread *t) {
    enum hip_fn fn = r->fn[event_fn(&e->event)];
    if ((fn != HIP_FN_hipStreamWriteValue32 && fn != HIP_FN_hipStreamWriteValue64) ||
        !before_succeeded(&e->event) || !e->event.stream)
        return;
    if (!r->values_are_known)
        find_all(r, e->seq);
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s || !table_find(&r->writes, e->seq))
        return;
    struct vclock *clock = calloc(1, sizeof *clock);
    if (!clock || !vclock_copy(clock, &s->clock) || !table_set(&r->writes, e->seq, clock)) {
        if (clock)
            vclock_free(clock);
        free(clock);
        r->no_memory = true;
        return;
    }
    values_late_met(r, e->seq, clock);
}

/* The clock of the write that the device named for this wait; NULL if that is not known. */
static const struct vclock *find_write(struct replay *r, uint64_t wait) {
    if (!r->values_are_known)
        find_all(r, wait);
    uintptr_t write = (uintptr_t)table_find(&r->values, wait);
    const struct vclock *clock = write ? table_find(&r->writes, write - 1) : NULL;
    return clock == &r->unwritten ? NULL : clock;
}

void values_close(struct replay *r) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(&r->writes, &at));) {
        if (e->value == &r->unwritten)
            continue;
        vclock_free(e->value);
        free(e->value);
    }
    table_clear(&r->writes);
    table_clear(&r->values);
    free(r->value_waits);
    values_late_close(r);
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void give_up(struct replay *r) {
    r->order_doubt = sentence_plain(SENTENCE_DOUBT_VALUES);
}

/* The stream continues after the write, as after an event. */
static void follow(struct replay *r, struct stream *s, struct thread *t,
                   const struct vclock *write) {
    before_enter(r, s, t);
    if (!vclock_join(&s->clock, write))
        r->no_memory = true;
    before_changed(r, s);
}

void values_on_wait(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (!before_succeeded(&e->event))
        return;
    struct stream *s = e->event.stream && !event_is_captured(&e->event)
                           ? before_stream(r, e->event.stream, t)
                           : NULL;
    /* A batch may hold several waits, and the device names it for each of them. */
    bool alone = r->fn[event_fn(&e->event)] != HIP_FN_hipStreamBatchMemOp;
    const struct vclock *write = s && alone ? find_write(r, e->seq) : NULL;
    if (write) {
        follow(r, s, t, write);
        return;
    }
    if (!s || r->value_wait_count == WAITS_MAX) {
        give_up(r);
        return;
    }
    if (!r->value_waits && !(r->value_waits = calloc(WAITS_MAX, sizeof *r->value_waits))) {
        r->no_memory = true;
        return;
    }
    before_enter(r, s, t);
    uintptr_t named = alone ? (uintptr_t)table_find(&r->values, e->seq) : 0;
    bool late = named && named - 1 > e->seq;
    r->values_to_come += late;
    r->value_waits[r->value_wait_count++] = (struct value_wait){
        .space = t->space,
        .lane = s->lane,
        .number = before_number(r, s->lane),
        .over = EVENT_NO_SEQ,
        .write = late ? named : 0,
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
                      uint64_t first, uint64_t last) {
    (void)effort_steps(r->value_wait_count);
    for (size_t i = 0; i < r->value_wait_count; i++) {
        const struct value_wait *w = &r->value_waits[i];
        if (w->met) { /* then it is part of the clocks */
            if (w->space == s && !clock && last < w->met)
                return true;
            continue;
        }
        if (w->space == s &&
            (w->over == EVENT_NO_SEQ ||
             (first < w->over && (!clock || vclock_covers(clock, w->lane, w->number)))))
            return true;
    }
    return false;
}
