/* schedule.h - the scheduler: which queued operation runs next, and who waits for it.
 *
 * Owns operations from their push to their end. Thread-safe; functions that say so want the
 * scheduler's lock held. */
#ifndef SOFT_RUNTIME_SCHEDULE_H
#define SOFT_RUNTIME_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "soft/runtime/op.h"

/* run: runs an operation on the calling thread. emptied: a closed stream has no operations left and
 * is not used here any more. */
enum rc soft_schedule_init(void (*run)(struct soft_op *op),
                           void (*emptied)(struct soft_stream *stream), struct err *e);
void soft_schedule_lock(void);
void soft_schedule_unlock(void);
/* Puts op at the end of its stream's queue, with the dependencies it has. The caller holds the
 * lock, so that dependencies and place are decided together. */
void soft_schedule_push(struct soft_stream *stream, struct soft_op *op);
/* The stream after `after` (NULL: the first) among those with queued work; under the lock. */
struct soft_stream *soft_schedule_next_active(struct soft_stream *after);
/* The policy's part of a submission, without the lock: wake, wait, or pick at random. waits: the
 * caller calls soft_schedule_wait() for it next. */
void soft_schedule_submitted(struct soft_stream *stream, uint64_t seq, bool waits);
/* Returns when the stream has completed seq. */
void soft_schedule_wait(struct soft_stream *stream, uint64_t seq);
/* One look: is it complete? A program that polls makes progress under every policy. */
bool soft_schedule_poll(struct soft_stream *stream, uint64_t seq);
/* Waits for all queued work of a device; negative: of all. */
void soft_schedule_drain(int device);
/* A number from the schedule's random stream, for choices that HIP leaves open. */
uint64_t soft_schedule_random(void);

#endif
