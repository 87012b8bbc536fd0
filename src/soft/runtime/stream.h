/* stream.h - streams, their rules, and submitting operations to them.
 *
 * Streams come from a pool of handles: their structs are never unmapped. Thread-safe; the queue's
 * members are guarded by the scheduler's lock. */
#ifndef SOFT_RUNTIME_STREAM_H
#define SOFT_RUNTIME_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/op.h"

struct soft_capture; /* graph/capture.c */
struct soft_event;

struct soft_stream {
    struct soft_handle handle;
    int device;
    unsigned flags; /* hipStreamNonBlocking */
    int priority;
    bool is_null;    /* the device's legacy default stream */
    bool per_thread; /* a thread's default stream */
    /* Queue, under the scheduler's lock. A stream that reuses a handle starts its seqs above all
     * that were used before, so that (stream, seq) names an operation for ever. */
    struct soft_op *head, *tail;
    struct soft_stream *next_active, *prev_active;
    bool active;
    uint64_t submitted;
    uint64_t allowed;                     /* the schedule lets operations up to this seq run */
    uint64_t wanted;                      /* lazy: somebody waits for operations up to this seq */
    struct soft_op *held;                 /* the first operation past allowed, or NULL */
    bool closed;                          /* destroyed by the program, not yet empty */
    struct soft_capture *_Atomic capture; /* not NULL while capturing */
    /* From here on, read without the lock, also by those who wait for a stream that had this handle
     * before: completed never goes back. */
    _Atomic uint64_t first; /* the seq before its first */
    _Atomic uint64_t completed;
    _Atomic uint64_t launches; /* completed; written by the thread that completes them, in order */
    _Atomic uint64_t awaited;  /* the first seq that somebody sleeps for, or 0 */
};

/* What stands in for submitting, recording and waiting while a stream captures. Graphs are above
 * streams and events, so streams are handed these functions at the start; graph/capture.h says what
 * each does. */
struct soft_capture_calls {
    hipError_t (*add)(struct soft_stream *stream, struct soft_op *op);
    hipError_t (*record)(struct soft_stream *stream, struct soft_event *event);
    hipError_t (*wait)(struct soft_stream *stream, struct soft_event *event);
    hipError_t (*refuse)(struct soft_stream *stream);
    hipError_t (*refuse_sync)(void);
    void (*abandon)(struct soft_stream *stream);
    void (*forget)(struct soft_event *event);
};
void soft_stream_set_capture_calls(const struct soft_capture_calls *calls);
const struct soft_capture_calls *soft_capture_calls(void);

/* The stream behind a handle: NULL and hipStreamLegacy are the current device's default stream,
 * hipStreamPerThread this thread's own. */
hipError_t soft_stream_resolve(hipStream_t handle, struct soft_stream **out);
struct soft_stream *soft_stream_null(int device);
struct soft_handles *soft_streams(void);
/* The scheduler has run the last operation of a stream that the program had destroyed. */
void soft_stream_recycle(struct soft_stream *stream);

/* Queues op after the stream's work and after whatever the default-stream rules add; on a
 * capturing stream, adds it to the graph instead. Takes op over in any case. Then does what the
 * schedule says. *seq (may be NULL) is the operation's place; 0 when captured. */
hipError_t soft_submit(struct soft_stream *stream, struct soft_op *op, uint64_t *seq);

/* The queueing part of soft_submit for a caller that holds the scheduler's lock: adds the rules'
 * dependencies and pushes. On failure op is still the caller's. */
hipError_t soft_submit_locked(struct soft_stream *stream, struct soft_op *op);

/* soft_submit, then waits until it has run, and reports the device's state. Refused while the
 * stream captures. */
hipError_t soft_submit_and_wait(struct soft_stream *stream, struct soft_op *op);

#endif
