/* schedule.c - which operation runs when.
 *
 * An operation may run when it is at the head of its stream, everything it depends on has completed
 * (struct soft_dep; stream.c puts HIP's rules into these), and the policy allows it. The policies
 * differ only in how far a stream is allowed to go (soft_stream.allowed):
 *
 *   fast    everything, at once;
 *   eager   everything, and a submission waits (EAGER_NS at most) until its operation has run;
 *   lazy    only what somebody waits for, and what that depends on, one operation at a time; where
 *           HIP leaves the order of streams open, the one that got work last goes first, so that
 *           work that forgot to wait for another stream's comes before it;
 *   random  one operation at a time, drawn from all that could run, a few at each submission and as
 *           many as it takes at each wait: the same seed gives the same order.
 *
 * Operations run on the dispatcher thread, kernels on all cores (pool.c), host functions on threads
 * of their own because they may block. HIP promises progress even to a program that only looks at
 * pinned memory or waits for its own condition variable; so a watchdog lets held work go when the
 * program has made no call for IDLE_NS, and adds a dispatcher when one is stuck in a kernel that
 * waits for something only another stream or the host will do.
 *
 * A thread that waits does not watch the dispatcher: it runs what it waits for itself, unless that
 * is running already. So a launch that is waited for at once needs no other thread at all, however
 * busy the machine is. What it runs is always something it would have had to wait for.
 *
 * One spin lock guards all queues; no operation runs under it. Operations are taken from a queue
 * and put away in batches (struct batch), so that a thread that queues and one that runs seldom
 * meet at the lock. */
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/spin.h"
#include "soft/runtime/host.h"
#include "soft/runtime/op.h"
#include "soft/runtime/rest.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/stream.h"
#include "soft/runtime/thread.h"

#define MS 1000000ll
static const int64_t EAGER_NS = 200 * MS, RANDOM_NS = 50 * MS, TICK_NS = 20 * MS;
static const uint64_t IDLE_NS = 1000 * MS;
enum { SPIN_NS = 50000, LOOKS_A_CLOCK = 64, DISPATCHERS_MAX = 64, BATCH_MAX = 16, HELP_DEPTH = 8 };
/* How long a thread stays awake beyond SPIN_NS: one that waits, and the dispatcher, which naps
 * meanwhile. */
enum {
    AWAIT_NS = 1000000,
    LINGER_NS = 20000000,
    NAP_NS = 50000,
    NAP_MOST_NS = 1000000,
    LEAVE_NS = 20000
};

/* Grouped by who writes when: threads that queue, run and wait must not share cache lines that they
 * do not mean to share. */
static struct {
    void (*run)(struct soft_op *op); /* these two are set once, at the start */
    void (*emptied)(struct soft_stream *stream);
    _Alignas(64) struct spin lock;
    struct soft_stream *active; /* streams with queued work, most recently served last */
    uint64_t random;
    unsigned running;         /* batches that run, without host functions and what is stuck */
    _Atomic uint64_t retired; /* operations that have left them; written under the lock */

    _Alignas(64) _Atomic uint32_t work; /* changes when something may have become runnable */
    _Atomic uint32_t asleep;            /* the dispatcher is, or is about to be */

    _Alignas(64) _Atomic uint32_t progress; /* changes when an operation has completed and somebody
                                               sleeps */
    _Atomic uint32_t progress_sleepers;

    _Alignas(64) _Atomic unsigned dispatchers;
    _Atomic unsigned busy;
    _Atomic uint64_t last_call_ns; /* lazy and random only */
    _Atomic uint32_t watchdog_asleep;
    unsigned spin_ns;
} s;

void soft_schedule_lock(void) {
    spin_lock(&s.lock);
}
void soft_schedule_unlock(void) {
    spin_unlock(&s.lock);
}

static bool is_complete(const struct soft_stream *stream, uint64_t seq) {
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= seq;
}

