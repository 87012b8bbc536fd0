/* errors.c - failing calls and device faults: which call reported what, and whether the program
 * looked at it.
 *
 * A device fault is sticky: it is reported by some later call and by every call after that. So the
 * first call that returns a sticky error is the messenger of a fault, and the calls after it say
 * nothing new.
 *
 * Whether a program looks at a result cannot be seen. What can be seen is what it does next: asking
 * for the error's text or for the last error is looking at it; queueing more work is going on. A
 * failing call whose program went on is only a finding once the failure has come up somewhere else:
 * the last error was read at another place, a pointer that was never allocated was used, or the
 * bytes that were not written were read.
 *
 * Some failures are part of asking: queries, "already enabled", "already registered". They are no
 * findings, and not even kept; but as the thread's last error they stay until somebody reads it,
 * and code that reads it after other work takes it for that work's. Whether such a read meant to
 * clear the error or to check for one shows in what follows: code that asks for its text, or ends
 * with an error, has been misled. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "verdict/effort.h"
#include "verdict/replay.h"

enum { FAILURES_MAX = 100000 };

/* ---- one event after the other --------------------------------------------------------------- */

static bool asks_about_errors(const struct replay *r, const struct event *e) {
    if (e->kind == EVENT_ERROR_READ || e->kind == EVENT_DEVICE_RESET)
        return true; /* a program that resets the device has noticed */
    if (e->kind != EVENT_CALL)
        return false;
    enum hip_fn fn = r->fn[event_fn(e)];
    return fn != HIP_FN_COUNT && hip_fn_class(fn) == HIP_CLASS_ERROR;
}

static bool kind_is_work(unsigned kind) {
    switch (kind) {
    case EVENT_COPY:
    case EVENT_COPY2D:
    case EVENT_SET:
    case EVENT_LAUNCH:
    case EVENT_HOST_FN:
    case EVENT_GRAPH_LAUNCH:
        return true;
    default:
        return false;
    }
}

static bool queues_work(const struct event *e) {
    return kind_is_work(e->kind);
}

/* Failures of these are part of asking, not of working. */
static bool may_fail(const struct replay *r, const struct event *e) {
    enum hip_fn fn = r->fn[event_fn(e)];
    if (e->kind != EVENT_CALL || fn == HIP_FN_COUNT)
        return false;
    enum hip_class c = hip_fn_class(fn);
    return fn != HIP_FN_hipSetDevice && /* after which all goes to another device */
           (c == HIP_CLASS_QUERY || c == HIP_CLASS_ERROR || c == HIP_CLASS_DEVICE ||
            c == HIP_CLASS_RTC);
}

static bool is_failure(const struct event *e) {
    switch (e->kind) {
    case EVENT_ERROR_READ:
    case EVENT_FAULT:
    case EVENT_LOST:
    case EVENT_EXTRA:
        return false;
    default:
        return e->status != hipSuccess && e->status != RECORD_PENDING &&
               hip_error_kind((hipError_t)e->status) != HIP_ERROR_ANSWER;
    }
}

/* In a child that was forked after its parent had used HIP all calls fail: the next one that fails
 * in the same way shows that nobody had looked at the first. Destructors that release what the
 * parent made do not count. */
static bool goes_on_forked(const struct event *e, const struct failure *f) {
    return f->status == hipErrorNotInitialized && e->status == hipErrorNotInitialized &&
           (kind_is_work(f->kind) || f->kind == EVENT_ALLOC);
}

static void react(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct failure *f = &r->failures[t->failure - 1];
    if (e->event.status == hipSuccess && r->fn[event_fn(&e->event)] == f->fn)
        f->made_again = true;
    if (is_failure(&e->event) && r->fn[event_fn(&e->event)] == f->fn && e->event.site == f->site)
        f->retry = e->seq;
    if (asks_about_errors(r, &e->event)) {
        f->looked = true;
        t->failure = 0;
    } else if (goes_on_forked(&e->event, f)) {
        f->went_on = true;
        f->surfaced = e->seq;
        t->failure = 0;
    } else if (queues_work(&e->event)) {
        f->went_on = true;
        t->failure = 0;
    }
}

