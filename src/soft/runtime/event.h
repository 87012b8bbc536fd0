/* event.h - HIP events. They come from a pool of handles. Thread-safe where nothing else is said.
 */
#ifndef SOFT_RUNTIME_EVENT_H
#define SOFT_RUNTIME_EVENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "hip/hip_types.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/op.h"
#include "soft/runtime/stream.h"

/* How often an event for several processes was recorded, and the last record that was reached. It
 * lies in a page that all these processes have mapped, and that stays mapped. */
struct soft_event_shared {
    _Atomic uint64_t recorded, completed;
};

struct soft_event {
    struct soft_handle handle;
    unsigned flags;
    int device;
    /* The last record, under the scheduler's lock; stream NULL: never recorded. */
    struct soft_stream *stream;
    uint64_t seq;
    /* Recorded into a capture: graph/capture.h */
    void *_Atomic capture_graph;
    void *capture_nodes;
    /* hipEventInterprocess, else NULL and 0; the file is for the process that opens a handle */
    struct soft_event_shared *shared;
    int file;
    /* A record of an event that had this handle before may still be reached: it finds a generation
     * that is not its own. Under the scheduler's lock. */
    uint64_t generation;      /* of the last record, among all records of all events */
    _Atomic uint64_t time_ns; /* of the last completed record */
};
struct soft_handles *soft_events(void);
void soft_event_completed(struct soft_event *event, uint64_t generation,
                          struct soft_event_shared *shared, uint64_t number);
/* An event with those counters; NULL without memory. */
struct soft_event *soft_event_import(int file);
/* hipEventRecord on a stream that does not capture, with op, a new SOFT_OP_RECORD, for a caller
 * that holds the scheduler's lock. On failure op is still the caller's. */
hipError_t soft_event_record_locked(struct soft_event *event, struct soft_stream *stream,
                                    struct soft_op *op);
/* hipStreamWaitEvent on a stream that does not capture. */
hipError_t soft_event_wait(struct soft_event *event, struct soft_stream *stream);

#endif
