/* event.c - events.
 *
 * An event is a place in a stream: recording puts a marker there and remembers (stream, seq). The
 * marker notes the time when it is reached. Waiting for an event is waiting for that place as it
 * was at the time of the call; recording the event again later does not change it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/stream.h"
#include "soft/runtime/value.h"

enum { EVENTS_MAX = 1 << 20 };

static struct soft_handles *events;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t next_generation = 1; /* of all events, because handles are reused */

static void prepare(void) {
    events = soft_handles_new(sizeof(struct soft_event), EVENTS_MAX);
}

struct soft_handles *soft_events(void) {
    pthread_once(&once, prepare);
    return events;
}

static hipError_t resolve(hipEvent_t handle, struct soft_event **out) {
    if (!soft_handle_valid(soft_events(), handle))
        return hipErrorInvalidHandle;
    *out = (struct soft_event *)handle;
    return hipSuccess;
}

static struct soft_event *new_event(unsigned flags) {
    struct soft_event *ev = soft_handle_take(soft_events());
    if (!ev)
        return NULL;
    const size_t begin = sizeof ev->handle, end = offsetof(struct soft_event, generation);
    soft_schedule_lock();
    memset((char *)ev + begin, 0, end - begin);
    ev->flags = flags;
    ev->device = soft_current_device();
    soft_schedule_unlock();
    soft_handle_open(ev);
    return ev;
}

/* ---- events of several processes ------------------------------------------------------------- */

enum { PAGE = 4096, POLL_NS = 50000 };

/* Maps the counters of an interprocess event from the file, which the event owns from now on. */
static bool map_counters(struct soft_event *ev, int file) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        return false;
    /* Streams wait for it as for any value in host memory: value.c. */
    if (soft_memory_register(page, PAGE, 0) != hipSuccess) {
        munmap(page, PAGE);
        return false;
    }
    ev->shared = page;
    ev->file = file;
    return true;
}

static bool share(struct soft_event *ev) {
    int file = memfd_create("greta-event", MFD_CLOEXEC);
    if (file < 0)
        return false;
    if (!ftruncate(file, PAGE) && map_counters(ev, file))
        return true;
    close(file);
    return false;
}

struct soft_event *soft_event_import(int file) {
    struct soft_event *ev = new_event(hipEventInterprocess | hipEventDisableTiming);
    if (!ev || map_counters(ev, file))
        return ev;
    soft_handle_free(soft_events(), ev);
    return NULL;
}

static bool is_pending(const struct soft_event_shared *s) {
    return s && atomic_load(&s->completed) < atomic_load(&s->recorded);
}

/* Until the last record, by whatever process, is reached. */
static void await_others(const struct soft_event *ev) {
    const struct timespec pause = { 0, POLL_NS };
    while (is_pending(ev->shared) && !soft_error_raised(ev->device))
        nanosleep(&pause, NULL);
}

/* ---- events ---------------------------------------------------------------------------------- */

hipError_t soft_hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    const unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess |
                           hipEventReleaseToDevice | hipEventReleaseToSystem;
    const unsigned release = hipEventReleaseToDevice | hipEventReleaseToSystem;
    if (!event || flags & ~known || (flags & release) == release)
        return hipErrorInvalidValue;
    if (flags & hipEventInterprocess && !(flags & hipEventDisableTiming))
        return hipErrorInvalidValue; /* no clock is shared between processes */
    struct soft_event *ev = new_event(flags);
    if (!ev)
        return hipErrorOutOfMemory;
    if (flags & hipEventInterprocess && !share(ev)) {
        soft_handle_free(soft_events(), ev);
        return hipErrorOutOfMemory;
    }
    *event = (hipEvent_t)ev;
    return hipSuccess;
}

hipError_t soft_hipEventCreate(hipEvent_t *event) {
    return soft_hipEventCreateWithFlags(event, hipEventDefault);
}

hipError_t soft_hipEventDestroy(hipEvent_t event) {
    struct soft_event *ev;
    if (resolve(event, &ev) != hipSuccess)
        return event ? hipErrorContextIsDestroyed : hipErrorInvalidHandle; /* as ROCm has it */
    soft_capture_calls()->forget(ev);
    if (ev->shared) /* the page stays: a stream may wait for it */
        close(ev->file);
    soft_handle_free(soft_events(), ev);
    return hipSuccess;
}

void soft_event_completed(struct soft_event *ev, uint64_t generation,
                          struct soft_event_shared *shared, uint64_t number) {
    soft_schedule_lock();
    if (ev->generation == generation)
        atomic_store(&ev->time_ns, clock_now_ns());
    if (shared && atomic_load(&shared->completed) < number)
        atomic_store(&shared->completed, number);
    soft_schedule_unlock();
}

hipError_t soft_event_record_locked(struct soft_event *ev, struct soft_stream *st,
                                    struct soft_op *op) {
    uint64_t generation = atomic_fetch_add(&next_generation, 1);
    op->u.record.event = ev;
    op->u.record.generation = generation;
    op->u.record.shared = ev->shared;
    op->u.record.number = ev->shared ? atomic_fetch_add(&ev->shared->recorded, 1) + 1 : 0;
    hipError_t r = soft_submit_locked(st, op);
    if (r == hipSuccess) {
        ev->stream = st;
        ev->seq = op->seq;
        ev->generation = generation;
    }
    return r;
}

