/* end.c - ends of a process at which no exit handler runs: _exit, _Exit, quick_exit.
 *
 * Forked children usually end this way, and that is an orderly end: the recording says so. What
 * vfork makes shares our memory and is not this process; it is recognised by its process id. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/preload.h"

static _Atomic pid_t own;
/* Looked up at the start: _exit may be called in a forked child of a program with many threads,
 * where another thread's lock of the dynamic linker is never released. */
static void (*next)(int status) __attribute__((noreturn));

static void note_process(void) {
    atomic_store_explicit(&own, getpid(), memory_order_relaxed);
}

static void end_recording(void) {
    if (atomic_load_explicit(&preload.recording, memory_order_acquire) &&
        atomic_load_explicit(&own, memory_order_relaxed) == getpid())
        record_end(audit.writer);
}

__attribute__((constructor)) static void prepare(void) {
    void *found = next_find("_exit");
    memcpy(&next, &found, sizeof next);
    note_process();
    pthread_atfork(NULL, NULL, note_process);
    at_quick_exit(end_recording);
}

PRELOAD_EXPORT void _exit(int status) {
    end_recording();
    if (next)
        next(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

PRELOAD_EXPORT void _Exit(int status) {
    _exit(status);
}