/* The first caller wakes it; those that come before it is awake have nothing to do. Whoever clears
 * the flag changes the word once more: otherwise the dispatcher could begin to sleep after the
 * wake-up, with nobody left to wake it. */
static void wake_dispatcher(void) {
    atomic_fetch_add(&s.work, 1);
    if (!atomic_load(&s.asleep) || !atomic_exchange(&s.asleep, 0))
        return;
    atomic_fetch_add(&s.work, 1);
    soft_rest_wake(&s.work, 1);
}

uint64_t soft_schedule_random(void) { /* xorshift64*; any caller, so under the lock */
    spin_lock(&s.lock);
    s.random ^= s.random >> 12;
    s.random ^= s.random << 25;
    s.random ^= s.random >> 27;
    uint64_t r = s.random * 0x2545F4914F6CDD1Dull;
    spin_unlock(&s.lock);
    return r >> 16;
}

/* ---- queues, under the lock ----------------------------------------------------------------- */

static void activate(struct soft_stream *st) {
    if (st->active)
        return;
    st->active = true;
    if (!s.active) {
        s.active = st->next_active = st->prev_active = st;
        return;
    }
    st->next_active = s.active;
    st->prev_active = s.active->prev_active;
    st->prev_active->next_active = st;
    s.active->prev_active = st;
}

static void deactivate(struct soft_stream *st) {
    st->active = false;
    if (st->next_active == st) {
        s.active = NULL;
        return;
    }
    if (s.active == st)
        s.active = st->next_active;
    st->prev_active->next_active = st->next_active;
    st->next_active->prev_active = st->prev_active;
}

void soft_schedule_push(struct soft_stream *st, struct soft_op *op) {
    enum soft_policy policy = soft_settings()->policy;
    op->stream = st;
    op->device = st->device;
    op->seq = ++st->submitted;
    op->next = NULL;
    if (st->tail)
        st->tail->next = op;
    else
        st->head = op;
    st->tail = op;
    if (policy == SOFT_FAST || policy == SOFT_EAGER)
        st->allowed = op->seq;
    else if (!st->held)
        st->held = op;
    activate(st);
    soft_rest_note_queued(soft_rest_queued() + 1);
}

struct soft_stream *soft_schedule_next_active(struct soft_stream *after) {
    if (!after)
        return s.active;
    return after->next_active == s.active ? NULL : after->next_active;
}

static bool dependencies_met(const struct soft_op *op) {
    for (uint32_t i = 0; i < op->dep_count; i++)
        if (!is_complete(op->deps[i].stream, op->deps[i].seq))
            return false;
    return true;
}

static bool could_run(const struct soft_stream *st) {
    return st->head && !st->head->running && dependencies_met(st->head);
}

static bool may_run(const struct soft_stream *st) {
    return could_run(st) && st->head->seq <= st->allowed;
}

/* Consecutive operations of one stream that one thread runs, then retires together. They stay in
 * the queue meanwhile, the first marked as running, so that nobody else takes from that stream. */
struct batch {
    struct soft_op *first, *last;
    uint64_t count;
};

/* Up to BATCH_MAX operations from the head of a stream that may run, none past seq. A host function
 * comes alone, and so does everything where the schedule is one operation at a time: a batch that
 * ends in a kernel which waits for the host would keep its first operations in the queue. */
static struct batch take(struct soft_stream *st, uint64_t seq) {
    struct batch b = { st->head, st->head, 1 };
    b.first->running = true;
    s.running += b.first->kind != SOFT_OP_HOST;
    enum soft_policy policy = soft_settings()->policy;
    uint64_t most = policy == SOFT_FAST || policy == SOFT_EAGER ? BATCH_MAX : 1;
    for (struct soft_op *op = b.first->next; op && b.count < most; op = op->next) {
        if (b.first->kind == SOFT_OP_HOST || op->kind == SOFT_OP_HOST || op->seq > st->allowed ||
            op->seq > seq || !dependencies_met(op))
            break;
        b.last = op;
        b.count++;
    }
    return b;
}

