/* Hooks of streams, events and synchronisation. */
#include "audit/hooks.h"

#include "audit/dropped.h"

static uint64_t bits(const void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

void hook_stream_created(struct call *c, hipError_t r, const hipStream_t *stream, unsigned flags,
                         int priority) {
    hipStream_t handle = stream && r == hipSuccess ? *stream : NULL;
    struct order_stream *s = handle ? order_created(handle, flags) : NULL;
    if (!call_is_recorded())
        return;
    struct event ev = call_event(c, EVENT_STREAM_CREATE, 0, s);
    ev.dst = bits(handle);
    ev.src = flags;
    ev.len = (uint64_t)(int64_t)priority;
    ev.status = (uint16_t)r;
    call_begin(c, &ev);
}

struct order_stream *hook_stream_destroy(struct call *c, hipStream_t stream) {
    /* Destroying a default or an already destroyed stream is the runtime's to refuse. */
    bool made = stream && stream != hipStreamLegacy && stream != hipStreamPerThread &&
                !order_is_destroyed(stream);
    struct order_stream *s = made ? order_stream(stream) : NULL;
    wait_settle(s);
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_STREAM_DESTROY, 0, s);
        ev.dst = bits(stream);
        call_begin(c, &ev);
    }
    return s;
}

void hook_stream_destroyed(struct call *c, hipError_t r, struct order_stream *s) {
    if (r == hipSuccess)
        order_destroyed(s);
    call_end(c, (unsigned)r);
}

static void tell_wait(bool begins) {
    if (audit.host && audit.host->waits)
        audit.host->waits(begins);
}

/* Called before the work counts as done, while this call still counts as one that waits. */
static void tell_done(const struct call *c, hipError_t r) {
    if (r == hipSuccess && audit.host && audit.host->lingers)
        audit.host->lingers(c->caller);
}

/* A caller that queries work only this long after it was queued may expect it to be done. */
enum { SOON_NS = 250000000 };

static hipError_t withheld(const struct call *c) {
    if (tick_now_ns() - order_last_queued() >= SOON_NS)
        return hipSuccess;
    bool late = audit.host && audit.host->withholds && audit.host->withholds(c->caller);
    return late ? hipErrorNotReady : hipSuccess;
}

hipError_t hook_stream_answer(const struct call *c, hipError_t r, const struct order_stream *s) {
    return r == hipSuccess && order_is_unwaited(s) ? withheld(c) : r;
}

hipError_t hook_event_answer(const struct call *c, hipError_t r, hipEvent_t event) {
    return r == hipSuccess && order_event_is_unwaited(order_event(event)) ? withheld(c) : r;
}

struct hook_sync hook_sync_stream(struct call *c, struct order_stream *s, unsigned scope) {
    struct hook_sync sync;
    bool dropped = scope == DETAIL_SCOPE_STREAM_QUERY && dropped_answer(c->caller);
    sync.stream = dropped ? NULL : s;
    sync.mark = order_mark(s);
    sync.others.count = 0;
    scope = dropped ? DETAIL_SCOPE_STREAM_GLANCE : scope;
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_SYNC, scope, s);
        ev.dst = s ? (uint64_t)s->device : 0;
        call_begin(c, &ev);
    }
    tell_wait(true);
    return sync;
}

struct hook_sync hook_sync_device(struct call *c) {
    struct hook_sync sync;
    sync.stream = NULL;
    sync.mark = 0;
    int device = audit_current_device();
    wait_mark_device(device, &sync.others);
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_SYNC, DETAIL_SCOPE_DEVICE, NULL);
        ev.dst = (uint64_t)device;
        call_begin(c, &ev);
    }
    tell_wait(true);
    return sync;
}

void hook_synced(struct call *c, hipError_t r, const struct hook_sync *s) {
    tell_done(c, r);
    if (r == hipSuccess) {
        order_prove(s->stream, s->mark);
        wait_done(&s->others);
    }
    tell_wait(false);
    call_end(c, (unsigned)r);
}

void hook_event_created(struct call *c, hipError_t r, const hipEvent_t *event, unsigned flags) {
    if (!call_is_recorded())
        return;
    struct event ev = call_event(c, EVENT_EVENT_CREATE, 0, NULL);
    ev.dst = event && r == hipSuccess ? bits(*event) : 0;
    ev.src = flags;
    ev.status = (uint16_t)r;
    call_begin(c, &ev);
}

void hook_event_destroy(struct call *c, hipEvent_t event) {
    struct order_event *known = order_event(event);
    if (known) {
        /* The handle's next life starts unrecorded. */
        spin_lock(&known->lock);
        known->stream = NULL;
        known->seq = RECORD_NONE;
        known->capture = 0;
        spin_unlock(&known->lock);
    }
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_EVENT_DESTROY, 0, NULL);
        ev.dst = bits(event);
        call_begin(c, &ev);
    }
}

uint64_t hook_event_record(struct call *c, hipEvent_t event, struct order_stream *s) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_EVENT_RECORD, 0, s);
        ev.dst = bits(event);
        call_begin(c, &ev);
    }
    return order_mark(s);
}

void hook_event_recorded(struct call *c, hipError_t r, hipEvent_t event, struct order_stream *s,
                         uint64_t mark) {
    if (r == hipSuccess)
        order_event_recorded(order_event(event), s, mark, c->seq);
    call_end(c, (unsigned)r);
}

void hook_event_beside(const struct call *c, hipError_t r, hipEvent_t event,
                       struct order_stream *s) {
    if (!event || r != hipSuccess)
        return;
    struct call one = CALL_INIT(c->fn, c->caller);
    uint64_t mark = hook_event_record(&one, event, s);
    hook_event_recorded(&one, r, event, s, mark);
}

void hook_event_wait(struct call *c, hipEvent_t event, struct order_stream *s) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_EVENT_WAIT, 0, s);
        ev.dst = bits(event);
        ev.src = order_event_read(order_event(event)).seq;
        call_begin(c, &ev);
    }
}

void hook_event_waited(struct call *c, hipError_t r, hipEvent_t event, struct order_stream *s) {
    if (r == hipSuccess)
        order_capture_join(s, order_event(event));
    call_end(c, (unsigned)r);
}

/* A caller that ignores the answer of a query has learnt nothing from it. */
static bool is_glance(const struct call *c) {
    return c->fn == HIP_FN_hipEventQuery && dropped_answer(c->caller);
}

void hook_event_sync(struct call *c, hipEvent_t event, unsigned wait) {
    if (call_is_recorded()) {
        wait = is_glance(c) ? DETAIL_WAIT_GLANCE : wait;
        struct event ev = call_event(c, EVENT_EVENT_SYNC, wait, NULL);
        ev.dst = bits(event);
        ev.src = order_event_read(order_event(event)).seq;
        call_begin(c, &ev);
    }
    tell_wait(true);
}

void hook_event_synced(struct call *c, hipError_t r, hipEvent_t event) {
    tell_done(c, r);
    if (r == hipSuccess && !is_glance(c))
        order_event_done(order_event(event));
    tell_wait(false);
    call_end(c, (unsigned)r);
}