/* What the program does with an error that it has read late. */
static void react_to_read(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (queues_work(&e->event)) {
        t->read = EVENT_NO_SEQ;
    } else if (e->event.kind == EVENT_CALL && asks_about_errors(r, &e->event)) {
        struct failure *f = replay_failure(r, t->read);
        if (f)
            f->asked = true;
        t->read = EVENT_NO_SEQ;
    }
}

static struct failure *add_failure(struct replay *r, const struct reader_event *e, struct thread *t,
                                   unsigned status) {
    if (r->failure_count == FAILURES_MAX) {
        r->failures_left_out++;
        return NULL;
    }
    struct failure *at = grow_array(r->failures, &r->failure_room, r->failure_count, sizeof *at);
    if (!at) {
        r->no_memory = true;
        return NULL;
    }
    r->failures = at;
    struct failure *f = &r->failures[r->failure_count++];
    *f = (struct failure){
        .seq = e->seq,
        .end_ns = event_latest_end_ns(&e->event),
        .safe = t->safe == EVENT_NO_SEQ ? EVENT_NO_SEQ : t->safe_op,
        .thread = e->event.thread,
        .site = e->event.site,
        .space = t->space,
        .fn = r->fn[event_fn(&e->event)],
        .kind = e->event.kind,
        .status = (uint16_t)status,
        .sticky = hip_error_is_sticky((hipError_t)status),
        .voiceless = e->event.kind == EVENT_LAUNCH && t->configured,
        .surfaced = EVENT_NO_SEQ,
        .retry = EVENT_NO_SEQ,
    };
    if (f->sticky && t->space->sticky == EVENT_NO_SEQ)
        t->space->sticky = f->seq;
    return f;
}

/* Indices of the failure at `index` are now one higher. */
static void moved_failure(struct replay *r, size_t index) {
    (void)effort_steps(r->thread_count);
    for (size_t i = 0; i < r->thread_count; i++)
        r->threads[i].failure += r->threads[i].failure == index + 1;
    for (size_t i = 0; i < r->lost_count; i++)
        r->lost[i].failure += r->lost[i].failure == index;
}

/* The failure that an error comes from, if it is not one of those that are kept: made from its
 * event, in its place in the list. */
static struct failure *recall(struct replay *r, uint64_t seq, unsigned error, struct thread *t) {
    struct reader_event *e = r->other;
    if (seq == EVENT_NO_SEQ || seq < r->gap || !reader_event(r->r, seq, e) ||
        e->event.status != error)
        return NULL;
    struct failure *f = add_failure(r, e, t, error);
    if (!f)
        return NULL;
    f->harmless = true;
    size_t at = (size_t)(f - r->failures);
    struct failure moved = *f;
    for (; at > 0 && r->failures[at - 1].seq > seq && !effort_is_spent(); at--) {
        r->failures[at] = r->failures[at - 1];
        moved_failure(r, at - 1);
    }
    r->failures[at] = moved;
    return &r->failures[at];
}

static void on_error_read(struct replay *r, const struct reader_event *e, struct thread *t) {
    unsigned error = (unsigned)e->event.dst;
    uint64_t from = e->event.src;
    struct failure *f = from == EVENT_NO_SEQ ? NULL : replay_failure(r, from);
    if (!f && error != hipSuccess && !hip_error_is_sticky((hipError_t)error) &&
        from != EVENT_NO_SEQ && t->last_work != EVENT_NO_SEQ && t->last_work > from &&
        (f = recall(r, from, error, t)))
        f->went_on = true;
    if (f && error != hipSuccess) {
        /* Read at once, the error is that call's; after other work it is taken for another's. */
        if (f->went_on && f->surfaced == EVENT_NO_SEQ)
            f->surfaced = e->seq;
        f->looked = true;
        t->read = f->went_on ? f->seq : EVENT_NO_SEQ;
    } else if (hip_error_is_sticky((hipError_t)error) && t->space->sticky == EVENT_NO_SEQ) {
        struct failure *fresh = add_failure(r, e, t, error);
        if (fresh)
            fresh->looked = true;
    }
}

