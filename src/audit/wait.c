#include "audit/wait.h"

#include "audit/audit.h"
#include "audit/call.h"

/* Runs with `device` current, and puts the thread's own back afterwards. */
static hipError_t enter_device(int device, int *before) {
    *before = audit_current_device();
    return *before == device ? hipSuccess : audit.raw.hipSetDevice(device);
}

static void leave_device(int device, int before) {
    if (device != before)
        (void)audit.raw.hipSetDevice(before);
}

hipError_t wait_make_event(const struct order_stream *s, hipEvent_t *out) {
    int before, device = s->device;
    hipError_t r = enter_device(device, &before);
    if (r != hipSuccess)
        return r;
    r = audit.raw.hipEventCreateWithFlags(out, hipEventDisableTiming);
    leave_device(device, before);
    return r;
}

static hipError_t record_event_on(struct order_stream *s, struct order_stream *on,
                                  const void *caller) {
    struct call c = CALL_INIT(HIP_FN_hipEventRecord, caller);
    uint64_t mark = order_mark(on); /* before: later work is not what the event stands for */
    if (call_is_recorded()) {
        struct event ev = call_event(&c, EVENT_EVENT_RECORD, 0, on);
        ev.dst = (uint64_t)(uintptr_t)s->event;
        call_begin(&c, &ev);
    }
    hipError_t r = audit.raw.hipEventRecord(s->event, on->handle);
    call_end(&c, (unsigned)r);
    if (r == hipSuccess && call_is_recorded())
        order_event_recorded(order_event(s->event), on, mark, c.seq);
    return r;
}

/* Brings s->event up to date. Under s->lock. */
static hipError_t stream_record_locked(struct order_stream *s, const void *caller) {
    uint64_t at = order_mark(s);
    if (s->event && s->event_at == at)
        return hipSuccess;
    if (!atomic_load(&s->live))
        /* A destroyed stream gets no work after wait_settle(). If that made no event, only the
         * whole device can be waited for. */
        return s->event ? hipSuccess : audit.raw.hipDeviceSynchronize();
    if (!s->event) {
        hipEvent_t event = NULL;
        hipError_t made = wait_make_event(s, &event);
        if (made != hipSuccess)
            return made;
        s->event = event;
    }
    int before;
    hipError_t r = enter_device(s->device, &before);
    if (r != hipSuccess)
        return r;
    /* Another thread's default stream has no handle in this thread. But the legacy default stream
     * has one, and comes after all its work. */
    bool foreign =
        s->kind == ORDER_PER_THREAD && (s->device != before || order_stream(s->handle) != s);
    r = record_event_on(s, foreign ? order_default(s->device) : s, caller);
    if (r == hipSuccess)
        s->event_at = at;
    leave_device(s->device, before);
    return r;
}

static hipError_t wait_for_stream(struct order_stream *s, struct order_stream *waiter,
                                  const void *caller) {
    spin_lock(&s->lock);
    hipError_t r = stream_record_locked(s, caller);
    hipEvent_t event = s->event;
    spin_unlock(&s->lock);
    if (r != hipSuccess || !event)
        return r;
    struct call c = CALL_INIT(HIP_FN_hipStreamWaitEvent, caller);
    if (call_is_recorded()) {
        struct event ev = call_event(&c, EVENT_EVENT_WAIT, 0, waiter);
        ev.dst = (uint64_t)(uintptr_t)event;
        ev.src = order_event_read(order_event(event)).seq;
        call_begin(&c, &ev);
    }
    r = audit.raw.hipStreamWaitEvent(waiter->handle, event, 0);
    call_end(&c, (unsigned)r);
    return r;
}

static bool stream_is_blocking(const struct order_stream *s) {
    return s->kind != ORDER_DEFAULT && !(s->flags & hipStreamNonBlocking);
}

/* True if HIP itself puts new work of `waiter` after the work of s. */
static bool is_implicit(const struct order_stream *s, const struct order_stream *waiter) {
    if (s == waiter)
        return true;
    if (s->device != waiter->device || !atomic_load(&s->live))
        return false;
    return (waiter->kind == ORDER_DEFAULT && stream_is_blocking(s)) ||
           (s->kind == ORDER_DEFAULT && stream_is_blocking(waiter));
}

static void list_add(struct wait_list *b, struct order_stream *s, uint64_t mark) {
    if (b->count < WAIT_LIST_MAX) {
        b->item[b->count].stream = s;
        b->item[b->count++].mark = mark;
    }
}

hipError_t wait_for_busy(struct order_stream *waiter, struct wait_list *b, const void *caller) {
    b->count = 0;
    for (struct order_stream *s = order_first(); s; s = s->next) {
        if (!order_is_busy(s))
            continue;
        list_add(b, s, order_mark(s));
        if (is_implicit(s, waiter))
            continue;
        hipError_t r = wait_for_stream(s, waiter, caller);
        if (r != hipSuccess)
            return r;
    }
    return hipSuccess;
}

void wait_done(const struct wait_list *b) {
    for (unsigned i = 0; i < b->count; i++)
        order_prove(b->item[i].stream, b->item[i].mark);
}

void wait_mark_device(int device, struct wait_list *b) {
    b->count = 0;
    for (struct order_stream *s = order_first(); s; s = s->next)
        if (s->device == device && order_is_busy(s))
            list_add(b, s, order_mark(s));
}

void wait_settle(struct order_stream *s) {
    if (!s || !order_is_busy(s) || order_is_capturing(s))
        return;
    spin_lock(&s->lock);
    (void)stream_record_locked(s, NULL); /* a failing device has no work left to wait for */
    spin_unlock(&s->lock);
}
