/* pool.c - one job on all cores.
 *
 * Workers wait for the job number to change: for a while by looking (SPIN_NS: kernels of one model
 * step follow each other within microseconds), then by looking and giving the processor away
 * (LINGER_NS: the next step comes soon; HOLD_NS while the pool is held), then asleep.
 * A job wakes the workers that sleep once: until they are awake, no other job does. The thread that
 * brings a job takes part in it. A worker may come late, so it enters first (inside++) and then
 * looks whether the job is still open; the owner closes the job and then waits until nobody is
 * inside. Both sides use sequentially consistent operations, so at least one sees the other.
 *
 * Every worker has a part of the job, which it does from front to end in pieces, so that it reads
 * memory in order; a worker that is done helps the others with theirs.
 *
 * One job at a time: whoever finds the pool taken does its job alone.
 *
 * Where a job has as many workers as there are cores, or as there are processors, each worker stays
 * on one core (take_place()), on whichever of its siblings is free: nothing is gained by moving,
 * and what is in the core's cache is lost by it. Worker 0 is not ours to place: it is the thread
 * that brings the job, often the program's own, next time perhaps another. So the first place
 * stays free, and the kernel, which sees the other cores busy, moves that thread there. With fewer
 * workers than cores the kernel knows better which cores are idle: two processes of one worker
 * each must not meet on one. With more, workers have to take turns anyway. */
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>

#include <greta/soft_times.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/spin.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/pool.h"
#include "soft/runtime/rest.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/thread.h"
#include "soft/runtime/times.h"

enum { WORKERS_MAX = 256, LOOKS_A_CLOCK = 64, PATIENCE = 2000 };
enum { SPIN_NS = 50000, LINGER_NS = 500000, HOLD_NS = 2000000 };

static struct {
    struct spin owner;       /* held for the length of a job */
    unsigned started;        /* worker threads that exist, under owner */
    _Atomic unsigned wanted; /* cores to use, the owner's included; 0: not decided yet */

    _Atomic uint32_t job;      /* odd while a job is open; also the word sleepers wait on */
    _Atomic uint32_t sleeping; /* some worker is, or is about to be */
    _Atomic uint32_t held;     /* soft_pool_hold() without soft_pool_release() */
    _Atomic uint32_t inside;

    soft_pool_fn fn;
    void *user;
    uint64_t piece;
    unsigned workers;
    bool timed;

    unsigned placed; /* workers that the places below are for */
    bool pinned;     /* they have places */
    uint32_t places; /* how often that was decided */
    struct cpu_map map;

    struct part {
        _Alignas(64) _Atomic uint64_t next; /* a cache line each */
        uint64_t end;
        uint64_t computing_ns; /* of the worker of that number, if the job is timed */
    } parts[WORKERS_MAX];
} pool;

/* A few indices at a time share what a kernel reads for all of them; towards the end of a part they
 * become fewer, so that no worker is left waiting for another. */
static uint64_t piece_of(uint64_t left) {
    enum { FEW = 4 };
    uint64_t some = left / FEW < FEW ? left / FEW : FEW;
    some = some < pool.piece ? pool.piece : some;
    return some < left ? some : left;
}

