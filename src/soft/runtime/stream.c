/* stream.c - streams, and HIP's rules about the default stream.
 *
 * The rules become dependencies when an operation is submitted: one in the legacy default stream
 * depends on all that blocking streams of its device have been given so far; one in a blocking
 * stream (the per-thread default streams are blocking too) depends on all that the legacy default
 * stream has been given; one in a hipStreamNonBlocking stream on neither. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "soft/runtime/error.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/host.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

/* 2^40 operations for each of 2^24 streams */
enum { STREAMS_MAX = 65536, EPOCH_BITS = 40 };

static struct soft_handles *streams;
static struct soft_stream null_streams[SOFT_DEVICES_MAX];
static _Atomic uint64_t next_epoch = 1;
static pthread_key_t per_thread_key; /* struct soft_stream *[SOFT_DEVICES_MAX] */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct soft_capture_calls *capture_calls; /* set once, at the start */

void soft_stream_set_capture_calls(const struct soft_capture_calls *calls) {
    capture_calls = calls;
}

const struct soft_capture_calls *soft_capture_calls(void) {
    return capture_calls;
}

static void end_per_thread(void *own) {
    struct soft_stream **mine = own;
    for (int i = 0; i < SOFT_DEVICES_MAX; i++)
        if (mine[i] && !soft_is_forked())
            soft_hipStreamDestroy((hipStream_t)mine[i]);
    free(mine);
}

static void prepare(void) {
    streams = soft_handles_new(sizeof(struct soft_stream), STREAMS_MAX);
    pthread_key_create(&per_thread_key, end_per_thread);
    for (int i = 0; i < SOFT_DEVICES_MAX; i++) {
        null_streams[i].device = i;
        null_streams[i].is_null = true;
    }
}

struct soft_handles *soft_streams(void) {
    pthread_once(&once, prepare);
    return streams;
}

void soft_stream_recycle(struct soft_stream *st) {
    soft_handle_recycle(streams, st);
}

struct soft_stream *soft_stream_null(int device) {
    pthread_once(&once, prepare);
    return &null_streams[device];
}

/* Operations may still depend on a stream that had this handle before. */
static struct soft_stream *new_stream(int device, unsigned flags, int priority) {
    struct soft_stream *st = soft_handle_take(soft_streams());
    if (!st)
        return NULL;
    uint64_t start = atomic_fetch_add(&next_epoch, 1) << EPOCH_BITS;
    const size_t begin = sizeof st->handle, end = offsetof(struct soft_stream, first);
    soft_schedule_lock();
    memset((char *)st + begin, 0, end - begin);
    st->device = device;
    st->flags = flags;
    st->priority = priority;
    st->submitted = st->allowed = start;
    atomic_store(&st->launches, 0);
    atomic_store(&st->first, start);
    atomic_store(&st->completed, start);
    soft_schedule_unlock();
    soft_handle_open(st);
    return st;
}

/* ---- streams by number ---------------------------------------------------------------------- */

/* A stream's number: its epoch, its place among the handles, and 1; a default stream's: twice its
 * device + 1. */
enum { NUMBER_BITS = 17 };
_Static_assert(STREAMS_MAX <= 1 << (NUMBER_BITS - 1), "room for an index");

static uint64_t epoch_of(const struct soft_stream *st) {
    return atomic_load(&st->first) >> EPOCH_BITS;
}

static struct soft_stream *find_number(uint64_t number) {
    if (!(number & 1)) {
        uint64_t device = number / 2;
        return device && device <= SOFT_DEVICES_MAX ? soft_stream_null((int)device - 1) : NULL;
    }
    struct soft_stream *st =
        soft_handle_at(soft_streams(), (number & ((1u << NUMBER_BITS) - 1)) >> 1);
    return st && epoch_of(st) == number >> NUMBER_BITS ? st : NULL;
}

uint64_t greta_soft_launches_done(uint64_t number) {
    const struct soft_stream *st = soft_is_forked() ? NULL : find_number(number);
    return st ? atomic_load_explicit(&st->launches, memory_order_acquire) : 0;
}

/* ---- handles -------------------------------------------------------------------------------- */

static hipError_t per_thread_stream(int device, struct soft_stream **out) {
    soft_streams();
    struct soft_stream **mine = pthread_getspecific(per_thread_key);
    if (!mine) {
        mine = calloc(SOFT_DEVICES_MAX, sizeof *mine);
        if (!mine || pthread_setspecific(per_thread_key, mine)) {
            free(mine);
            return hipErrorOutOfMemory;
        }
    }
    if (!mine[device] && !(mine[device] = new_stream(device, hipStreamDefault, 0)))
        return hipErrorOutOfMemory;
    mine[device]->per_thread = true;
    *out = mine[device];
    return hipSuccess;
}