static bool is_lazy(void) {
    return soft_settings()->policy == SOFT_LAZY;
}

/* Nothing may start now, whatever it is. */
static bool must_wait(void) {
    return is_lazy() && s.running;
}

/* What to run next, empty if there is nothing. A higher priority (a lower number) goes first;
 * streams of one priority take turns. */
static struct batch pick(void) {
    struct soft_stream *best = NULL;
    bool last = is_lazy();
    if (must_wait())
        return (struct batch){ 0 };
    for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st))
        if (may_run(st) && (!best || last || st->priority < best->priority))
            best = st;
    if (!best)
        return (struct batch){ 0 };
    if (best == s.active && !last)
        s.active = best->next_active;
    return take(best, UINT64_MAX);
}

/* What a thread that waits for seq of st can run itself: from st or, where that has to wait for
 * other streams, from those. */
static struct batch pick_for(struct soft_stream *st, uint64_t seq, int depth) {
    struct batch none = { 0 };
    if (may_run(st))
        return st->head->seq <= seq ? take(st, seq) : none;
    if (!st->head || st->head->running || st->head->seq > st->allowed || depth == HELP_DEPTH)
        return none;
    for (uint32_t i = st->head->dep_count; i-- > 0;) { /* the stream that got work last first */
        const struct soft_dep *dep = &st->head->deps[i];
        if (is_complete(dep->stream, dep->seq))
            continue;
        struct batch b = pick_for(dep->stream, dep->seq, depth + 1);
        if (b.first)
            return b;
    }
    return none;
}

static void allow(struct soft_stream *st, uint64_t seq) {
    if (seq > st->allowed)
        st->allowed = seq;
    while (st->held && st->held->seq <= st->allowed)
        st->held = st->held->next;
}

/* Takes completed operations out of their queue. Returns the stream if these were the last that a
 * closed stream had to do. */
