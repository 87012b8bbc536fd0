/* watch.h - catches the host's accesses to memory of unfinished work.
 *
 * Pages of pinned, managed and registered memory that a copy, a set or a kernel writes are made
 * inaccessible, those that it reads read-only, until the program has waited for the work. Accesses
 * that come too early are recorded as EARLY_HOST_ACCESS with their call stacks, a few of them for
 * each use, and let through: the program continues as if nothing had happened. Of registered memory
 * only the pages that hold nothing else are watched. A system call that meets such a page raises no
 * signal but fails with EFAULT, so the pages that a call touches are opened around it (io.c). Where
 * accesses go unseen for that or another reason, UNWATCHED is recorded.
 *
 * All but watch_start may be called from any thread at any time; they do nothing if it was not
 * called. */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"

/* Starts watching; signals.c must handle SIGSEGV and SIGTRAP already. False if the processor is not
 * supported. */
bool watch_start(void);

/* Called by the handlers of these; true if a watch caused the signal, which is then handled. */
bool watch_on_fault(const siginfo_t *info, void *context);
bool watch_on_step(void *context);

/* Is anything watched now? */
bool watch_is_on(void);
void watch_add(const struct audit_host_use *use);
/* The memory is about to be given back. */
void watch_drop(uint64_t address, uint64_t bytes);
/* Opens what the host has waited for. */
void watch_release_finished(void);

/* What is open for a system call: zeroed before, then any number of watch_open(), the call,
 * watch_close(). If that is never reached (the thread was cancelled) the pages stay open. */
enum { WATCH_PASS_MAX = 8 };
struct watch_pass {
    uint16_t count, flights;
    bool all;
    uint16_t flight[WATCH_PASS_MAX]; /* of what the call touches, watched or not */
    struct {
        uint16_t index;
        uint32_t id;
    } at[WATCH_PASS_MAX];
};
/* The program is about to have the system read, or write, this memory: an early access, if it is
 * one, is recorded with caller's stack. */
void watch_open(struct watch_pass *p, uint64_t address, uint64_t bytes, bool writes,
                const void *caller);
/* The same for a call that may touch anything. False if there was nothing to open. */
bool watch_open_all(struct watch_pass *p, const void *caller);
void watch_close(struct watch_pass *p);
/* For a call that does not return: ends all current watches. False if there are none. */
bool watch_end_present(void);
/* From now on the system may touch any memory at any time: nothing is watched any more. */
void watch_end_all(void);

/* The calling thread is in a call that waits for another thread or for the device; calls may nest.
 * A kernel gets at watched pages while all threads of the program do. */
void watch_waits(bool begins);
/* Does the program have more than one thread now? */
bool watch_threads_are_several(void);
/* The program gets one more thread, or loses one. */
void watch_thread(bool begins);
/* In a child of fork: the calling thread is the only one, and nothing is watched. */
void watch_forked(void);

/* The thread, which may be the runtime's, runs code of the program's; or no longer does. */
void watch_host_fn(bool begins);

#endif
