/* capture.h - stream capture: what submissions, events and other calls do while a stream captures.
 * Captures belong to the graph's lock. Thread-safe. */
#ifndef SOFT_RUNTIME_CAPTURE_H
#define SOFT_RUNTIME_CAPTURE_H

#include "hip/hip_types.h"
#include "soft/runtime/event.h"
#include "soft/runtime/op.h"
#include "soft/runtime/stream.h"

/* Code below graphs calls these by way of soft_capture_calls() (stream.h); parts.c hands them over.
 */

/* soft_submit's, hipEventRecord's and hipStreamWaitEvent's part on a capturing stream. add takes op
 * over. wait also serves a stream that does not capture yet and thereby joins. */
hipError_t soft_capture_add(struct soft_stream *stream, struct soft_op *op);
hipError_t soft_capture_record(struct soft_stream *stream, struct soft_event *event);
hipError_t soft_capture_wait(struct soft_stream *stream, struct soft_event *event);
/* A call that HIP forbids while stream captures: invalidates the capture, returns the error. */
hipError_t soft_capture_refuse(struct soft_stream *stream);
/* The same for calls that wait for a whole device: refused while one of its streams captures, else
 * hipSuccess. */
hipError_t soft_capture_refuse_sync(void);
/* The same for calls that HIP calls unsafe during capture (hipMalloc, hipFree, hipMemcpy ...), as
 * this thread's capture mode and the modes of the captures under way say. */
hipError_t soft_capture_refuse_unsafe(void);
/* The stream is being destroyed, or the event: forget it. */
void soft_capture_abandon(struct soft_stream *stream);
void soft_capture_forget(struct soft_event *event);

#endif
