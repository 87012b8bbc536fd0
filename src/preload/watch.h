/* watch.h - catches the host's first access to memory of an unfinished copy.
 *
 * Pages of pinned memory that a copy writes are made inaccessible, those that it reads read-only,
 * until the program has waited for the copy. The first access that comes too early is recorded as
 * EARLY_HOST_ACCESS with its call stack; then the pages are opened again and the program goes on as
 * if nothing had happened. Only pinned memory has pages of its own; a system call that is given
 * such memory too early fails with EFAULT, which is the one thing that the program can notice.
 *
 * All but watch_start may be called from any thread at any time; they do nothing if it was not
 * called. */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>

#include "audit/audit.h"

/* Takes SIGSEGV, in front of whoever has it. False if the processor is not known here. */
bool watch_start(void);

void watch_add(const struct audit_host_use *use);
/* The memory is about to be given back. */
void watch_drop(uint64_t address, uint64_t bytes);
/* Opens what the host has waited for; and what was queued before the event `queued`. */
void watch_release_finished(void);
void watch_release_before(uint64_t queued);

#endif
