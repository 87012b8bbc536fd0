/* host.h - host memory that unfinished copies use.
 *
 * The audit reports every asynchronous copy with a side in host memory; it is unfinished until the
 * program has waited for it. Memory that is freed or unmapped before then, or is on the stack of a
 * function that returns, is recorded as HOST_FREE. With GCORE_WATCH_HOST=1 early accesses are
 * recorded, too: see watch.h. Thread-safe; copies that a signal handler makes while it interrupts
 * this module go unobserved, because it must not wait. */
#ifndef PRELOAD_HOST_H
#define PRELOAD_HOST_H

#include <stdbool.h>

#include "audit/audit.h"

/* Called once, when the audit has started and records. */
void host_start(void);

/* The calling thread has returned from its last function: its stack is gone. */
void host_thread_ends(void);

/* In a child of fork: what the parent has queued is none of its business. */
void host_forked(void);

/* True if the host has not waited for the copy yet. */
bool host_is_pending(const struct audit_host_use *use);

#endif