static struct soft_stream *retire(const struct batch *b) {
    struct soft_stream *st = b->first->stream;
    s.running -= b->first->kind != SOFT_OP_HOST && !b->first->stuck;
    st->head = b->last->next;
    if (!st->head) {
        st->tail = NULL;
        deactivate(st);
    }
    soft_rest_note_queued(soft_rest_queued() - b->count);
    atomic_store_explicit(&s.retired, s.retired + b->count, memory_order_relaxed);
    return !st->head && st->closed ? st : NULL;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Whether a thread sleeps until an operation of this number, or one before it, has completed. Where
 * operations run one at a time, waiting threads also run them, and must be woken for each. */
static bool is_awaited(const struct soft_stream *st, uint64_t seq) {
    enum soft_policy policy = soft_settings()->policy;
    uint64_t awaited = atomic_load(&st->awaited);
    return (awaited && seq >= awaited) || (policy != SOFT_FAST && policy != SOFT_EAGER);
}

/* Sequentially consistent with sleep_until(): either the sleeper sees the completion, or this
 * sees the sleeper. A thread woken in vain states again what it waits for. */
static void complete(struct soft_op *op) {
    struct soft_stream *st = op->stream;
    uint32_t more = op->kind == SOFT_OP_LAUNCH  ? 1
                    : op->kind == SOFT_OP_PIECE ? op->u.piece->count
                                                : 0;
    if (more) {
        uint64_t launches = atomic_load_explicit(&st->launches, memory_order_relaxed);
        atomic_store_explicit(&st->launches, launches + more, memory_order_relaxed);
    }
    atomic_store(&st->completed, op->seq);
    if (!atomic_load(&s.progress_sleepers) || !is_awaited(st, op->seq))
        return;
    spin_lock(&s.lock);
    atomic_store(&st->awaited, 0);
    atomic_fetch_add(&s.progress, 1);
    spin_unlock(&s.lock);
    soft_rest_wake(&s.progress, INT_MAX);
}

/* Retires a batch (may be empty) and, if asked, picks the next, under one lock. */
static struct batch retire_and_pick(struct batch done, bool pick_next) {
    struct soft_stream *empty = NULL;
    struct batch next = { 0 };
    spin_lock(&s.lock);
    if (done.first)
        empty = retire(&done);
    if (pick_next)
        next = pick();
    spin_unlock(&s.lock);
    if (done.first)
        soft_op_free_list(done.first, done.last);
    if (empty)
        s.emptied(empty);
    return next;
}

/* Runs a batch and retires it; a host function is passed on to a thread of its own instead. */
static struct batch run_and_pick(struct batch b, bool pick_next) {
    if (b.first->kind == SOFT_OP_HOST) {
        soft_host_queue(b.first);
        return retire_and_pick((struct batch){ 0 }, pick_next);
    }
    for (struct soft_op *op = b.first;; op = op->next) {
        s.run(op);
        complete(op);
        if (op == b.last)
            break;
    }
    return retire_and_pick(b, pick_next);
}

/* op was run outside the dispatcher (host.c) and is done. */
static void complete_host_op(struct soft_op *op) {
    complete(op);
    retire_and_pick((struct batch){ op, op, 1 }, false);
    wake_dispatcher();
}

static void nap(int64_t ns) {
    struct timespec time = { .tv_nsec = ns };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* A thread that waits for what was just queued runs it itself, if it gets the time to do so. */
static void leave_to_waiters(void) {
    enum { MANY = 3 }; /* so many that no thread waits for each */
    uint64_t start = clock_now_ns();
    while (soft_settings()->policy == SOFT_FAST && soft_rest_queued() &&
           soft_rest_queued() <= MANY && clock_now_ns() - start < LEAVE_NS)
        spin_pause();
}

static bool is_there_work(uint32_t seen) {
    return atomic_load_explicit(&s.work, memory_order_acquire) != seen;
}

/* Naps while s.work equals seen, as long as others run the queued work, and for LINGER_NS after
 * that; false if it is to sleep. Queueing work needs no system call to wake a napping thread. */
static bool linger(uint32_t seen, int64_t *nap_ns) {
    uint64_t start = clock_now_ns();
    while (clock_now_ns() - start < LINGER_NS) {
        nap(*nap_ns);
        *nap_ns = *nap_ns * 2 < NAP_MOST_NS ? *nap_ns * 2 : NAP_MOST_NS;
        if (is_there_work(seen))
            return true;
        if (soft_rest_queued())
            start = clock_now_ns();
    }
    return false;
}

/* Until s.work differs from seen: spins for SPIN_NS, unless others did the recent work (nap_ns has
 * grown), then naps, then sleeps. Only for the permanent dispatcher: those added for a jam never
 * sleep, so one flag is enough and no count is needed. */
static void idle_until_work(uint32_t seen, int64_t *nap_ns) {
    uint64_t start = clock_now_ns();
    for (unsigned looks = 1; s.spin_ns && *nap_ns == NAP_NS; looks++) {
        if (is_there_work(seen))
            return;
        spin_pause();
        if (looks % LOOKS_A_CLOCK == 0 && clock_now_ns() - start > s.spin_ns)
            break;
    }
    bool others_run_it =
        soft_settings()->policy == SOFT_FAST; /* elsewhere they wait for this thread */
    if (s.spin_ns && others_run_it && linger(seen, nap_ns))
        return;
    *nap_ns = NAP_NS;
    atomic_store(&s.asleep, 1);
    soft_rest_wait(&s.work, seen, -1);
    atomic_store(&s.asleep, 0);
}

/* A dispatcher that runs operations one by one as they come contends with the thread that queues
 * them for every one. A pause of some 100 ns lets a few collect. */
static void breathe(void) {
    for (int i = 0; i < 4; i++)
        spin_pause();
}

static void *dispatcher_main(void *extra) {
    int64_t nap_ns = NAP_NS;
    for (;;) {
        uint32_t seen = atomic_load(&s.work);
        struct batch b = retire_and_pick((struct batch){ 0 }, true);
        if (b.first) {
            nap_ns = NAP_NS;
            atomic_fetch_add(&s.busy, 1);
            while (b.first) {
                bool single = b.count == 1;
                run_and_pick(b, false);
                if (single)
                    breathe();
                b = retire_and_pick((struct batch){ 0 }, true);
            }
            atomic_fetch_sub(&s.busy, 1);
            continue;
        }
        if (extra) { /* added for a jam that is over */
            atomic_fetch_sub(&s.dispatchers, 1);
            return NULL;
        }
        idle_until_work(seen, &nap_ns);
        leave_to_waiters();
    }
}

/* ---- the watchdog --------------------------------------------------------------------------- */

static void allow_everything(void) {
    spin_lock(&s.lock);
    for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st))
        allow(st, st->submitted);
    spin_unlock(&s.lock);
    wake_dispatcher();
}

