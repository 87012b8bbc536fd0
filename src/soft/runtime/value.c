/* value.c - stream memory operations: a stream that waits for a value in memory, or writes one.
 *
 * Both are host calls of their stream (op.h), because a wait may last for as long as it likes and
 * something outside of HIP may end it: a thread of the program that stores into host memory. The
 * value is looked at every POLL_NS. A wait also ends when its device has failed or its memory is
 * gone, so that no thread is left behind. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/slack.h"
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

static bool is_met_by(const struct soft_value *v, uint64_t found) {
    uint64_t now = found & v->mask, want = v->value;
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

/* ---- which write a wait was for -------------------------------------------------------------- */

/* A value that a stream wrote, and the one that it replaced. */
struct written {
    uint64_t addr, old, value;
    uint32_t bytes;
    uint64_t tag;
};

enum { WRITTEN_MAX = 1024 };

/* The last ones, in the order in which they were written. */
static struct {
    pthread_mutex_t lock;
    uint64_t count;
    struct written last[WRITTEN_MAX];
} history = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void write_value(const struct soft_value *v, uint64_t tag) {
    void *at = soft_reach(v->addr);
    struct written w = { .addr = v->addr, .value = v->value, .bytes = v->bytes, .tag = tag };
    pthread_mutex_lock(&history.lock);
    if (v->bytes == 8) {
        w.old = atomic_exchange((_Atomic uint64_t *)at, v->value);
    } else {
        w.value = (uint32_t)v->value;
        w.old = atomic_exchange((_Atomic uint32_t *)at, (uint32_t)v->value);
    }
    history.last[history.count++ % WRITTEN_MAX] = w;
    pthread_mutex_unlock(&history.lock);
}

/* The tag of the write from which on a wait that found this value could have ended: it replaced a
 * value that did not end it, and every write since then left one that does. 0 if there is none, or
 * something else wrote there too. */
static uint64_t find_write(const struct soft_value *v, uint64_t found) {
    uint64_t tag = 0, expected = found;
    pthread_mutex_lock(&history.lock);
    uint64_t oldest = history.count > WRITTEN_MAX ? history.count - WRITTEN_MAX : 0;
    for (uint64_t i = history.count; i-- > oldest && !tag;) {
        const struct written *w = &history.last[i % WRITTEN_MAX];
        if (w->addr >= v->addr + v->bytes || v->addr >= w->addr + w->bytes)
            continue;
        if (w->addr != v->addr || w->bytes != v->bytes || w->value != expected)
            break;
        if (!is_met_by(v, w->old))
            tag = w->tag;
        expected = w->old;
    }
    pthread_mutex_unlock(&history.lock);
    return tag;
}

static void await_value(const struct soft_value *v, const struct soft_op *op) {
    const struct timespec pause = { 0, POLL_NS };
    while (is_there(v) && !soft_error_raised(op->device)) {
        uint64_t found = load(v);
        if (is_met_by(v, found)) {
            uint64_t write = find_write(v, found);
            if (write)
                soft_value_tell(op, write);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

void soft_value_run(const struct soft_op *op) {
    const struct soft_value *v = &op->u.host.value;
    if (!is_there(v))
        soft_error_raise(op->device, hipErrorIllegalAddress);
    else if (v->how == SOFT_VALUE_WRITE)
        write_value(v, op->tag);
    else
        await_value(v, op);
}

/* ---- queueing ------------------------------------------------------------------------------- */

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
    return st->capture ? soft_capture_calls()->refuse(st) : queue(st, what, v);
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