/* The safe copy that a thread is in ends with its first call from elsewhere. */
static void follow_safe_copy(struct replay *r, const struct reader_event *e, struct thread *t) {
    if (e->event.kind == EVENT_SAFE_COPY) {
        const struct event_extra *x = reader_extra(e, EXTRA_SAFE);
        struct event_safe safe = x ? event_safe_of(x) : (struct event_safe){ .step = -1 };
        t->safe = e->seq;
        t->safe_op = EVENT_NO_SEQ;
        t->safe_site = e->event.site;
        t->safe_dst = e->event.dst;
        t->safe_src = e->event.src;
        t->safe_len = e->event.len;
        (void)safe;
        return;
    }
    if (t->safe == EVENT_NO_SEQ)
        return;
    if (e->event.site != t->safe_site) {
        t->safe = EVENT_NO_SEQ;
    } else if (e->event.kind == EVENT_COPY && t->safe_op == EVENT_NO_SEQ &&
               e->event.dst == t->safe_dst && e->event.src == t->safe_src &&
               e->event.len == t->safe_len) {
        t->safe_op = e->seq;
        r->seen.copies_safe++;
        r->seen.copies_d2h_safe += (event_detail(&e->event) & 7) == hipMemcpyDeviceToHost;
    }
}

static void check_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    follow_safe_copy(r, e, t);
    if (t->failure)
        react(r, e, t);
    if (t->read != EVENT_NO_SEQ)
        react_to_read(r, e, t);
    if (queues_work(&e->event))
        t->last_work = e->seq;
    if (event_fn(&e->event) != EVENT_NO_FN) {
        r->calls++;
        r->seen.threads += !t->calls;
        t->calls = true;
        if (!asks_about_errors(r, &e->event))
            t->space->stopped = is_failure(&e->event) && !may_fail(r, &e->event);
    }
    if (e->event.kind == EVENT_ERROR_READ) {
        on_error_read(r, e, t);
        return;
    }
    if (e->event.kind == EVENT_REFUSED &&
        event_detail(&e->event) == DETAIL_DECISION_DEVICE_FAILED &&
        t->space->sticky == EVENT_NO_SEQ) {
        (void)add_failure(r, e, t, hipErrorIllegalAddress);
        return;
    }
    if (!is_failure(&e->event))
        return;
    r->seen.calls_failed++;
    if (may_fail(r, &e->event) && !hip_error_is_sticky((hipError_t)e->event.status))
        return;
    r->checked[HYPOTHESIS_UNCHECKED_ERROR]++;
    struct failure *f = add_failure(r, e, t, e->event.status);
    if (f)
        t->failure = (size_t)(f - r->failures) + 1;
}

void errors_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    check_event(r, e, t);
    if (event_fn(&e->event) != EVENT_NO_FN)
        t->configured = r->fn[event_fn(&e->event)] == HIP_FN___hipPopCallConfiguration;
}

void errors_on_dropped(struct replay *r, const struct reader_event *e) {
    struct failure *f = replay_failure(r, e->event.dst);
    if (f)
        f->dropped = true;
}

void errors_on_reset(struct replay *r, struct thread *t) {
    (void)r;
    t->space->sticky = t->space->fault = EVENT_NO_SEQ;
}

/* ---- bytes that were not written ------------------------------------------------------------- */

