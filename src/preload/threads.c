/* threads.c - who waited for whom among the program's threads.
 *
 * HIP work of two threads is ordered if one of them waited for the other: by a join, a lock, a
 * semaphore or a barrier. Where that happens the recording gets HOST_RELEASE before and
 * HOST_ACQUIRE after, with a token for the object, so that ordered work is not taken for a race.
 *
 * Locks are far more frequent than HIP calls. An event is written only if it can matter: a thread
 * releases an object if it has news since it last did (a HIP call, or what it heard through another
 * object), and acquires one if another thread released it since it last did. Threads that contend
 * for a lock without calling HIP write nothing. What is known about objects is kept in a table that
 * forgets on collision; that can cost an extra event, but never loses one.
 *
 * Locks of the HIP runtime order nothing in the program and are left out. Waiting by atomics is
 * only seen if a thread sleeps: a std::future that is ready when it is asked, or a std::atomic that
 * has changed already, is just a load in the program's code. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "base/tick.h"
#include "preload/host.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "preload/threads.h"
#include "preload/watch.h"

/* ---- events ---------------------------------------------------------------------------------- */

/* Tokens that are not addresses have one of the top bits set. */
static const uint64_t TOKEN_CREATE = UINT64_C(1) << 62, TOKEN_EXIT = UINT64_C(1) << 61;

static void emit(enum event_kind kind, uint64_t token, const void *caller) {
    int saved = errno;
    struct event ev = {
        .kind = (uint16_t)kind,
        .dst = token,
        .aux = event_aux(EVENT_NO_FN, 0),
        .site = caller ? record_site(audit.writer, caller) : 0,
    };
    preload_me.inside++;
    record_event(audit.writer, &ev);
    preload_me.inside--;
    errno = saved;
}

/* How often an object was released: all of the process's threads see one entry. */
struct object {
    _Atomic(const void *) address;
    _Atomic uint64_t releases;
};
/* What this thread's news were when it last released the object. */
struct told {
    const void *address;
    uint64_t news;
};
/* How many releases of the object this thread has heard of; its own are among them. */
struct heard {
    const void *address;
    uint64_t releases;
};
enum { OBJECTS = 16384, TOLD = 32 };
static struct object objects[OBJECTS];
static __thread struct told told[TOLD] __attribute__((tls_model("initial-exec")));
static __thread struct heard heard[TOLD] __attribute__((tls_model("initial-exec")));

