/* preload.h - libgcore_preload.so: the audit in front of the HIP runtime of any program.
 *
 * The library is put into a program by LD_PRELOAD. It exports every function of hip_api.def, so
 * that the program's calls come here; the first one loads the runtime that the program uses,
 * attaches the audit to it, and from then on each call goes to the decorated table. That first call
 * may come before main, from a constructor of another library, from any thread, and from a signal
 * handler. Where the audit cannot start, one line on standard error says why and the program goes
 * on without it.
 *
 *   start.c    the first call; which table a call belongs to
 *   early.c    answers to calls of signal handlers that interrupted the start
 *   exports.c  the HIP functions
 *   lookup.c   dlsym and relatives, for programs that open the runtime themselves
 *   next.c     the C library's functions behind those that this library exports
 *   threads.c  host threads, locks and semaphores: who waited for whom
 *   openmp.c   the same for the threads of OpenMP
 *   pipes.c    the same for threads that read what another one wrote
 *   host.c     host memory of unfinished copies: free, realloc, munmap
 *   stack.c    which host memory is a stack
 *   watch.c    if asked for, the host's accesses to memory of unfinished work
 *   signals.c  SIGSEGV, SIGBUS and SIGTRAP, in front of the program's own handlers
 *   crash.c    what the program's bad accesses hit
 *   io.c       accesses that the system makes for the program: read, write and relatives
 *   end.c      ends of a process at which no exit handler runs
 *
 * Nothing here changes what the program gets: results, errno and signals stay as they were. All
 * functions may be called from any thread. */
#ifndef PRELOAD_PRELOAD_H
#define PRELOAD_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/spin.h"
#include "hip/hip_api.h"

/* Not instrumented by sanitizers: the dynamic linker and a sanitizer's own start call these before
 * instrumented code can run, and HIP functions must end in jumps (exports.c). What they call is. */
#define PRELOAD_PLAIN  __attribute__((no_sanitize("address", "thread", "undefined")))
#define PRELOAD_EXPORT __attribute__((visibility("default"))) PRELOAD_PLAIN

/* The runtime's code; calls from there are its own business. Until the first call has started the
 * audit, size covers everything and every call takes the slow path. */
struct preload {
    _Atomic uintptr_t base, size;
    atomic_bool recording; /* audit.writer can be used */
    struct hip_api table;
};
extern struct preload preload;

/* The calling thread. */
struct preload_thread {
    uint64_t news; /* counts HIP calls and what was heard from other threads; threads.c */
    int inside;    /* depth of this library's own work: hooks of the C library pass through */
    int waits;     /* depth of calls that wait */
    bool runtime;  /* made by the HIP runtime and not by the program */
    bool host_fn;  /* but runs a host function of the program's */
    bool begun;    /* it runs the program's code: ThreadSanitizer's own start of it is over */
};
extern __thread struct preload_thread preload_me __attribute__((tls_model("initial-exec")));

/* Slow path: starts the audit, or the call comes from inside the runtime or during the start. */
const struct hip_api *preload_pick(const void *caller);

/* The table for a HIP call that returns to caller. */
static inline const struct hip_api *preload_table(const void *caller) {
    uintptr_t size = atomic_load_explicit(&preload.size, memory_order_acquire);
    uintptr_t base = atomic_load_explicit(&preload.base, memory_order_relaxed);
    preload_me.news++;
    if (__builtin_expect((uintptr_t)caller - base >= size, 1))
        return &preload.table;
    return preload_pick(caller);
}

/* Begins work of this library's own, under its lock. False if this thread was interrupted while it
 * had one: it must not wait for itself. */
static inline bool preload_enter(struct spin *lock) {
    if (preload_me.inside)
        return false;
    preload_me.inside++;
    spin_lock(lock);
    return true;
}

static inline void preload_leave(struct spin *lock) {
    spin_unlock(lock);
    preload_me.inside--;
}

/* A lock for preload_enter() that is free in every new child: of fork(), and of what makes
 * processes without its handlers, such as _Fork(). Called while the library starts, a few times. */
struct spin *preload_new_lock(void);

/* True if events can be written now, and the call is the program's and not our own. */
static inline bool preload_is_recording(void) {
    return atomic_load_explicit(&preload.recording, memory_order_acquire) && !preload_me.inside;
}

/* False while a sanitizer begins or ends the process or the calling thread: instrumented code
 * cannot run. */
PRELOAD_PLAIN static inline bool preload_is_ready(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return preload_me.begun;
#else
    return true;
#endif
}

/* True if the address is in the HIP runtime, a library it stands on, or this library. */
bool preload_is_internal(const void *address);
/* This library's own. */
bool preload_is_own(const void *address);

/* True while look-ups of HIP names in a runtime are to return audited functions. */
bool preload_is_wanted(void);

/* For calls that can neither be made nor wait: all return hipErrorNotInitialized. */
const struct hip_api *early_table(void);

/* The exported function, which calls the audited one. */
void *preload_exported(enum hip_fn fn);

#endif
