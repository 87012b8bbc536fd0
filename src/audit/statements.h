/* statements.h - what the device itself states about faults and launches, for the recording.
 *
 * Where the runtime is the software device and there is a recording, every operation is queued with
 * the number of its event as a tag. The device names it when an operation faults, when a launch is
 * not run, and when bytes beside a block have been overwritten; and it says how many launches of a
 * stream it is done with. A verdict is built on these statements. On ROCm nothing is stated: every
 * launch says that nothing was checked. */
#ifndef AUDIT_STATEMENTS_H
#define AUDIT_STATEMENTS_H

#include "audit/call.h"

/* Registers with the runtime, whose functions are in audit.soft. detach also takes the last look.
 */
void statements_attach(void);
void statements_detach(void);
/* The end of the process: a last look, and how far every stream came. */
void statements_end(void);

/* What this thread queues next belongs to the call. */
static inline void statement_tag(const struct call *c) {
    if (audit.soft.tag && audit.writer)
        audit.soft.tag(c->seq + 1); /* tag 0 means none, and so does RECORD_NONE + 1 */
}

/* The extra CHECKED of a launch. footprint: its event names all bytes that it touches.
 * cooperative: its groups may wait for each other, which the device does not follow as order. */
void statement_checked(union event_slot *slot, const void *function, bool footprint,
                       bool cooperative);

/* A launch call failed: the launch did not run, and why. */
void statement_refused(const struct call *c, const void *function, hipError_t r);

#endif