static bool reads_lost(const struct op *op, const struct lost_write *l) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct use *u = &op->use[i];
        if (u->access & USE_READ && u->start < l->end &&
            (u->flags & USE_VAGUE ? u->start >= l->start : l->start < use_end(u)))
            return true;
    }
    return false;
}

static bool writes_lost(const struct op *op, const struct lost_write *l) {
    for (unsigned i = 0; i < op->count; i++) {
        const struct use *u = &op->use[i];
        if (u->access != USE_READ && u->start < l->end &&
            (u->flags & USE_VAGUE || l->start < use_end(u)))
            return true;
    }
    return false;
}

void errors_on_op(struct replay *r, const struct op *op, struct thread *t) {
    size_t kept = 0;
    for (size_t i = 0; i < r->lost_count; i++) {
        struct lost_write *l = &r->lost[i];
        bool same = l->space == t->space;
        struct failure *f = &r->failures[l->failure];
        if (same && f->surfaced == EVENT_NO_SEQ && reads_lost(op, l) && op->seq > f->seq)
            f->surfaced = op->seq;
        if (!same || !(writes_lost(op, l) || f->surfaced != EVENT_NO_SEQ))
            r->lost[kept++] = *l;
    }
    r->lost_count = kept;
}

void errors_lost_write(struct replay *r, const struct op *op, struct thread *t) {
    struct failure *f = replay_failure(r, op->seq);
    if (!f || f->sticky || op->what == SHADOW_LAUNCH)
        return;
    for (unsigned i = 0; i < op->count && r->lost_count < LOST_WRITES_MAX; i++) {
        const struct use *u = &op->use[i];
        if (u->access & USE_WRITE && use_end(u) && space_at(t->space, u->start))
            r->lost[r->lost_count++] =
                (struct lost_write){ t->space, u->start, use_end(u), (size_t)(f - r->failures) };
    }
}

/* ---- after the last event -------------------------------------------------------------------- */

static bool makes_something(const struct failure *f) {
    return f->kind == EVENT_ALLOC || f->kind == EVENT_STREAM_CREATE ||
           f->kind == EVENT_EVENT_CREATE || f->kind == EVENT_MODULE_LOAD ||
           f->kind == EVENT_FUNCTION;
}

static bool misses_something(const struct failure *f) {
    return f->status == hipErrorInvalidValue || f->status == hipErrorInvalidHandle ||
           f->status == hipErrorInvalidDevicePointer || f->status == hipErrorContextIsDestroyed ||
           f->status == hipErrorNotInitialized || /* in a forked child nothing works */
           f->status == hipErrorInvalidDeviceFunction || f->status == hipErrorNotFound;
}

/* Where a failure came up again, if nothing has said so yet. */
static uint64_t find_surface(const struct replay *r, const struct failure *f) {
    if (f->surfaced != EVENT_NO_SEQ)
        return f->surfaced;
    for (const struct failure *g = f + 1; g < r->failures + r->failure_count && effort_steps(1);
         g++) {
        if (g->space != f->space || g->thread != f->thread)
            continue;
        if (f->sticky ? g->sticky : makes_something(f) && !g->sticky && misses_something(g))
            return g->seq;
    }
    return EVENT_NO_SEQ;
}

/* If the function belongs to a module whose loading failed unnoticed, that failure; else NULL. */
static struct failure *find_load(struct replay *r, const struct failure *f) {
    for (struct failure *g = (struct failure *)f; g-- > r->failures;) {
        if (g->space != f->space || g->thread != f->thread)
            continue;
        bool loads = g->kind == EVENT_MODULE_LOAD && !g->looked && !g->made_again && !g->explained;
        return f->kind == EVENT_FUNCTION && misses_something(f) && loads ? g : NULL;
    }
    return NULL;
}