hipError_t soft_stream_resolve(hipStream_t handle, struct soft_stream **out) {
    if (!handle || handle == hipStreamLegacy) {
        *out = soft_stream_null(soft_current_device());
        return hipSuccess;
    }
    if (handle == hipStreamPerThread)
        return per_thread_stream(soft_current_device(), out);
    if (!soft_handle_valid(soft_streams(), handle))
        return hipErrorContextIsDestroyed;
    *out = (struct soft_stream *)handle;
    return hipSuccess;
}

uint64_t greta_soft_stream_number(const void *stream, int device) {
    hipStream_t handle = (hipStream_t)(uintptr_t)stream;
    struct soft_stream *st = NULL;
    if (soft_start() != hipSuccess || soft_check_device(device) != hipSuccess)
        return 0;
    if (!handle || handle == hipStreamLegacy)
        return ((uint64_t)device + 1) * 2;
    hipError_t r = handle == hipStreamPerThread ? per_thread_stream(device, &st)
                                                : soft_stream_resolve(handle, &st);
    return r == hipSuccess ? epoch_of(st) << NUMBER_BITS | (uint64_t)st->handle.index << 1 | 1 : 0;
}

/* ---- submitting ----------------------------------------------------------------------------- */

static bool is_blocking(const struct soft_stream *st) {
    return !st->is_null && !(st->flags & hipStreamNonBlocking);
}

/* Under the scheduler's lock. False without memory. */
static bool add_default_stream_rules(const struct soft_stream *st, struct soft_op *op) {
    if (is_blocking(st)) {
        struct soft_stream *null = &null_streams[st->device];
        return soft_op_depend(op, null, null->submitted);
    }
    if (!st->is_null)
        return true;
    for (struct soft_stream *t = soft_schedule_next_active(NULL); t;
         t = soft_schedule_next_active(t))
        if (t->device == st->device && is_blocking(t) && !soft_op_depend(op, t, t->submitted))
            return false;
    return true;
}

hipError_t soft_submit_locked(struct soft_stream *st, struct soft_op *op) {
    if (!add_default_stream_rules(st, op))
        return hipErrorOutOfMemory;
    if (!op->tag)
        op->tag = soft_current_tag();
    soft_schedule_push(st, op);
    return hipSuccess;
}

static unsigned serialization(const struct soft_op *op) {
    const struct soft_settings *s = soft_settings();
    return op->kind == SOFT_OP_LAUNCH                             ? s->serialize_kernel
           : op->kind == SOFT_OP_COPY || op->kind == SOFT_OP_FILL ? s->serialize_copy
                                                                  : 0;
}

/* waits: the caller waits for it at once, and runs it itself if no other thread does. */
static hipError_t submit(struct soft_stream *st, struct soft_op *op, uint64_t *seq, bool waits) {
    unsigned serialize = serialization(op);
    if (serialize & SOFT_SERIALIZE_BEFORE)
        soft_schedule_drain(st->device);
    soft_schedule_lock();
    hipError_t r = soft_submit_locked(st, op);
    uint64_t place = op->seq; /* op may be gone once the lock is */
    soft_schedule_unlock();
    if (r != hipSuccess) {
        soft_op_free(op);
        return r;
    }
    soft_schedule_submitted(st, place, waits);
    if (seq)
        *seq = place;
    if (serialize & SOFT_SERIALIZE_AFTER) {
        soft_schedule_wait(st, place);
        return soft_error_observe();
    }
    return hipSuccess;
}

hipError_t soft_submit(struct soft_stream *st, struct soft_op *op, uint64_t *seq) {
    if (seq)
        *seq = 0;
    return st->capture ? capture_calls->add(st, op) : submit(st, op, seq, false);
}

hipError_t soft_submit_and_wait(struct soft_stream *st, struct soft_op *op) {
    if (st->capture) {
        soft_op_free(op);
        return capture_calls->refuse(st);
    }
    uint64_t seq;
    hipError_t r = submit(st, op, &seq, true);
    if (r != hipSuccess)
        return r;
    soft_schedule_wait(st, seq);
    return soft_error_observe();
}

/* ---- creation ------------------------------------------------------------------------------- */

hipError_t soft_hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority) {
    if (!stream || flags & ~(unsigned)hipStreamNonBlocking)
        return hipErrorInvalidValue;
    int low, high;
    soft_hipDeviceGetStreamPriorityRange(&low, &high);
    priority = priority > low ? low : priority < high ? high : priority;
    struct soft_stream *st = new_stream(soft_current_device(), flags, priority);
    if (!st)
        return hipErrorOutOfMemory;
    *stream = (hipStream_t)st;
    return hipSuccess;
}