static size_t hash(const void *address) {
    return (size_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

/* True if this thread has heard of that many releases of the object, which are all there are. */
static bool has_heard(const void *address, uint64_t releases) {
    const struct heard *h = &heard[hash(address) % TOLD];
    return h->address == address && h->releases == releases;
}

/* Locks of the HIP runtime are its own business. A host function of the program's may end in a jump
 * to pthread_mutex_unlock(): that call returns to this library, which ran the function. */
static bool is_foreign(const void *caller) {
    return preload_is_internal(caller) && !(preload_me.host_fn && preload_is_own(caller));
}

static void release_slow(const void *address, const void *caller) {
    struct object *o = &objects[hash(address) % OBJECTS];
    struct told *t = &told[hash(address) % TOLD];
    if (t->address == address && t->news == preload_me.news)
        return;
    if (is_foreign(caller))
        return;
    *t = (struct told){ address, preload_me.news };
    emit(EVENT_HOST_RELEASE, (uint64_t)(uintptr_t)address, caller);
    atomic_store_explicit(&o->address, address, memory_order_relaxed);
    uint64_t before = atomic_fetch_add_explicit(&o->releases, 1, memory_order_relaxed);
    if (has_heard(address, before) || !before)
        heard[hash(address) % TOLD] = (struct heard){ address, before + 1 };
}

/* Does nothing if all releases since this thread's last acquire are its own. If another thread's
 * are among them it acquires, even if its own release is the newest: the last thread to reach a
 * barrier released it last. */
static void acquire_slow(const void *address, const void *caller) {
    struct object *o = &objects[hash(address) % OBJECTS];
    struct told *t = &told[hash(address) % TOLD];
    uint64_t releases = atomic_load_explicit(&o->releases, memory_order_relaxed);
    if (has_heard(address, releases) || is_foreign(caller))
        return;
    heard[hash(address) % TOLD] = (struct heard){ address, releases };
    emit(EVENT_HOST_ACQUIRE, (uint64_t)(uintptr_t)address, caller);
    bool knew = t->address == address && t->news == preload_me.news;
    preload_me.news++;
    if (knew) /* what came through an object need not be released to it again */
        t->news = preload_me.news;
}

static inline void release(const void *address, const void *caller) {
    /* A thread of the runtime has news without a HIP call, because it runs host functions. */
    if ((preload_me.news || preload_me.runtime) && preload_is_recording())
        release_slow(address, caller);
}

static inline void acquire(const void *address, const void *caller) {
    if (atomic_load_explicit(&objects[hash(address) % OBJECTS].address, memory_order_relaxed) &&
        preload_is_recording())
        acquire_slow(address, caller);
}

#define CALLER __builtin_return_address(0)

/* ---- threads --------------------------------------------------------------------------------- */

struct start {
    void *(*fn)(void *);
    void *arg;
    uint64_t token; /* 0: nothing was recorded when the thread was made */
    bool runtime;
};

static uint64_t exit_token(pthread_t thread) {
    return TOKEN_EXIT | (uint64_t)thread;
}

/* Also runs when the thread ends by pthread_exit or cancellation. */
static void thread_ends(void *unused) {
    (void)unused;
    if (!preload_me.runtime)
        host_thread_ends();
    if (!preload_me.runtime && preload_me.news && preload_is_recording())
        emit(EVENT_HOST_RELEASE, exit_token(pthread_self()), NULL);
    if (!preload_me.runtime)
        watch_thread(false);
}

static void *thread_begins(void *data) {
    struct start s = *(struct start *)data;
    void *result;
    free(data);
    preload_me.begun = true;
    preload_me.runtime = s.runtime;
    if (s.token && preload_is_recording()) {
        emit(EVENT_THREAD_START, s.token, NULL);
        preload_me.news++;
    }
    pthread_cleanup_push(thread_ends, NULL);
    result = s.fn(s.arg);
    pthread_cleanup_pop(1);
    preload_me.begun = false;
    return result;
}

static struct start *thread_start(const struct start *what, const void *caller) {
    static _Atomic uint64_t last;
    struct start *s = malloc(sizeof *s);
    if (!s)
        return NULL; /* then the thread runs unobserved */
    *s = *what;
    /* Threads that the runtime makes, while it starts or later. */
    s->runtime = preload_me.inside || preload_me.runtime || preload_is_internal(caller);
    if (!s->runtime && preload_me.news && preload_is_recording()) {
        s->token = TOKEN_CREATE | (1 + atomic_fetch_add(&last, 1));
        emit(EVENT_HOST_RELEASE, s->token, caller);
    }
    if (!s->runtime)
        watch_thread(true);
    return s;
}

/* The thread could not be made. */
static void thread_failed(struct start *s) {
    if (s && !s->runtime)
        watch_thread(false);
    free(s);
}

PRELOAD_EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                                  void *(*fn)(void *), void *restrict arg) {
    struct start what = { .fn = fn, .arg = arg };
    struct start *s = thread_start(&what, CALLER);
    if (!s)
        return NEXT(pthread_create)(thread, attr, fn, arg);
    int r = NEXT(pthread_create)(thread, attr, thread_begins, s);
    if (r != 0)
        thread_failed(s);
    return r;
}

/* C11's functions go their own way inside the C library. */
static int c11_thread(void *data) {
    return (int)(intptr_t)thread_begins(data);
}

struct c11_start {
    thrd_start_t fn;
    void *arg;
};

static void *c11_body(void *data) {
    struct c11_start s = *(struct c11_start *)data;
    free(data);
    return (void *)(intptr_t)s.fn(s.arg);
}

PRELOAD_EXPORT int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg) {
    struct c11_start *body = malloc(sizeof *body);
    if (!body)
        return NEXT(thrd_create)(thread, fn, arg);
    *body = (struct c11_start){ fn, arg };
    struct start what = { .fn = c11_body, .arg = body };
    struct start *s = thread_start(&what, CALLER);
    int r = s ? NEXT(thrd_create)(thread, c11_thread, s) : thrd_nomem;
    if (r != thrd_success) {
        thread_failed(s);
        free(body);
    }
    return r;
}

static void joined(pthread_t thread, int failed, const void *caller) {
    if (!failed && preload_is_recording() && !preload_is_internal(caller)) {
        emit(EVENT_HOST_ACQUIRE, exit_token(thread), caller);
        preload_me.news++;
    }
}