static void add_unchecked(struct replay *r, struct failure *f, uint64_t surfaced) {
    struct failure *load = find_load(r, f);
    if (load) {
        f->explained = true;
        f = load;
    }
    struct found x = {
        .hypothesis = HYPOTHESIS_UNCHECKED_ERROR,
        .culprit = f->seq,
        .other = EVENT_NO_SEQ,
        .messenger = surfaced,
        .order = f->seq,
        .argument = -1,
        .failed = true,
        .process = f->space->process,
    };
    x.said =
        SAY(&r->words, UNCHECKED, A_SENTENCE(findings_event(r, f->seq)),
            A_NAME(hip_error_name((hipError_t)f->status)), A_SENTENCE(findings_event(r, surfaced)));
    findings_add(r, &x);
    struct failure *g = replay_failure(r, surfaced);
    if (g && !f->sticky)
        g->explained = true;
    if (!f->sticky)
        f->explained = true;
}

/* Did the thread stop at the error that it had read, and the run end with a failure? */
static bool ended_badly(const struct replay *r, const struct failure *f) {
    const char *status = reader_provenance_find(r->r, "run.exit");
    return f->thread < r->thread_count && r->threads[f->thread].read == f->seq && status &&
           strcmp(status, "0") != 0;
}

/* Would nothing else show the program that the call failed? A handle or a pointer that was not made
 * shows when it is used, and what could not be released is mostly gone already. */
static bool owes_something(const struct failure *f) {
    switch (f->kind) {
    case EVENT_SYNC:
    case EVENT_EVENT_RECORD:
    case EVENT_EVENT_WAIT:
    case EVENT_EVENT_SYNC:
        return true;
    default:
        return kind_is_work(f->kind) || f->fn == HIP_FN_hipSetDevice ||
               f->fn == HIP_FN_hipEventElapsedTime;
    }
}

/* Work that was not done and that no second try did, without any sign of it for the program. */
static bool is_dropped(const struct failure *f) {
    return f->dropped && owes_something(f) && !f->harmless && !f->made_again;
}

/* Only hipGetLastError() would have shown it, and the program did not call it until its end. */
static bool is_unheard(const struct replay *r, const struct failure *f) {
    return (f->voiceless || (is_dropped(f) && find_surface(r, f) == EVENT_NO_SEQ)) && !f->looked &&
           !f->explained && !f->sticky && f->seq >= r->gap && f->space->ended;
}

static void add_unheard(struct replay *r, struct failure *f) {
    struct found x = {
        .hypothesis = HYPOTHESIS_UNCHECKED_ERROR,
        .culprit = f->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = f->seq,
        .argument = -1,
        .process = f->space->process,
    };
    const struct sentence_value call = A_SENTENCE(findings_event(r, f->seq)),
                                error = A_NAME(hip_error_name((hipError_t)f->status));
    x.said = f->voiceless ? SAY(&r->words, UNCHECKED_LAUNCH, call, error)
                          : SAY(&r->words, UNCHECKED_DROPPED, call, error);
    findings_add(r, &x);
    f->explained = true;
}

static void check_unchecked(struct replay *r) {
    bool sticky_done = false;
    for (size_t i = 0; i < r->failure_count; i++) {
        struct failure *f = &r->failures[i];
        if (f->kind == EVENT_FUNCTION && !f->went_on && !f->explained && find_load(r, f)) {
            add_unchecked(r, f, f->seq);
            continue;
        }
        bool late = f->surfaced != EVENT_NO_SEQ && f->went_on;
        if (f->surfaced == EVENT_NO_SEQ && is_unheard(r, f)) {
            add_unheard(r, f);
            continue;
        }
        if (!f->went_on || (f->looked && !late) || f->kind == EVENT_FREE ||
            (f->explained && !f->sticky) || (f->harmless && !f->asked && !ended_badly(r, f)))
            continue;
        if (f->sticky && (sticky_done || f->kind == EVENT_LAUNCH))
            continue;
        sticky_done |= f->sticky;
        uint64_t surfaced = find_surface(r, f);
        if (surfaced != EVENT_NO_SEQ)
            add_unchecked(r, f, surfaced);
        else if (!f->explained && !f->sticky && f->kind != EVENT_ALLOC)
            findings_undecided(r, HYPOTHESIS_UNCHECKED_ERROR,
                               sentence_plain(SENTENCE_DOUBT_LOOKED));
    }
}

