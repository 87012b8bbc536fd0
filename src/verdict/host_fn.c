/* host_fn.c - host functions and callbacks: operations of a stream that host code carries out.
 *
 * What such a function does itself to memory comes after all that is before it in its stream, and
 * before all that comes after it there, or in another stream that waits for it. The first is what
 * its thread knows while it runs. For the second, operations on memory that the host reaches leave
 * their clocks here as long as there are functions that have not returned: an operation whose clock
 * has the function in it comes after whatever the function does. So do all operations while a wait
 * for a value is open whose write is queued later (values_late.c).
 *
 * HIP forbids such a function to call HIP: docs/adr/0067-calls-from-host-functions.md. */
#include <stdlib.h>

#include "verdict/replay.h"

static struct host_fn *find_or_make(struct replay *r, struct space *s, uint64_t seq) {
    struct host_fn *f = table_find(&s->host_fns, seq);
    if (f)
        return f;
    f = calloc(1, sizeof *f);
    if (!f || !table_set(&s->host_fns, seq, f)) {
        free(f);
        r->no_memory = true;
        return NULL;
    }
    return f;
}

void host_fn_queued(struct replay *r, struct space *s, uint64_t seq, uint32_t lane,
                    const struct vclock *clock) {
    struct host_fn *f = find_or_make(r, s, seq);
    if (!f)
        return;
    f->lane = lane;
    f->number = before_number(r, lane);
    if (!vclock_copy(&f->before, clock))
        r->no_memory = true;
}

static void forget_clocks(struct space *s) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(&s->op_clocks, &at));) {
        vclock_free(e->value);
        free(e->value);
    }
    table_clear(&s->op_clocks);
}

void host_fn_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct host_fn *f = table_find(&t->space->host_fns, e->event.src);
    t->host_fn_begin = EVENT_NO_SEQ;
    if (e->event.kind == EVENT_HOST_FN_BEGIN) {
        r->checked[HYPOTHESIS_CALL_IN_CALLBACK]++;
        t->host_fn_begin = e->seq;
        t->host_fn_lane = f ? f->lane : 0;
        t->host_fn_number = f ? f->number : 0;
        if (f)
            before_wait_clock(r, t, &f->before, e->event.t_ns);
        return;
    }
    t->host_fn_number = 0;
    if (!f)
        return;
    (void)table_remove(&t->space->host_fns, e->event.src);
    vclock_free(&f->before);
    free(f);
    if (!t->space->host_fns.count && !r->values_to_come)
        forget_clocks(t->space);
}

/* ---- calls from inside ----------------------------------------------------------------------- */

/* Reading an error, or its text, touches neither device nor stream. What the compiler adds around a
 * launch is not the call that the program wrote. */
static bool may_be_called(const struct replay *r, const struct event *e) {
    enum hip_fn fn = r->fn[event_fn(e)];
    enum hip_class c = fn == HIP_FN_COUNT ? HIP_CLASS_QUERY : hip_fn_class(fn);
    return c == HIP_CLASS_ERROR || c == HIP_CLASS_REGISTER;
}

/* The first call stands for all that the function makes. One that never returned is where the
 * program stopped. */
void host_fn_on_call(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (t->host_fn_begin == EVENT_NO_SEQ || event_fn(&e->event) == EVENT_NO_FN ||
        may_be_called(r, &e->event))
        return;
    uint64_t begin = t->host_fn_begin;
    t->host_fn_begin = EVENT_NO_SEQ;
    if (!reader_event(r->r, begin, r->other))
        return;
    uint64_t queued = r->other->event.src;
    bool stuck = event_is_pending(&e->event);
    struct found f = {
        .hypothesis = HYPOTHESIS_CALL_IN_CALLBACK,
        .culprit = e->seq,
        .other = queued,
        .messenger = stuck ? e->seq : EVENT_NO_SEQ,
        .order = e->seq,
        .argument = -1,
        .failed = stuck,
        .process = t->space->process,
    };
    findings_evidence(&f, begin);
    f.said = SAY(&r->words, CALL_IN_CALLBACK, A_SENTENCE(findings_event(r, queued)),
                 A_SENTENCE(findings_event(r, e->seq)), A_NUMBER(e->event.kind == EVENT_LAUNCH));
    findings_add(r, &f);
}

/* ---- what comes after them ------------------------------------------------------------------- */

static uint64_t clock_key(uint32_t lane, uint32_t number) {
    return (uint64_t)lane << 32 | number;
}

static bool reaches_host(struct space *s, const struct op *op) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct block *b = space_at(s, op->use[i].start);
        if (b && space_side(b) == SPACE_BOTH)
            return true;
    }
    return false;
}

void host_fn_note_op(struct replay *r, struct space *s, const struct op *op,
                     const struct shadow_mark *me, const struct vclock *clock) {
    enum { CLOCKS_MAX = 1 << 16 };
    bool wanted = r->values_to_come || (s->host_fns.count && reaches_host(s, op));
    if (!wanted || s->op_clocks.count >= CLOCKS_MAX)
        return;
    struct vclock *copy = calloc(1, sizeof *copy);
    if (!copy || !vclock_copy(copy, clock) ||
        !table_set(&s->op_clocks, clock_key(me->lane, me->number), copy)) {
        if (copy)
            vclock_free(copy);
        free(copy);
        r->no_memory = true;
    }
}

const struct vclock *host_fn_clock_of(const struct space *s, const struct shadow_mark *op) {
    return table_find(&s->op_clocks, clock_key(op->lane, op->number));
}

bool host_fn_is_before(const struct thread *t, const struct shadow_mark *op) {
    const struct vclock *clock = t->host_fn_number ? host_fn_clock_of(t->space, op) : NULL;
    return clock && vclock_covers(clock, t->host_fn_lane, t->host_fn_number);
}

void host_fn_free_space(struct space *s) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(&s->host_fns, &at));) {
        struct host_fn *f = e->value;
        vclock_free(&f->before);
        free(f);
    }
    table_clear(&s->host_fns);
    forget_clocks(s);
}
