/* value.c - stream memory operations: a stream that waits for a value in memory, or writes one.
 *
 * Both are host calls of their stream (op.h), because a wait may last for as long as it likes and
 * something outside of HIP may end it: a thread of the program that stores into host memory. The
 * value is looked at every POLL_NS. A wait also ends when its device has failed or its memory is
 * gone, so that no thread is left behind. */
#include <stdatomic.h>
#include <time.h>

#include "soft/runtime/error.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/stream.h"
#include "soft/runtime/value.h"

enum { POLL_NS = 50000 };

/* Live memory that holds all of the value. */
static bool is_there(const struct soft_value *v) {
    struct soft_block b;
    return soft_memory_find(v->addr, &b) && b.state == SOFT_LIVE &&
           v->bytes <= b.size - (v->addr - b.addr);
}

static uint64_t load(const struct soft_value *v) {
    void *at = soft_reach(v->addr);
    return v->bytes == 8 ? atomic_load((_Atomic uint64_t *)at)
                         : atomic_load((_Atomic uint32_t *)at);
}

static bool is_met(const struct soft_value *v) {
    uint64_t now = load(v) & v->mask, want = v->value;
    uint64_t width = v->bytes == 8 ? UINT64_MAX : UINT32_MAX;
    switch (v->how) {
    case SOFT_VALUE_WAIT_GTE: /* cyclic, as the signed difference says */
        return v->bytes == 8 ? (int64_t)(now - want) >= 0
                             : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
    case SOFT_VALUE_WAIT_EQ:
        return now == (want & v->mask);
    case SOFT_VALUE_WAIT_AND:
        return (now & want) != 0;
    case SOFT_VALUE_WAIT_NOR:
        return (~(now | want) & width & v->mask) != 0;
    default:
        return true;
    }
}

void soft_value_run(const struct soft_value *v, int device) {
    const struct timespec pause = { 0, POLL_NS };
    if (!is_there(v)) {
        soft_error_raise(device, hipErrorIllegalAddress);
        return;
    }
    if (v->how != SOFT_VALUE_WRITE) {
        while (is_there(v) && !is_met(v) && !soft_error_raised(device))
            nanosleep(&pause, NULL);
        return;
    }
    void *at = soft_reach(v->addr);
    if (v->bytes == 8)
        atomic_store((_Atomic uint64_t *)at, v->value);
    else
        atomic_store((_Atomic uint32_t *)at, (uint32_t)v->value);
}

static hipError_t queue(struct soft_stream *st, const char *what, const struct soft_value *v) {
    struct soft_op *op = soft_op_new(SOFT_OP_HOST, what);
    if (!op)
        return hipErrorOutOfMemory;
    op->u.host = (struct soft_host_call){ .value = *v };
    return soft_submit(st, op, NULL);
}

hipError_t soft_value_await(struct soft_stream *st, const char *what, const void *at,
                            uint64_t value) {
    struct soft_value v = { .addr = (uint64_t)(uintptr_t)at,
                            .value = value,
                            .mask = UINT64_MAX,
                            .bytes = 8,
                            .how = SOFT_VALUE_WAIT_GTE };
    return queue(st, what, &v);
}

static hipError_t submit(const char *what, hipStream_t stream, const struct soft_value *v) {
    struct soft_stream *st;
    if (!v->addr || v->addr % v->bytes || !is_there(v))
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    return st->capture ? soft_capture_refuse(st) : queue(st, what, v);
}

/* HIP's flags of a wait. */
static bool read_flags(unsigned flags, enum soft_value_how *how) {
    static const enum soft_value_how known[] = {
        [hipStreamWaitValueGte] = SOFT_VALUE_WAIT_GTE,
        [hipStreamWaitValueEq] = SOFT_VALUE_WAIT_EQ,
        [hipStreamWaitValueAnd] = SOFT_VALUE_WAIT_AND,
        [hipStreamWaitValueNor] = SOFT_VALUE_WAIT_NOR,
    };
    if (flags >= sizeof known / sizeof *known)
        return false;
    *how = known[flags];
    return true;
}

static hipError_t wait_for(const char *what, hipStream_t stream, void *ptr, uint64_t value,
                           unsigned flags, uint64_t mask, unsigned bytes) {
    struct soft_value v = {
        .addr = (uint64_t)(uintptr_t)ptr, .value = value, .mask = mask, .bytes = bytes
    };
    return read_flags(flags, &v.how) ? submit(what, stream, &v) : hipErrorInvalidValue;
}

static hipError_t write_to(const char *what, hipStream_t stream, void *ptr, uint64_t value,
                           unsigned flags, unsigned bytes) {
    struct soft_value v = {
        .addr = (uint64_t)(uintptr_t)ptr, .value = value, .bytes = bytes, .how = SOFT_VALUE_WRITE
    };
    return flags ? hipErrorInvalidValue : submit(what, stream, &v);
}

hipError_t soft_hipStreamWaitValue32(hipStream_t stream, void *ptr, uint32_t value,
                                     unsigned int flags, uint32_t mask) {
    return wait_for("hipStreamWaitValue32", stream, ptr, value, flags, mask, 4);
}

hipError_t soft_hipStreamWaitValue64(hipStream_t stream, void *ptr, uint64_t value,
                                     unsigned int flags, uint64_t mask) {
    return wait_for("hipStreamWaitValue64", stream, ptr, value, flags, mask, 8);
}

hipError_t soft_hipStreamWriteValue32(hipStream_t stream, void *ptr, uint32_t value,
                                      unsigned int flags) {
    return write_to("hipStreamWriteValue32", stream, ptr, value, flags, 4);
}

hipError_t soft_hipStreamWriteValue64(hipStream_t stream, void *ptr, uint64_t value,
                                      unsigned int flags) {
    return write_to("hipStreamWriteValue64", stream, ptr, value, flags, 8);
}

static hipError_t batched(hipStream_t stream, const hipStreamBatchMemOpParams *p) {
    static const char what[] = "hipStreamBatchMemOp";
    switch ((unsigned)p->operation) {
    case hipStreamMemOpWaitValue32:
        return wait_for(what, stream, p->waitValue.address, p->waitValue.value, p->waitValue.flags,
                        UINT32_MAX, 4);
    case hipStreamMemOpWaitValue64:
        return wait_for(what, stream, p->waitValue.address, p->waitValue.value64,
                        p->waitValue.flags, UINT64_MAX, 8);
    case hipStreamMemOpWriteValue32:
        return write_to(what, stream, p->writeValue.address, p->writeValue.value,
                        p->writeValue.flags, 4);
    case hipStreamMemOpWriteValue64:
        return write_to(what, stream, p->writeValue.address, p->writeValue.value64,
                        p->writeValue.flags, 8);
    default: /* barriers and flushes: AMD's runtime has none either */
        return hipErrorInvalidValue;
    }
}

hipError_t soft_hipStreamBatchMemOp(hipStream_t stream, unsigned int count,
                                    hipStreamBatchMemOpParams *paramArray, unsigned int flags) {
    if (!count || count > 256 || !paramArray || flags)
        return hipErrorInvalidValue;
    hipError_t r = hipSuccess;
    for (unsigned i = 0; i < count && r == hipSuccess; i++)
        r = batched(stream, &paramArray[i]);
    return r;
}
