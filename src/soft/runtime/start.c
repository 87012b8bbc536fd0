/* start.c - the start of the runtime, and what a fork leaves of it.
 *
 * The first call of any function starts the runtime. A signal that arrives meanwhile waits, because
 * its handler may make a HIP call and would wait for the thread that it interrupts.
 *
 * HIP does not survive fork(): the child has the device's memory and none of its threads. ROCm says
 * so in its documentation and fails in ways of its own; here every call of the child returns
 * hipErrorNotInitialized at once, touches no lock, and the first one says why. A child that was
 * forked before the runtime started has a runtime to start. What such a child can inherit are
 * kernels that were registered, so the locks of that are taken for the fork: with a time limit,
 * since whoever holds one may be waiting for somebody whose own handler of fork has run already. A
 * lock that was not to be had is made anew in the child. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/function.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

enum { NOT_STARTED = -1, LOCKS_MAX = 3 + SOFT_HANDLES_MAX, PATIENCE_NS = 100000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state = NOT_STARTED; /* else the hipError_t that every call begins with */
static _Atomic bool begun;              /* somebody starts, or has */
static _Atomic bool forked, said;

/* ---- starting ------------------------------------------------------------------------------- */

/* What is made on first use is made now, before a handler of signals can meet it half done. */
static void make_pools(void) {
    soft_streams();
    soft_events();
    soft_functions();
    soft_graph_prepare();
    soft_mempool_reset(0);
}

static hipError_t start(void) {
    struct err e = { 0 };
    if (soft_settings_read(&e) || soft_memory_init(&e) || soft_fault_init(&e) ||
        soft_schedule_init(&e)) {
        fprintf(stderr, "greta: the software device cannot start: %s\n", e.msg);
        return hipErrorNotInitialized;
    }
    make_pools();
    return soft_settings()->devices ? hipSuccess : hipErrorNoDevice;
}

static void start_once(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == NOT_STARTED) {
        atomic_store(&begun, true);
        atomic_store(&state, (int)start());
    }
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void say_forked(void) {
    static const char text[] =
        "greta: this process was forked after its parent had initialised HIP, and HIP does not "
        "survive that: all calls return hipErrorNotInitialized. Fork before the first HIP call, or "
        "execute a program in the child.\n";
    if (!atomic_exchange(&said, true))
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
}

hipError_t soft_start(void) {
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now == NOT_STARTED) {
        start_once();
        now = atomic_load(&state);
    }
    if (now != hipSuccess && atomic_load(&forked))
        say_forked();
    return (hipError_t)now;
}

bool soft_is_forked(void) {
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

/* ---- forks ---------------------------------------------------------------------------------- */

/* One thread forks at a time, from prepare() on. */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pthread_mutex_t *lock[LOCKS_MAX];
    bool taken[LOCKS_MAX];
    unsigned count;
} held;

static void hold(pthread_mutex_t *mutex) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    held.lock[held.count] = mutex;
    held.taken[held.count++] = pthread_mutex_timedlock(mutex, &until) == 0;
}

/* In the order in which they are taken elsewhere. */
static void prepare(void) {
    pthread_mutex_lock(&fork_lock);
    held.count = 0;
    if (atomic_load(&begun))
        return; /* the child will touch none of them */
    hold(soft_symbol_lock());
    hold(soft_module_lock());
    hold(soft_kernel_lock());
    for (unsigned i = 0; i < SOFT_HANDLES_MAX; i++) {
        struct soft_handles *pool = soft_handles_number(i);
        if (pool)
            hold(soft_handles_lock(pool));
    }
}

static void parent(void) {
    while (held.count)
        if (held.taken[--held.count])
            pthread_mutex_unlock(held.lock[held.count]);
    pthread_mutex_unlock(&fork_lock);
}

static void child(void) {
    while (held.count) {
        held.count--;
        if (held.taken[held.count])
            pthread_mutex_unlock(held.lock[held.count]);
        else
            pthread_mutex_init(held.lock[held.count], NULL);
    }
    pthread_mutex_unlock(&fork_lock);
    if (atomic_load(&begun)) {
        soft_error_forget();
        atomic_store(&forked, true);
        atomic_store(&state, (int)hipErrorNotInitialized);
    }
}

__attribute__((constructor)) static void at_load(void) {
    pthread_atfork(prepare, parent, child);
}