static bool anything_may_run(void) {
    bool found = false;
    spin_lock(&s.lock);
    for (struct soft_stream *st = s.active; st && !found; st = soft_schedule_next_active(st))
        found = may_run(st) && !must_wait();
    spin_unlock(&s.lock);
    return found;
}

/* lazy: what runs may wait for something that only another stream does. */
static void stop_waiting_for_what_runs(void) {
    spin_lock(&s.lock);
    for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st)) {
        struct soft_op *op = st->head;
        if (op && op->running && op->kind != SOFT_OP_HOST && !op->stuck) {
            op->stuck = true;
            s.running--;
        }
    }
    spin_unlock(&s.lock);
}

static void add_dispatcher(void) {
    if (atomic_load(&s.dispatchers) >= DISPATCHERS_MAX)
        return;
    atomic_fetch_add(&s.dispatchers, 1);
    if (!soft_thread_start(dispatcher_main, &s))
        atomic_fetch_sub(&s.dispatchers, 1);
}

/* Nothing was completed since the last tick, and not for stalled_ns. */
static void watchdog_tick(uint64_t stalled_ns) {
    if (is_lazy() && stalled_ns > IDLE_NS)
        stop_waiting_for_what_runs();
    if (anything_may_run()) {
        if (atomic_load(&s.busy) >= atomic_load(&s.dispatchers))
            add_dispatcher();
        else
            wake_dispatcher();
        return;
    }
    enum soft_policy policy = soft_settings()->policy;
    if ((policy == SOFT_LAZY || policy == SOFT_RANDOM) &&
        clock_now_ns() - atomic_load(&s.last_call_ns) > IDLE_NS)
        allow_everything();
}

static void *watchdog_main(void *unused) {
    (void)unused;
    uint64_t before = 0, stalled_ns = 0;
    for (unsigned quiet = 0;;) {
        nap(TICK_NS);
        uint64_t now = atomic_load(&s.retired);
        stalled_ns = now == before ? stalled_ns + (uint64_t)TICK_NS : 0;
        if (soft_rest_queued() == 0) {
            stalled_ns = 0;
            if (++quiet > 50) {
                /* Not for ever: a thread that queues work reads watchdog_asleep without a fence, so
                 * it can miss that this one is about to sleep. */
                atomic_store(&s.watchdog_asleep, 1);
                if (soft_rest_queued() == 0)
                    soft_rest_wait(&s.watchdog_asleep, 1, (int64_t)IDLE_NS);
                quiet = atomic_exchange(&s.watchdog_asleep, 0) ? 50 : 0;
            }
        } else if (now == before) {
            watchdog_tick(stalled_ns);
        }
        before = now;
    }
    return NULL;
}