hipError_t soft_hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
    return soft_hipStreamCreateWithPriority(stream, flags, 0);
}

hipError_t soft_hipStreamCreate(hipStream_t *stream) {
    return soft_hipStreamCreateWithPriority(stream, hipStreamDefault, 0);
}

hipError_t soft_hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t cuMaskSize,
                                             const uint32_t *cuMask) {
    if (!cuMaskSize || !cuMask)
        return hipErrorInvalidValue;
    return soft_hipStreamCreate(stream);
}

/* Work that is queued still runs: HIP lets destruction neither wait for it nor cancel it. */
hipError_t soft_hipStreamDestroy(hipStream_t stream) {
    if (!stream || stream == hipStreamLegacy)
        return hipErrorInvalidHandle;
    if (stream == hipStreamPerThread)
        return hipErrorInvalidResourceHandle;
    struct soft_stream *st;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    if (st->capture)
        capture_calls->abandon(st);
    if (!soft_handle_close(st))
        return hipErrorContextIsDestroyed;
    soft_schedule_lock();
    st->closed = true;
    bool empty = !st->head;
    soft_schedule_unlock();
    if (empty)
        soft_stream_recycle(st);
    return hipSuccess;
}

/* ---- questions and waiting ------------------------------------------------------------------ */

hipError_t soft_hipStreamGetFlags(hipStream_t stream, unsigned int *flags) {
    struct soft_stream *st;
    if (!flags || !stream) /* ROCm has no answer for the default stream */
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r == hipSuccess)
        *flags = st->flags;
    return r;
}

hipError_t soft_hipStreamGetPriority(hipStream_t stream, int *priority) {
    struct soft_stream *st;
    hipError_t r = priority ? soft_stream_resolve(stream, &st) : hipErrorInvalidValue;
    if (r == hipSuccess)
        *priority = st->priority;
    return r;
}

hipError_t soft_hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
    struct soft_stream *st;
    hipError_t r = device ? soft_stream_resolve(stream, &st) : hipErrorInvalidValue;
    if (r == hipSuccess)
        *device = st->device;
    return r;
}

hipError_t soft_hipStreamGetFlags_spt(hipStream_t stream, unsigned int *flags) {
    return soft_hipStreamGetFlags(stream ? stream : hipStreamPerThread, flags);
}

hipError_t soft_hipStreamGetPriority_spt(hipStream_t stream, int *priority) {
    return soft_hipStreamGetPriority(stream ? stream : hipStreamPerThread, priority);
}

int soft_hipGetStreamDeviceId(hipStream_t stream) {
    struct soft_stream *st;
    return soft_stream_resolve(stream, &st) == hipSuccess ? st->device : -1;
}

hipError_t soft_hipStreamGetId(hipStream_t stream, unsigned long long *streamId) {
    struct soft_stream *st;
    hipError_t r = streamId ? soft_stream_resolve(stream, &st) : hipErrorInvalidValue;
    if (r == hipSuccess)
        *streamId = st->is_null ? (unsigned)st->device : epoch_of(st) + SOFT_DEVICES_MAX;
    return r;
}

/* Every stream uses all compute units. */
hipError_t soft_hipExtStreamGetCUMask(hipStream_t stream, uint32_t cuMaskSize, uint32_t *cuMask) {
    struct soft_stream *st;
    uint32_t units = (uint32_t)soft_arch_info(soft_settings()->arch)->units;
    if (!cuMask || cuMaskSize < (units + 31) / 32)
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    for (uint32_t i = 0; r == hipSuccess && i < cuMaskSize; i++)
        cuMask[i] = units <= i * 32         ? 0
                    : units - i * 32 >= 32u ? UINT32_MAX
                                            : (UINT32_C(1) << (units - i * 32)) - 1;
    return r;
}

/* All streams may use managed memory here; only the place in the stream matters. */
hipError_t soft_hipStreamAttachMemAsync(hipStream_t stream, void *dev_ptr, size_t length,
                                        unsigned int flags) {
    struct soft_stream *st;
    struct soft_block b;
    if (!soft_memory_find((uint64_t)(uintptr_t)dev_ptr, &b) || b.kind != SOFT_MANAGED ||
        (length && length != b.size) || /* all of it, as HIP has it */
        (flags != hipMemAttachGlobal && flags != hipMemAttachHost && flags != hipMemAttachSingle))
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    struct soft_op *op = soft_op_new(SOFT_OP_BARRIER, "hipStreamAttachMemAsync");
    return op ? soft_submit(st, op, NULL) : hipErrorOutOfMemory;
}

