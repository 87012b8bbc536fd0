/* wait.h - how a copy waits for unfinished work of other streams.
 *
 * A checked copy waits, by events and without stopping the host, for every busy stream that HIP's
 * rules do not put before it anyway: the legacy default stream and blocking streams of the same
 * device wait for each other, non-blocking streams wait for none. Where nothing is busy this costs
 * a look at each stream. Thread-safe. */
#ifndef AUDIT_WAIT_H
#define AUDIT_WAIT_H

#include "audit/order.h"

/* Work that will be over when a stream, or a device, has been waited for. */
enum { WAIT_LIST_MAX = 24 };
struct wait_list {
    unsigned count; /* what does not fit is waited for all the same, but not proved */
    struct {
        struct order_stream *stream;
        uint64_t mark;
    } item[WAIT_LIST_MAX];
};

/* Makes stream `s` wait for all unfinished work. caller is for the recording. Returns the runtime's
 * error on failure. Call wait_done() once s has been waited for: all of that work is over then. */
hipError_t wait_for_busy(struct order_stream *s, struct wait_list *list, const void *caller);
void wait_done(const struct wait_list *list);

/* The same for hipDeviceSynchronize: before it, and wait_done() after it succeeded. */
void wait_mark_device(int device, struct wait_list *list);

/* The stream is about to be destroyed or captured: an event stands for its work from now on. */
void wait_settle(struct order_stream *s);

/* A new event of the stream's device, without timing. */
hipError_t wait_make_event(const struct order_stream *s, hipEvent_t *out);

#endif