static void rouse_watchdog(void) {
    if (atomic_load_explicit(&s.watchdog_asleep, memory_order_relaxed) &&
        atomic_exchange(&s.watchdog_asleep, 0))
        soft_rest_wake(&s.watchdog_asleep, 1);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Runs an operation that has to run before seq of st is complete; false if there is none, because
 * it is running elsewhere or held. */
static bool help(struct soft_stream *st, uint64_t seq) {
    spin_lock(&s.lock);
    struct batch b = must_wait() ? (struct batch){ 0 } : pick_for(st, seq, 0);
    spin_unlock(&s.lock);
    if (!b.first)
        return false;
    run_and_pick(b, false);
    /* Others may have waited for what was just run. */
    if (soft_rest_queued())
        wake_dispatcher();
    return true;
}

/* Sleeps until seq of st has completed, for timeout_ns at most (negative: for ever), or less. */
static void sleep_until(struct soft_stream *st, uint64_t seq, int64_t timeout_ns) {
    atomic_fetch_add(&s.progress_sleepers, 1);
    spin_lock(&s.lock);
    uint64_t awaited = atomic_load(&st->awaited);
    if (!awaited || seq < awaited)
        atomic_store(&st->awaited, seq);
    uint32_t seen = atomic_load(&s.progress);
    spin_unlock(&s.lock);
    if (atomic_load(&st->completed) < seq)
        soft_rest_wait(&s.progress, seen, timeout_ns);
    atomic_fetch_sub(&s.progress_sleepers, 1);
}

/* True once complete, false if timeout_ns (negative: none) ran out first. helps: the caller may run
 * operations meanwhile. */
static bool await(struct soft_stream *st, uint64_t seq, int64_t timeout_ns, bool helps) {
    if (is_complete(st, seq))
        return true;
    while (helps && help(st, seq))
        if (is_complete(st, seq))
            return true;
    uint64_t start = clock_now_ns();
    for (unsigned looks = 1; s.spin_ns; looks++) {
        if (is_complete(st, seq))
            return true;
        spin_pause();
        if (looks % LOOKS_A_CLOCK)
            continue;
        uint64_t waited = clock_now_ns() - start;
        if (waited > AWAIT_NS)
            break;
        if (waited > s.spin_ns && !(helps && help(st, seq)))
            sched_yield(); /* whoever runs it may be waiting for this processor */
    }
    for (;;) {
        while (helps && help(st, seq))
            ;
        int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (int64_t)(clock_now_ns() - start);
        if (timeout_ns < 0 || left > 0)
            sleep_until(st, seq, left);
        if (is_complete(st, seq))
            return true;
        if (timeout_ns >= 0 && left <= 0)
            return false;
    }
}

/* lazy: allows st up to seq and, operation by operation, what that depends on. Every operation is
 * looked at once, because held only moves forward. */
static void allow_with_dependencies(struct soft_stream *st, uint64_t seq) {
    spin_lock(&s.lock);
    if (seq > st->wanted)
        st->wanted = seq;
    for (bool again = true; again;) {
        again = false;
        for (struct soft_stream *t = s.active; t; t = soft_schedule_next_active(t)) {
            while (t->held && t->held->seq <= t->wanted) {
                struct soft_op *op = t->held;
                for (uint32_t i = 0; i < op->dep_count; i++) {
                    struct soft_stream *on = op->deps[i].stream;
                    if (op->deps[i].seq > on->wanted)
                        on->wanted = op->deps[i].seq;
                }
                allow(t, op->seq);
                again = true;
            }
        }
    }
    spin_unlock(&s.lock);
    wake_dispatcher();
}

/* Waits until an operation that has completed is out of its queue, too, so that the next draw is
 * among the same streams in every run. */
static void await_retirement(struct soft_stream *st, uint64_t seq) {
    for (bool queued = true; queued;) {
        spin_lock(&s.lock);
        queued = st->head && st->head->seq <= seq;
        spin_unlock(&s.lock);
        if (queued)
            sched_yield();
    }
}

/* random: draws one operation that could run and lets it; false if there is none. */
static bool run_one_at_random(void) {
    uint64_t draw = soft_schedule_random();
    struct soft_stream *drawn = NULL;
    uint64_t seq = 0;
    spin_lock(&s.lock);
    unsigned choices = 0;
    for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st))
        choices += could_run(st) && st->head->seq > st->allowed;
    if (choices) {
        uint64_t index = draw % choices;
        for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st))
            if (could_run(st) && st->head->seq > st->allowed && index-- == 0)
                drawn = st;
    }
    if (drawn) {
        seq = drawn->head->seq;
        allow(drawn, seq);
    }
    spin_unlock(&s.lock);
    if (!drawn)
        return false;
    wake_dispatcher();
    if (await(drawn, seq, RANDOM_NS, false))
        await_retirement(drawn, seq);
    return true;
}