#define JOIN(name, params, args, thread)                                                           \
    PRELOAD_EXPORT int name params {                                                               \
        watch_waits(true);                                                                         \
        int r = NEXT(name) args;                                                                   \
        watch_waits(false);                                                                        \
        joined(thread, r, CALLER);                                                                 \
        return r;                                                                                  \
    }
JOIN(pthread_join, (pthread_t t, void **result), (t, result), t)
JOIN(pthread_tryjoin_np, (pthread_t t, void **result), (t, result), t)
JOIN(pthread_timedjoin_np, (pthread_t t, void **result, const struct timespec *until),
     (t, result, until), t)
JOIN(pthread_clockjoin_np,
     (pthread_t t, void **result, clockid_t clock, const struct timespec *until),
     (t, result, clock, until), t)
JOIN(thrd_join, (thrd_t t, int *result), (t, result), (pthread_t)t)

/* ---- objects --------------------------------------------------------------------------------- */

/* The kernel reads the word of a futex, so the object must not be on a closed page. */
PRELOAD_PLAIN static inline void open_object(struct watch_pass *pass, const void *object,
                                             size_t bytes, const void *caller) {
    if (preload_is_ready())
        watch_open(pass, (uint64_t)(uintptr_t)object, bytes, true, caller);
}

PRELOAD_PLAIN static inline void close_object(struct watch_pass *pass) {
    if (pass->flights || pass->all)
        watch_close(pass);
}

/* Kept short: a lock must cost hardly more than without this library. */
#define ACQUIRES(name, params, args, object)                                                       \
    PRELOAD_EXPORT int name params {                                                               \
        struct watch_pass pass = { 0 };                                                            \
        open_object(&pass, object, sizeof *(object), CALLER);                                      \
        int r = NEXT(name) args;                                                                   \
        close_object(&pass);                                                                       \
        if (r == 0 || r == EOWNERDEAD)                                                             \
            acquire(object, CALLER);                                                               \
        return r;                                                                                  \
    }
#define RELEASES(name, params, args, object)                                                       \
    PRELOAD_EXPORT int name params {                                                               \
        release(object, CALLER);                                                                   \
        struct watch_pass pass = { 0 };                                                            \
        open_object(&pass, object, sizeof *(object), CALLER);                                      \
        int r = NEXT(name) args;                                                                   \
        close_object(&pass);                                                                       \
        return r;                                                                                  \
    }
/* Gives the lock back and takes it again, whatever the result. */
#define WAITS(name, params, args, object, signal)                                                  \
    PRELOAD_EXPORT int name params {                                                               \
        struct watch_pass pass = { 0 };                                                            \
        release(object, CALLER);                                                                   \
        open_object(&pass, object, sizeof *(object), CALLER);                                      \
        open_object(&pass, signal, sizeof *(signal), CALLER);                                      \
        watch_waits(true);                                                                         \
        int r = NEXT(name) args;                                                                   \
        watch_waits(false);                                                                        \
        close_object(&pass);                                                                       \
        acquire(object, CALLER);                                                                   \
        return r;                                                                                  \
    }

ACQUIRES(pthread_mutex_lock, (pthread_mutex_t * m), (m), m)
ACQUIRES(pthread_mutex_trylock, (pthread_mutex_t * m), (m), m)
ACQUIRES(pthread_mutex_timedlock,
         (pthread_mutex_t *restrict m, const struct timespec *restrict until), (m, until), m)
ACQUIRES(pthread_mutex_clocklock,
         (pthread_mutex_t *restrict m, clockid_t clock, const struct timespec *restrict until),
         (m, clock, until), m)
RELEASES(pthread_mutex_unlock, (pthread_mutex_t * m), (m), m)

WAITS(pthread_cond_wait, (pthread_cond_t *restrict c, pthread_mutex_t *restrict m), (c, m), m, c)
WAITS(pthread_cond_timedwait,
      (pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
       const struct timespec *restrict until),
      (c, m, until), m, c)
WAITS(pthread_cond_clockwait,
      (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t clock,
       const struct timespec *restrict until),
      (c, m, clock, until), m, c)

ACQUIRES(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l), l)
ACQUIRES(pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l), l)
ACQUIRES(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l), l)
ACQUIRES(pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l), l)
RELEASES(pthread_rwlock_unlock, (pthread_rwlock_t * l), (l), l)

WAITS(pthread_barrier_wait, (pthread_barrier_t * b), (b), b, b)