/* ---- captures that a failing call made invalid ----------------------------------------------- */

static bool is_about_capture(unsigned status) {
    return status >= hipErrorStreamCaptureUnsupported && status <= hipErrorStreamCaptureWrongThread;
}

/* The call that broke the capture of the stream that f was about: the first that failed since the
 * capture had begun, on whatever thread; EVENT_NO_SEQ: it is not in the recording. */
static uint64_t find_breaker(struct replay *r, const struct failure *f) {
    enum { LOOK = 1 << 20 };
    struct reader_event *e = r->other;
    uint64_t found = EVENT_NO_SEQ, stop = f->seq > LOOK ? f->seq - LOOK : 0;
    uint32_t stream = reader_event(r->r, f->seq, e) ? e->event.stream : 0;
    for (uint64_t seq = f->seq; stream && seq-- > stop && effort_steps(64);) {
        if (!reader_event(r->r, seq, e))
            continue;
        if (e->event.kind == EVENT_CAPTURE_BEGIN && e->event.stream == stream)
            return found;
        const struct thread *t = replay_thread(r, e->event.thread);
        if (is_failure(&e->event) && is_about_capture(e->event.status) &&
            e->event.status != hipErrorStreamCaptureInvalidated && t && t->space == f->space)
            found = seq;
    }
    return EVENT_NO_SEQ;
}

static void explain_capture(struct replay *r, struct failure *f) {
    uint64_t breaker = find_breaker(r, f);
    struct reader_event *e = r->other;
    if (breaker == EVENT_NO_SEQ || breaker < r->gap || !reader_event(r->r, breaker, e))
        return;
    struct found x = {
        .hypothesis = HYPOTHESIS_UNCHECKED_ERROR,
        .culprit = breaker,
        .other = EVENT_NO_SEQ,
        .messenger = f->seq,
        .order = breaker,
        .argument = -1,
        .failed = true,
        .process = f->space->process,
    };
    const char *error = hip_error_name((hipError_t)e->event.status);
    x.said = SAY(&r->words, CAPTURE_BROKEN, A_SENTENCE(findings_event(r, breaker)), A_NAME(error),
                 A_SENTENCE(findings_event(r, f->seq)));
    findings_add(r, &x);
    struct failure *broke = replay_failure(r, breaker);
    if (broke)
        broke->explained = true;
    f->explained = true;
}

static void explain_captures(struct replay *r) {
    for (size_t i = 0; i < r->failure_count; i++)
        if (r->failures[i].status == hipErrorStreamCaptureInvalidated && !r->failures[i].explained)
            explain_capture(r, &r->failures[i]);
}

/* ---- allocations that failed ----------------------------------------------------------------- */

static bool got_null(struct replay *r, uint64_t launch) {
    struct event_arg args[EVENT_ARGS_PER_SLOT];
    struct reader_event *e = r->other;
    if (launch == EVENT_NO_SEQ || !reader_event(r->r, launch, e) || e->event.kind != EVENT_LAUNCH)
        return false;
    for (unsigned i = 0; i < e->extras; i++)
        if (event_extra_type(&e->extra[i]) == EXTRA_ARGS)
            for (unsigned k = 0, n = event_args_of(&e->extra[i], args); k < n; k++)
                if (!(args[k].flags & EVENT_ARG_NUMBER) && !args[k].value)
                    return true;
    return false;
}

/* Had nobody looked at the failure when the launch was made? */
static bool is_unseen_at(const struct failure *f, uint64_t launch) {
    return !f->looked || (f->surfaced != EVENT_NO_SEQ && f->surfaced > launch);
}