static void note_call(void) {
    atomic_store_explicit(&s.last_call_ns, clock_now_ns(), memory_order_relaxed);
}

void soft_schedule_submitted(struct soft_stream *st, uint64_t seq, bool waits) {
    rouse_watchdog();
    switch (soft_settings()->policy) {
    case SOFT_FAST:
        if (!waits) /* else the caller runs it, or whoever runs what is before it goes on */
            wake_dispatcher();
        break;
    case SOFT_EAGER:
        wake_dispatcher();
        await(st, seq, EAGER_NS, false);
        break;
    case SOFT_LAZY:
        note_call();
        break;
    case SOFT_RANDOM:
        note_call();
        while (soft_schedule_random() % 3 == 0 && run_one_at_random())
            ;
        break;
    }
}

void soft_schedule_wait(struct soft_stream *st, uint64_t seq) {
    switch (soft_settings()->policy) {
    case SOFT_FAST:
    case SOFT_EAGER:
        break;
    case SOFT_LAZY:
        note_call();
        allow_with_dependencies(st, seq);
        break;
    case SOFT_RANDOM:
        note_call();
        while (!is_complete(st, seq))
            if (!run_one_at_random() && await(st, seq, MS, false))
                break;
        break;
    }
    if (!is_complete(st, seq))
        await(st, seq, -1, true);
}

bool soft_schedule_poll(struct soft_stream *st, uint64_t seq) {
    if (is_complete(st, seq))
        return true;
    if (soft_settings()->policy == SOFT_LAZY) {
        note_call();
        allow_with_dependencies(st, seq);
        return false;
    }
    if (soft_settings()->policy == SOFT_RANDOM) {
        note_call();
        run_one_at_random();
    }
    return is_complete(st, seq);
}

/* One stream after the other, the one that got work last first. */
void soft_schedule_drain(int device) {
    for (;;) {
        struct soft_stream *pending = NULL;
        uint64_t seq = 0;
        spin_lock(&s.lock);
        for (struct soft_stream *st = s.active; st; st = soft_schedule_next_active(st))
            if ((device < 0 || st->device == device) && !is_complete(st, st->submitted))
                pending = st;
        if (pending)
            seq = pending->submitted;
        spin_unlock(&s.lock);
        if (!pending)
            return;
        soft_schedule_wait(pending, seq);
    }
}

enum rc soft_schedule_init(void (*run)(struct soft_op *op),
                           void (*emptied)(struct soft_stream *stream), struct err *e) {
    s.run = run;
    s.emptied = emptied;
    soft_host_init(run, complete_host_op);
    s.spin_ns = cpu_count() > 1 ? SPIN_NS : 0;
    s.random = soft_settings()->seed * 0x9E3779B97F4A7C15ull + 0x1234567ull;
    s.random += s.random == 0;
    atomic_store(&s.dispatchers, 1);
    note_call();
    if (!soft_thread_start(dispatcher_main, NULL) || !soft_thread_start(watchdog_main, NULL))
        return err_set(e, RC_MEMORY,
                       "cannot start the device's threads: raise the limit on "
                       "processes (ulimit -u)");
    return RC_OK;
}