ACQUIRES(sem_wait, (sem_t * s), (s), s)
ACQUIRES(sem_trywait, (sem_t * s), (s), s)
ACQUIRES(sem_timedwait, (sem_t *restrict s, const struct timespec *restrict until), (s, until), s)
ACQUIRES(sem_clockwait, (sem_t *restrict s, clockid_t clock, const struct timespec *restrict until),
         (s, clock, until), s)
RELEASES(sem_post, (sem_t * s), (s), s)

ACQUIRES(mtx_lock, (mtx_t * m), (m), m)
ACQUIRES(mtx_trylock, (mtx_t * m), (m), m)
ACQUIRES(mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict until), (m, until), m)
RELEASES(mtx_unlock, (mtx_t * m), (m), m)
WAITS(cnd_wait, (cnd_t * c, mtx_t *m), (c, m), m, c)
WAITS(cnd_timedwait, (cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict until),
      (c, m, until), m, c)

/* ---- once ------------------------------------------------------------------------------------ */

/* A thread that waits for the function returns as soon as it has run, so the release is written
 * before that, by a function that replaces the program's. It reads once_call first of all, so that
 * once_call may be stale after a function that throws, or overwritten by a nested pthread_once. */
static __thread struct {
    pthread_once_t *once;
    void (*fn)(void);
    const void *caller;
} once_call __attribute__((tls_model("initial-exec")));

PRELOAD_PLAIN static void once_begins(void) {
    pthread_once_t *once = once_call.once;
    const void *caller = once_call.caller;
    once_call.fn();
    release(once, caller);
}

PRELOAD_EXPORT int pthread_once(pthread_once_t *once, void (*fn)(void)) {
    once_call.once = once;
    once_call.fn = fn;
    once_call.caller = CALLER;
    int r = NEXT(pthread_once)(once, once_begins);
    if (r == 0)
        acquire(once, CALLER);
    return r;
}

/* ---- threads that are not ordered ------------------------------------------------------------ */

/* Work that a thread has not waited for is not ordered before what other threads do. If the thread
 * waits for it soon afterwards, another thread's access often comes too late to show that: a
 * consumer wakes up when the work happens to be done. So, while there are several threads, the
 * first waits at every place in the program take a little longer. The order that the program's own
 * synchronisation establishes is not affected. */
enum { LINGER_NS = 2000000, LINGER_PLACES = 64, LINGER_EACH = 4, LINGER_ALL = 96 };