static void work_on(struct part *part, unsigned worker) {
    uint64_t first = atomic_load_explicit(&part->next, memory_order_relaxed);
    while (first < part->end) {
        const uint64_t last = first + piece_of(part->end - first);
        if (!atomic_compare_exchange_weak_explicit(&part->next, &first, last, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        pool.fn(pool.user, first, last, worker, pool.workers);
        first = atomic_load_explicit(&part->next, memory_order_relaxed);
    }
}

static void work(unsigned worker) {
    const uint64_t start = pool.timed ? clock_now_ns() : 0;
    for (unsigned i = 0; i < pool.workers; i++)
        work_on(&pool.parts[(worker + i) % pool.workers], worker);
    if (pool.timed)
        pool.parts[worker].computing_ns = clock_now_ns() - start;
}

/* Many pieces per worker, so that others make up for a core that is slow or taken away. */
static void divide(uint64_t count) {
    enum { PIECES = 64 };
    const unsigned n = pool.workers;
    pool.piece = count / n / PIECES ? count / n / PIECES : 1;
    for (unsigned i = 0; i < n; i++) {
        uint64_t most = count % n < i ? count % n : i;
        atomic_store_explicit(&pool.parts[i].next, count / n * i + most, memory_order_relaxed);
        pool.parts[i].end = count / n * (i + 1) + most + (i < count % n);
        pool.parts[i].computing_ns = 0;
    }
}

/* Returns the new job number once it differs from seen. */
static uint32_t await_job(uint32_t seen) {
    uint64_t start = clock_now_ns();
    for (unsigned looks = 1;; looks++) {
        uint32_t job = atomic_load_explicit(&pool.job, memory_order_acquire);
        if (job != seen)
            return job;
        spin_pause();
        if (looks % LOOKS_A_CLOCK)
            continue;
        uint64_t waited = clock_now_ns() - start;
        bool held = atomic_load_explicit(&pool.held, memory_order_relaxed);
        if (waited > (held ? HOLD_NS : LINGER_NS))
            break;
        if (waited > SPIN_NS)
            sched_yield(); /* whoever has the job may be waiting for this processor */
    }
    atomic_store(&pool.sleeping, 1);
    soft_rest_wait(&pool.job, seen, -1);
    return atomic_load(&pool.job);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Under owner, before the job is opened. What processors there are is asked anew whenever the
 * number of workers changes. */
static void assign_places(void) {
    if (pool.placed == pool.workers || !soft_settings()->pin)
        return;
    cpu_map_own(&pool.map);
    pool.placed = pool.workers;
    pool.pinned = pool.workers == pool.map.cores || pool.workers == pool.map.cpus;
    pool.places++;
}

/* Inside a job. A worker that never had a place needs no permission to be everywhere. */
static void take_place(unsigned worker, bool *pinned) {
    cpu_set_t set = pool.pinned ? cpu_map_core(&pool.map, worker) : pool.map.allowed;
    if (pool.pinned || *pinned)
        (void)sched_setaffinity(0, sizeof set, &set); /* refused: as if without places */
    *pinned = pool.pinned;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void *worker_main(void *number) {
    unsigned worker = (unsigned)(uintptr_t)number;
    uint32_t places = 0;
    bool pinned = false;
    for (uint32_t seen = 0;;) {
        seen = await_job(seen);
        if (!(seen & 1))
            continue;
        atomic_fetch_add(&pool.inside, 1);
        if (atomic_load(&pool.job) == seen && worker < pool.workers) {
            if (places != pool.places)
                take_place(worker, &pinned);
            places = pool.places;
            work(worker);
        }
        atomic_fetch_sub(&pool.inside, 1);
    }
    return NULL;
}

/* 0: all processors. */
static unsigned limited(unsigned threads) {
    unsigned n = threads ? threads : (unsigned)cpu_count();
    return n < WORKERS_MAX ? n : WORKERS_MAX;
}

static unsigned wanted(void) {
    unsigned n = atomic_load_explicit(&pool.wanted, memory_order_relaxed);
    if (!n) {
        n = limited(soft_settings()->threads);
        atomic_store(&pool.wanted, n);
    }
    return n;
}

void soft_pool_set_threads(unsigned threads) {
    atomic_store(&pool.wanted, limited(threads));
}

/* If fewer threads start than asked for, the owner does the rest of the work. */
static unsigned start_workers(unsigned threads) {
    while (pool.started + 1 < threads) {
        if (!soft_thread_start(worker_main, (void *)(uintptr_t)(pool.started + 1)))
            break;
        pool.started++;
    }
    return threads < pool.started + 1 ? threads : pool.started + 1;
}

static _Thread_local const char *kernel;

void soft_pool_time_as(const char *name) {
    kernel = name;
}

/* What a job cost that began at start_ns. `threads` could have taken part; the pool's, unless the
 * caller did it alone, say how long each did. */
static void add_times(uint64_t start_ns, unsigned threads, bool alone) {
    uint64_t computing[GRETA_SOFT_TIMES_THREADS] = { 0 };
    const uint64_t wall = clock_now_ns() - start_ns;
    if (threads > GRETA_SOFT_TIMES_THREADS)
        threads = GRETA_SOFT_TIMES_THREADS;
    for (unsigned i = 0; i < threads; i++)
        computing[i] = alone ? (i == 0 ? wall : 0) : pool.parts[i].computing_ns;
    soft_times_add(kernel, wall, threads, computing);
}

void soft_pool_run(soft_pool_fn fn, void *user, uint64_t count) {
    unsigned threads = wanted();
    const bool timed = kernel && soft_times_on();
    const uint64_t start = timed ? clock_now_ns() : 0;
    if (count < 2 || threads < 2 || !spin_trylock(&pool.owner)) {
        fn(user, 0, count, 0, 1);
        if (timed)
            add_times(start, threads, true);
        return;
    }
    pool.fn = fn;
    pool.user = user;
    pool.timed = timed;
    pool.workers = start_workers(threads);
    assign_places();
    divide(count);
    atomic_fetch_add(&pool.job, 1);
    if (atomic_load(&pool.sleeping) && atomic_exchange(&pool.sleeping, 0))
        soft_rest_wake(&pool.job, INT_MAX);
    work(0);
    atomic_fetch_add(&pool.job, 1);
    for (unsigned looks = 0; atomic_load(&pool.inside); looks++)
        if (looks < PATIENCE)
            spin_pause();
        else
            sched_yield(); /* whoever is inside may be waiting for this processor */
    if (timed)
        add_times(start, pool.workers, false);
    spin_unlock(&pool.owner);
}

void soft_pool_hold(void) {
    atomic_fetch_add(&pool.held, 1);
}
void soft_pool_release(void) {
    atomic_fetch_sub(&pool.held, 1);
}

/* ---- guarded jobs --------------------------------------------------------------------------- */

struct guarded_job {
    soft_pool_fn fn;
    void *user;
    _Atomic int failed; /* set by the first bad access; the rest of the job is skipped */
    uint64_t address;
    int kind;
};

struct guarded_call {
    struct guarded_job *job;
    uint64_t first, last;
    unsigned worker, workers;
};

static void call_part(void *user) {
    const struct guarded_call *c = user;
    c->job->fn(c->job->user, c->first, c->last, c->worker, c->workers);
}

static void guarded_part(void *user, uint64_t first, uint64_t last, unsigned worker,
                         unsigned workers) {
    struct guarded_job *job = user;
    struct guarded_call call = { job, first, last, worker, workers };
    uint64_t address;
    int kind;
    if (atomic_load_explicit(&job->failed, memory_order_relaxed) ||
        soft_fault_guard(call_part, &call, &address, &kind) || atomic_exchange(&job->failed, 1))
        return;
    job->address = address;
    job->kind = kind;
}

bool soft_pool_run_guarded(soft_pool_fn fn, void *user, uint64_t count, uint64_t *address,
                           int *kind) {
    struct guarded_job job = { .fn = fn, .user = user };
    soft_pool_run(guarded_part, &job, count);
    if (!atomic_load(&job.failed))
        return true;
    *address = job.address;
    *kind = job.kind;
    return false;
}
