/* start.c - the start of the runtime, and what a fork leaves of it.
 *
 * The first call of any function starts the runtime. A signal that arrives meanwhile waits, because
 * its handler may make a HIP call and would wait for the thread that it interrupts.
 *
 * HIP does not survive fork(): the child has the device's memory and none of its threads. ROCm says
 * so in its documentation and fails in various ways; here every call of the child returns
 * hipErrorNotInitialized at once and touches no lock, and the first one says why. A child that was
 * forked before the runtime started can start it. Such a child inherits registered kernels, so
 * the locks around registration are taken for the fork: with a time limit, since whoever holds one
 * may be waiting for a thread whose own fork handler has run already. A lock that could not be
 * taken is initialised again in the child. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soft/runtime/handle.h"
#include "soft/runtime/start.h"

enum { NOT_STARTED = -1, LOCKS_MAX = 8 + SOFT_HANDLES_MAX, PATIENCE_NS = 100000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state = NOT_STARTED; /* else the hipError_t that every call begins with */
static _Atomic bool begun;              /* somebody starts, or has */
static _Atomic bool forked, said;

/* ---- starting ------------------------------------------------------------------------------- */

static const struct soft_parts *parts; /* set when the library is loaded */

static void start_once(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&begun, true); /* before the lock: a child in which somebody holds it must know */
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == NOT_STARTED)
        atomic_store(&state, (int)(parts ? parts->start() : hipErrorNotInitialized));
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
    assert(held.count < LOCKS_MAX);
    held.lock[held.count] = mutex;
    held.taken[held.count++] = pthread_mutex_timedlock(mutex, &until) == 0;
}

static void prepare(void) {
    pthread_mutex_lock(&fork_lock);
    held.count = 0;
    if (atomic_load(&begun))
        return; /* the child will touch none of them */
    if (parts)
        parts->each_lock(hold);
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
        parts->forget();
        atomic_store(&forked, true);
        atomic_store(&state, (int)hipErrorNotInitialized);
    }
}

void soft_start_set_parts(const struct soft_parts *all) {
    parts = all;
    pthread_atfork(prepare, parent, child);
}