/* The place up to which a stream must be complete to be "empty". For the legacy default stream that
 * takes in the blocking streams, which a barrier in it expresses. */
static hipError_t end_of(struct soft_stream *st, uint64_t *seq) {
    if (st->capture)
        return capture_calls->refuse(st);
    if (st->is_null) {
        struct soft_op *op = soft_op_new(SOFT_OP_BARRIER, "hipStreamSynchronize");
        return op ? soft_submit(st, op, seq) : hipErrorOutOfMemory;
    }
    soft_schedule_lock();
    *seq = st->submitted;
    soft_schedule_unlock();
    return hipSuccess;
}

hipError_t soft_hipStreamSynchronize(hipStream_t stream) {
    struct soft_stream *st;
    uint64_t seq = 0;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r == hipSuccess)
        r = end_of(st, &seq);
    if (r != hipSuccess)
        return r;
    soft_schedule_wait(st, seq);
    return soft_error_observe();
}

hipError_t soft_hipStreamSynchronize_spt(hipStream_t stream) {
    return soft_hipStreamSynchronize(stream ? stream : hipStreamPerThread);
}

/* A stream that is not done and that st has to wait for, and how far; NULL if st is done. The
 * legacy default stream is done when the blocking streams are. */
static struct soft_stream *find_pending(struct soft_stream *st, uint64_t *seq) {
    struct soft_stream *pending = NULL;
    soft_schedule_lock();
    for (struct soft_stream *t = soft_schedule_next_active(NULL); t && !pending;
         t = soft_schedule_next_active(t))
        if ((t == st || (st->is_null && t->device == st->device && is_blocking(t))) &&
            atomic_load(&t->completed) < t->submitted)
            pending = t;
    if (pending)
        *seq = pending->submitted;
    soft_schedule_unlock();
    return pending;
}

hipError_t soft_hipStreamQuery(hipStream_t stream) {
    struct soft_stream *st, *pending;
    uint64_t seq;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    if (st->capture)
        return capture_calls->refuse(st);
    do
        pending = find_pending(st, &seq);
    while (pending && soft_schedule_poll(pending, seq));
    r = soft_error_observe();
    return r != hipSuccess ? r : pending ? hipErrorNotReady : hipSuccess;
}

hipError_t soft_hipStreamQuery_spt(hipStream_t stream) {
    return soft_hipStreamQuery(stream ? stream : hipStreamPerThread);
}

hipError_t soft_hipDeviceSynchronize(void) {
    hipError_t r = capture_calls->refuse_sync();
    if (r != hipSuccess)
        return r;
    soft_schedule_drain(soft_current_device());
    return soft_error_observe();
}

/* ---- host functions ------------------------------------------------------------------------- */

static hipError_t submit_host(hipStream_t stream, const char *what,
                              const struct soft_host_call *call) {
    struct soft_stream *st;
    struct soft_op *op;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r == hipSuccess)
        r = soft_op_host(&op, what, call);
    return r == hipSuccess ? soft_submit(st, op, NULL) : r;
}

hipError_t soft_op_host(struct soft_op **out, const char *what, const struct soft_host_call *call) {
    if (!call->fn && !call->callback)
        return hipErrorInvalidValue;
    struct soft_op *op = soft_op_new(SOFT_OP_HOST, what);
    if (!op)
        return hipErrorOutOfMemory;
    op->u.host = *call;
    *out = op;
    return hipSuccess;
}

hipError_t soft_hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *userData) {
    return submit_host(stream, "hipLaunchHostFunc",
                       &(struct soft_host_call){ .fn = fn, .user = userData });
}

hipError_t soft_hipLaunchHostFunc_spt(hipStream_t stream, hipHostFn_t fn, void *userData) {
    return soft_hipLaunchHostFunc(stream ? stream : hipStreamPerThread, fn, userData);
}

hipError_t soft_hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback,
                                     void *userData, unsigned int flags) {
    if (flags)
        return hipErrorInvalidValue;
    return submit_host(
        stream, "hipStreamAddCallback",
        &(struct soft_host_call){ .callback = callback, .user = userData, .stream = stream });
}

hipError_t soft_hipStreamAddCallback_spt(hipStream_t stream, hipStreamCallback_t callback,
                                         void *userData, unsigned int flags) {
    return soft_hipStreamAddCallback(stream ? stream : hipStreamPerThread, callback, userData,
                                     flags);
}