/* The null pointer that a kernel met is what the last failed allocation before it left, if nobody
 * had looked at that. */
static void blame_allocation(struct replay *r, struct found *x) {
    const struct failure *cause = NULL;
    for (size_t i = 0; i < r->failure_count && r->failures[i].seq < x->culprit; i++) {
        const struct failure *f = &r->failures[i];
        if (f->kind == EVENT_ALLOC && is_unseen_at(f, x->culprit) && !f->sticky &&
            f->space->process == x->process && f->seq >= r->gap)
            cause = f;
    }
    if (!cause || !got_null(r, x->culprit))
        return;
    x->also |= 1u << HYPOTHESIS_INVALID_POINTER;
    x->hypothesis = HYPOTHESIS_UNCHECKED_ERROR;
    x->said = findings_keep(
        r, SAY(&r->words, UNCHECKED_NULL, A_SENTENCE(findings_event(r, cause->seq)),
               A_NAME(hip_error_name((hipError_t)cause->status)), A_SENTENCE(x->said)));
    x->other = x->culprit;
    x->culprit = cause->seq;
    x->argument = -1;
    findings_evidence(x, cause->seq);
    replay_failure(r, cause->seq)->explained = true;
}

static void blame_allocations(struct replay *r) {
    for (size_t i = 0; i < r->found.count; i++) {
        struct found *x = &r->found.at[i];
        if (x->hypothesis == HYPOTHESIS_INVALID_POINTER && x->fault)
            blame_allocation(r, x);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* The first call that reported a fault; an unchecked launch only if no other call did. */
static struct failure *find_messenger(struct replay *r, const struct space *s, uint64_t since_ns) {
    struct failure *first = NULL;
    for (size_t i = 0; i < r->failure_count; i++) {
        struct failure *f = &r->failures[i];
        if (f->space != s || !f->sticky || f->end_ns < since_ns)
            continue;
        if (!first)
            first = f;
        if (f->kind != EVENT_LAUNCH || f->looked || !f->went_on)
            return f->kind != EVENT_LAUNCH || f->looked ? f : first;
    }
    return first;
}

/* The messenger of a failure that is part of a safe copy is that copy. */
static uint64_t messenger_event(const struct failure *f) {
    return f->safe != EVENT_NO_SEQ ? f->safe : f->seq;
}

static void finish_faults(struct replay *r) {
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *fault = &r->faults[i];
        struct failure *f = find_messenger(r, fault->space, fault->t_ns);
        if (!fault->found || !f)
            continue;
        struct found *x = &r->found.at[fault->found - 1];
        f->explained = true;
        x->messenger = messenger_event(f);
        x->failed = true;
        findings_evidence(x, x->messenger);
        findings_evidence(x, f->seq);
    }
}

/* ---- sticky errors of a device that does not say who did it ---------------------------------- */

static bool may_fault(enum verdict_hypothesis_id id) {
    switch (id) {
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_SHAPE_MISMATCH:
    case HYPOTHESIS_BAD_OFFSET:
    case HYPOTHESIS_INVALID_POINTER:
    case HYPOTHESIS_USE_AFTER_FREE:
        return true;
    default:
        return false;
    }
}

struct in_flight {
    uint64_t first, count;
    char names[120];
};

/* Launches that nobody had waited for when the error came. */
static struct in_flight launches_in_flight(struct replay *r, const struct space *s,
                                           uint64_t before) {
    struct in_flight x = { .first = EVENT_NO_SEQ };
    enum { LOOK = 10000 };
    unsigned looked = 0;
    for (size_t i = 0; i < s->stream_count && effort_steps(r->thread_count); i++) {
        const struct lane *l = &r->lanes[s->streams[i]->lane];
        uint32_t known = 0;
        for (size_t k = 0; k < r->thread_count; k++)
            if (r->threads[k].space == s &&
                vclock_get(&r->threads[k].known, s->streams[i]->lane) > known)
                known = vclock_get(&r->threads[k].known, s->streams[i]->lane);
        for (uint32_t n = known; n < l->last && looked < LOOK; n++, looked++) {
            struct reader_event *e = r->other;
            if (l->seqs[n] > before || !reader_event(r->r, l->seqs[n], e) ||
                (e->event.kind != EVENT_LAUNCH && e->event.kind != EVENT_GRAPH_LAUNCH))
                continue;
            size_t used = strlen(x.names);
            if (x.count < 3)
                snprintf(x.names + used, sizeof x.names - used, "%s%s", used ? ", " : "",
                         reader_event_name(r->r, &e->event));
            x.first = x.first == EVENT_NO_SEQ || l->seqs[n] < x.first ? l->seqs[n] : x.first;
            x.count++;
        }
    }
    return x;
}

static void explain_sticky(struct replay *r, struct failure *f) {
    for (size_t i = 0; i < r->found.count; i++) {
        struct found *x = &r->found.at[i];
        if (may_fault(x->hypothesis) && !x->failed && x->order < f->seq &&
            x->process == f->space->process) {
            x->failed = true;
            x->also |= 1u << HYPOTHESIS_UPSTREAM_KERNEL_FAULT;
            x->messenger = messenger_event(f);
            f->explained = true;
            return;
        }
    }
    struct in_flight launches = launches_in_flight(r, f->space, f->seq);
    struct found x = {
        .hypothesis = HYPOTHESIS_UPSTREAM_KERNEL_FAULT,
        .culprit = launches.count == 1 ? launches.first : EVENT_NO_SEQ,
        .other = EVENT_NO_SEQ,
        .messenger = messenger_event(f),
        .order = launches.first != EVENT_NO_SEQ ? launches.first : f->seq,
        .argument = -1,
        .failed = true,
        .process = f->space->process,
    };
    if (launches.count == 0) {
        findings_undecided(r, HYPOTHESIS_UPSTREAM_KERNEL_FAULT,
                           sentence_plain(SENTENCE_DOUBT_STICKY));
        return;
    }
    const struct sentence_value who = A_SENTENCE(findings_event(r, f->seq)),
                                error = A_NAME(hip_error_name((hipError_t)f->status));
    x.said = launches.count == 1 ? SAY(&r->words, STICKY_ONE, who, error, A_NAME(launches.names))
                                 : SAY(&r->words, STICKY_MANY, who, error, A_NUMBER(launches.count),
                                       A_NAME(launches.names), A_NUMBER(launches.count > 3));
    findings_evidence(&x, launches.first);
    findings_add(r, &x);
    f->explained = launches.count == 1;
}

/* Failures that nothing has explained, and that say themselves what is wrong. */
static void explain_refusals(struct replay *r) {
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];
        struct thread *t = f->explained || f->sticky ? NULL : replay_thread(r, f->thread);
        if (t && reader_event(r->r, f->seq, r->event) && op_read(r, r->event, r->op))
            bounds_on_refusal(r, r->op, t);
    }
}

/* A program that tries until a call succeeds has looked at every failure before that. */
static void follow_retries(struct replay *r) {
    for (size_t i = r->failure_count; i-- > 0;) {
        struct failure *f = &r->failures[i];
        const struct failure *next = f->retry == EVENT_NO_SEQ ? NULL : replay_failure(r, f->retry);
        f->made_again |= next && next->made_again;
    }
}

void errors_finish(struct replay *r) {
    follow_retries(r);
    finish_faults(r);
    for (size_t i = 0; i < r->space_count; i++) {
        struct space *s = r->spaces[i];
        struct failure *f = find_messenger(r, s, 0);
        if (f && !f->explained && s->fault == EVENT_NO_SEQ)
            explain_sticky(r, f);
    }
    blame_allocations(r);
    explain_captures(r);
    check_unchecked(r);
    explain_refusals(r);
}
