/* fault_observer.h - the software device's own word on its faults, for the recording.
 *
 * Where the runtime is the software device and there is a recording, every operation is queued with
 * the number of its event as a tag, and a fault is written down by an observer before any HIP call
 * can see it. On ROCm nothing here does anything. */
#ifndef AUDIT_FAULT_OBSERVER_H
#define AUDIT_FAULT_OBSERVER_H

#include "audit/call.h"

/* Looks the device's functions up in the runtime's library (NULL: none). */
void fault_attach(void *library);
void fault_detach(void);

/* What this thread queues next belongs to the call. */
static inline void fault_tag(const struct call *c) {
    if (audit.soft_tag)
        audit.soft_tag(c->seq + 1); /* tag 0 means none, and so does RECORD_NONE + 1 */
}

#endif