static hipError_t record(struct soft_event *ev, struct soft_stream *st) {
    struct soft_op *op = soft_op_new(SOFT_OP_RECORD, "hipEventRecord");
    if (!op)
        return hipErrorOutOfMemory;
    soft_schedule_lock();
    hipError_t r = soft_event_record_locked(ev, st, op);
    uint64_t seq = op->seq;
    soft_schedule_unlock();
    if (r != hipSuccess) {
        soft_op_free(op);
        return r;
    }
    soft_capture_calls()->forget(ev);
    soft_schedule_submitted(st, seq, false);
    return hipSuccess;
}

hipError_t soft_hipEventRecord(hipEvent_t event, hipStream_t stream) {
    struct soft_event *ev;
    struct soft_stream *st;
    hipError_t r = resolve(event, &ev);
    if (r == hipSuccess)
        r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    if (ev->device != st->device)
        return hipErrorInvalidHandle;
    return st->capture ? soft_capture_calls()->record(st, ev) : record(ev, st);
}

hipError_t soft_hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
    return flags & ~1u ? hipErrorInvalidValue : soft_hipEventRecord(event, stream);
}

hipError_t soft_hipEventRecord_spt(hipEvent_t event, hipStream_t stream) {
    return soft_hipEventRecord(event, stream ? stream : hipStreamPerThread);
}

/* The last record of ev; false if it was never recorded. */
static bool last_record(struct soft_event *ev, struct soft_stream **st, uint64_t *seq) {
    soft_schedule_lock();
    *st = ev->stream;
    *seq = ev->seq;
    soft_schedule_unlock();
    return *st != NULL;
}

hipError_t soft_event_wait(struct soft_event *ev, struct soft_stream *st) {
    struct soft_stream *on;
    uint64_t seq;
    if (is_pending(ev->shared)) {
        hipError_t r = soft_value_await(st, "hipStreamWaitEvent", &ev->shared->completed,
                                        atomic_load(&ev->shared->recorded));
        if (r != hipSuccess)
            return r;
    }
    if (!last_record(ev, &on, &seq))
        return hipSuccess; /* nothing recorded: nothing to wait for */
    struct soft_op *op = soft_op_new(SOFT_OP_BARRIER, "hipStreamWaitEvent");
    if (!op || !soft_op_depend(op, on, seq)) {
        if (op)
            soft_op_free(op);
        return hipErrorOutOfMemory;
    }
    return soft_submit(st, op, NULL);
}

hipError_t soft_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
    struct soft_event *ev;
    struct soft_stream *st;
    hipError_t r = flags & ~1u ? hipErrorInvalidValue : resolve(event, &ev);
    if (r == hipSuccess && soft_stream_resolve(stream, &st) != hipSuccess)
        r = hipErrorInvalidHandle;
    if (r != hipSuccess)
        return r;
    return st->capture || ev->capture_graph ? soft_capture_calls()->wait(st, ev)
                                            : soft_event_wait(ev, st);
}

hipError_t soft_hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned int flags) {
    return soft_hipStreamWaitEvent(stream ? stream : hipStreamPerThread, event, flags);
}

/* An event that the host asks about: one that was recorded in a capture never completes. */
static hipError_t resolve_recorded(hipEvent_t event, struct soft_event **ev) {
    hipError_t r = resolve(event, ev);
    return r == hipSuccess && (*ev)->capture_graph ? hipErrorCapturedEvent : r;
}

hipError_t soft_hipEventSynchronize(hipEvent_t event) {
    struct soft_event *ev;
    struct soft_stream *on;
    uint64_t seq;
    hipError_t r = resolve_recorded(event, &ev);
    if (r != hipSuccess)
        return r;
    if (last_record(ev, &on, &seq))
        soft_schedule_wait(on, seq);
    await_others(ev);
    return soft_error_observe();
}

hipError_t soft_hipEventQuery(hipEvent_t event) {
    struct soft_event *ev;
    struct soft_stream *on;
    uint64_t seq;
    hipError_t r = resolve_recorded(event, &ev);
    if (r != hipSuccess)
        return r;
    bool complete = !last_record(ev, &on, &seq) || soft_schedule_poll(on, seq);
    complete = complete && !is_pending(ev->shared);
    r = soft_error_observe();
    return r != hipSuccess ? r : complete ? hipSuccess : hipErrorNotReady;
}

static bool can_be_timed(struct soft_event *ev) {
    struct soft_stream *on;
    uint64_t seq;
    return !(ev->flags & hipEventDisableTiming) && last_record(ev, &on, &seq);
}

static hipError_t completion_time(struct soft_event *ev, uint64_t *time_ns) {
    struct soft_stream *on;
    uint64_t seq;
    if (!last_record(ev, &on, &seq))
        return hipErrorInvalidHandle;
    if (atomic_load(&on->completed) < seq)
        return hipErrorNotReady;
    *time_ns = atomic_load(&ev->time_ns);
    return hipSuccess;
}

hipError_t soft_hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop) {
    struct soft_event *a, *b;
    uint64_t from, to;
    if (!ms)
        return hipErrorInvalidValue;
    hipError_t r = resolve(start, &a);
    if (r == hipSuccess)
        r = resolve(stop, &b);
    if (r == hipSuccess && (!can_be_timed(a) || !can_be_timed(b)))
        r = hipErrorInvalidHandle; /* which is said even while the other is not complete */
    if (r == hipSuccess)
        r = completion_time(a, &from);
    if (r == hipSuccess)
        r = completion_time(b, &to);
    if (r == hipSuccess)
        *ms = (float)((double)(int64_t)(to - from) / 1e6);
    return r;
}
