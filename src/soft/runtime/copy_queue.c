/* copy_queue.c - how copies and fills are queued, and when a call waits for them.
 *
 * A call without "Async" works in the legacy default stream and waits, except where HIP lets the
 * host go on: copies between device blocks, and fills of device blocks that are not managed. Copies
 * of managed memory wait if the call names the host as one side. An Async call only queues, except
 * that a copy with pageable memory on one side is complete when it returns. */
#include "soft/runtime/copy.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/stream.h"

hipError_t soft_copy_finish(struct soft_stream *st, struct soft_op *op, bool async) {
    bool waits = async ? op->pageable : !op->device_only;
    if (!async && !st->capture) {
        hipError_t r = soft_capture_refuse_unsafe();
        if (r != hipSuccess) {
            soft_op_free(op);
            return r;
        }
    }
    return waits && !(st->capture && async) ? soft_submit_and_wait(st, op)
                                            : soft_submit(st, op, NULL);
}

hipError_t soft_copy_queue(const char *what, const struct soft_copy *c, hipMemcpyKind kind,
                           hipStream_t stream, bool async) {
    struct soft_stream *st;
    struct soft_op *op;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess || !c->width || !c->height || !c->depth)
        return r;
    if (c->dst == c->src && kind == hipMemcpyDefault)
        return hipSuccess;
    r = soft_op_copy(&op, what, c, kind);
    return r == hipSuccess ? soft_copy_finish(st, op, async) : r;
}
