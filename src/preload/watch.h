/* watch.h - catches the host's accesses to memory of unfinished work.
 *
 * Pages of pinned, managed and registered memory that a copy, a set or a kernel writes are made
 * inaccessible, those that it reads read-only, until the program has waited for the work. Accesses
 * that come too early are recorded as EARLY_HOST_ACCESS with their call stacks, a few of them for
 * each use, and let through: the program goes on as if nothing had happened. Of registered memory
 * only the pages that hold nothing else are watched. The kernel does not wait for a signal handler
 * when it meets such a page: system calls that move data are looked at before they are made (io.c);
 * another one that is given such memory too early fails with EFAULT, which is the one thing that
 * the program can notice.
 *
 * All but watch_start may be called from any thread at any time; they do nothing if it was not
 * called. */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"

/* Takes SIGSEGV and SIGTRAP, in front of whoever has them. False if the processor is not known
 * here. */
bool watch_start(void);

void watch_add(const struct audit_host_use *use);
/* The memory is about to be given back. */
void watch_drop(uint64_t address, uint64_t bytes);
/* Opens what the host has waited for. */
void watch_release_finished(void);
/* The program is about to have the system read, or write, this memory: an early access, if it is
 * one, is recorded with caller's stack, and the pages are opened for good. */
void watch_syscall(uint64_t address, uint64_t bytes, bool writes, const void *caller);
/* The thread, which may be the runtime's, runs code of the program's; or no longer does. */
void watch_host_fn(bool begins);

#endif