void threads_linger(const void *caller) {
    static _Atomic unsigned all, place[LINGER_PLACES];
    if (!watch_threads_are_several() || preload_me.runtime || !preload_is_recording() ||
        atomic_load_explicit(&all, memory_order_relaxed) >= LINGER_ALL ||
        atomic_fetch_add_explicit(&place[hash(caller) % LINGER_PLACES], 1, memory_order_relaxed) >=
            LINGER_EACH)
        return;
    atomic_fetch_add_explicit(&all, 1, memory_order_relaxed);
    int saved = errno;
    const struct timespec pause = { 0, LINGER_NS };
    (void)nanosleep(&pause, NULL);
    errno = saved;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* A program that continues whatever a query answers, or stops asking after a few tries, shows its
 * bug only if the work takes longer than that; a program that asks until the work is done is not
 * affected by a delay. So the first queries at a place that find work done answer "not ready" for a
 * while, as if the work took longer: docs/adr/0082-queries-that-answer-late.md. */
enum { LATE_NS = 2000000, LATE_PLACES = 64, LATE_EACH = 4, LATE_ALL = 96 };
enum { LATE_TRIES_MIN = 8, LATE_TRIES = 1000 }; /* on a busy machine one try may take 2 ms */

struct late {
    _Atomic uint64_t since; /* 0: not now */
    _Atomic unsigned tries, times;
};

/* If two threads at one place begin at once, the delay just ends sooner. */
static bool late_begins(struct late *place, uint64_t now) {
    static _Atomic unsigned all;
    if (atomic_load(&place->times) >= LATE_EACH || atomic_fetch_add(&all, 1) >= LATE_ALL)
        return false;
    atomic_fetch_add(&place->times, 1);
    atomic_store(&place->tries, 0);
    atomic_store(&place->since, now);
    return true;
}

bool threads_withhold(const void *caller) {
    static struct late places[LATE_PLACES];
    struct late *place = &places[hash(caller) % LATE_PLACES];
    if (preload_me.runtime || !preload_is_recording())
        return false;
    uint64_t now = tick_now_ns(), since = atomic_load(&place->since);
    if (!since)
        return late_begins(place, now);
    unsigned tries = atomic_fetch_add(&place->tries, 1);
    if (tries < LATE_TRIES_MIN || (tries < LATE_TRIES && now - since < LATE_NS))
        return true;
    atomic_store(&place->since, 0);
    return false;
}

/* ---- futexes of the program's own ------------------------------------------------------------ */

/* std::atomic's wait() and notify_one(), std::latch, std::barrier and std::counting_semaphore are
 * code in headers, which makes these calls where a thread has to sleep or one may be asleep. */
static bool is_futex_wait(int op) {
    int command = op & FUTEX_CMD_MASK;
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

static bool is_futex_wake(int op) {
    int command = op & FUTEX_CMD_MASK;
    return command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET;
}

void threads_before_futex(const void *word, int op, const void *caller) {
    if (is_futex_wake(op))
        release(word, caller);
    if (is_futex_wait(op))
        watch_waits(true);
}

/* A thread that finds the word changed comes after the thread that stored the new value. */
void threads_after_futex(const void *word, int op, unsigned value, const void *caller) {
    if (!is_futex_wait(op))
        return;
    watch_waits(false);
    if (__atomic_load_n((const unsigned *)word, __ATOMIC_ACQUIRE) != value)
        acquire(word, caller);
}

void threads_release(const void *object, const void *caller) {
    release(object, caller);
}

void threads_acquire(const void *object, const void *caller) {
    acquire(object, caller);
}

/* ---- std::future ----------------------------------------------------------------------------- */

/* What libstdc++'s headers call when a future has to wait, and when a promise finds that one waits.
 * They make the same system calls as libstdc++ does, which a program may have loaded where
 * RTLD_NEXT does not find it. A promise calls pthread_once just before it stores that it is ready,
 * which a future may see before it is woken; so a future also acquires that once_flag, which
 * follows the futex in memory. */
enum { FUTURE_ONCE = 8, FUTURE_WAITER = INT_MIN }; /* the futex, the flag "retrieved", once_flag */

static bool future_wait(unsigned *futex, unsigned value, int op, const struct timespec *until,
                        const void *caller) {
    watch_waits(true);
    bool in_time =
        syscall(SYS_futex, futex, op, value, until, NULL, FUTEX_BITSET_MATCH_ANY) != -1 ||
        errno != ETIMEDOUT;
    watch_waits(false);
    unsigned now = __atomic_load_n(futex, __ATOMIC_ACQUIRE);
    if ((now | (unsigned)FUTURE_WAITER) != (value | (unsigned)FUTURE_WAITER)) {
        acquire(futex, caller);
        acquire((char *)futex + FUTURE_ONCE, caller);
    }
    return in_time;
}

#define FUTURE_WAIT(name, op)                                                                      \
    PRELOAD_EXPORT bool name(void *self, unsigned *futex, unsigned value, bool has_timeout,        \
                             int64_t s, int64_t ns);                                               \
    PRELOAD_EXPORT bool name(void *self, unsigned *futex, unsigned value, bool has_timeout,        \
                             int64_t s, int64_t ns) {                                              \
        (void)self;                                                                                \
        const struct timespec until = { .tv_sec = s, .tv_nsec = ns };                              \
        if (has_timeout && s < 0)                                                                  \
            return false;                                                                          \
        return future_wait(futex, value, op, has_timeout ? &until : NULL, CALLER);                 \
    }
/* std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned *, unsigned, bool,
 * chrono::seconds, chrono::nanoseconds), the same of the steady clock, and _M_futex_notify_all. */
#define FUTURE_TIME        PjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE
#define FUTURE_PASTE(a, b) a##b
#define FUTURE_NAME(a, b)  FUTURE_PASTE(a, b)
FUTURE_WAIT(FUTURE_NAME(_ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilE, FUTURE_TIME),
            FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME)
FUTURE_WAIT(FUTURE_NAME(_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyE,
                        FUTURE_TIME),
            FUTEX_WAIT_BITSET)

PRELOAD_EXPORT void _ZNSt28__atomic_futex_unsigned_base19_M_futex_notify_allEPj(unsigned *futex);
PRELOAD_EXPORT void _ZNSt28__atomic_futex_unsigned_base19_M_futex_notify_allEPj(unsigned *futex) {
    release(futex, CALLER);
    (void)syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX);
}
