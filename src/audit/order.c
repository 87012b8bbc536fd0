#include "audit/order.h"

#include <pthread.h>
#include <stdlib.h>

#include "audit/audit.h"
#include "base/tick.h"

enum { ORDER_DEVICES = 64 };

static struct {
    struct handles streams, events;
    _Atomic(struct order_stream *) all;
    _Atomic(struct order_stream *) defaults[ORDER_DEVICES]; /* by device */
    _Atomic uint32_t captures;                              /* streams that take part in one */
    _Atomic uint32_t next_capture;
} order;

/* ---- finding streams ------------------------------------------------------------------------- */

static struct order_stream *stream_new(hipStream_t handle, enum order_kind kind, int device,
                                       unsigned flags) {
    struct order_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->node.key = (uint64_t)(uintptr_t)handle;
    s->handle = handle;
    s->kind = kind;
    s->device = device;
    s->flags = flags;
    atomic_init(&s->live, true);
    return s;
}

static void stream_link(struct order_stream *s) {
    s->next = atomic_load_explicit(&order.all, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&order.all, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

struct order_stream *order_default(int device) {
    if (device < 0 || device >= ORDER_DEVICES)
        device = 0;
    struct order_stream *s = atomic_load_explicit(&order.defaults[device], memory_order_acquire);
    if (s)
        return s;
    struct order_stream *fresh = stream_new(NULL, ORDER_DEFAULT, device, 0);
    if (!fresh)
        return NULL;
    if (!atomic_compare_exchange_strong(&order.defaults[device], &s, fresh)) {
        free(fresh); /* another thread was faster */
        return s;
    }
    stream_link(fresh);
    return fresh;
}

/* A thread's end leaves its streams to the next thread that finds them idle. */
static pthread_key_t order_key;
static pthread_once_t order_key_once = PTHREAD_ONCE_INIT;

static void thread_ended(void *attachment) {
    struct audit_thread *me = &audit_thread;
    if ((uint32_t)(uintptr_t)attachment != atomic_load(&audit_attachment) ||
        me->attachment != atomic_load(&audit_attachment))
        return;
    for (struct order_stream *s = me->own_streams; s; s = s->next_own)
        atomic_store(&s->orphan, true);
    me->own_streams = NULL;
}

static void make_key(void) {
    pthread_key_create(&order_key, thread_ended);
}

static struct order_stream *adopt_orphan(int device) {
    for (struct order_stream *s = atomic_load(&order.all); s; s = s->next) {
        bool yes = true;
        if (s->kind == ORDER_PER_THREAD && s->device == device && atomic_load(&s->orphan) &&
            !order_is_busy(s) && atomic_compare_exchange_strong(&s->orphan, &yes, false)) {
            atomic_store(&s->record_id, 0);
            return s;
        }
    }
    return NULL;
}

static struct order_stream *stream_per_thread(int device) {
    struct audit_thread *me = audit_me();
    for (struct order_stream *s = me->own_streams; s; s = s->next_own)
        if (s->device == device)
            return s;
    struct order_stream *s = adopt_orphan(device);
    if (!s) {
        s = stream_new(hipStreamPerThread, ORDER_PER_THREAD, device, 0);
        if (!s)
            return NULL;
        stream_link(s);
    }
    s->next_own = me->own_streams;
    me->own_streams = s;
    pthread_once(&order_key_once, make_key);
    pthread_setspecific(order_key, (void *)(uintptr_t)me->attachment);
    return s;
}

static struct order_stream *stream_enter(hipStream_t handle, int device, unsigned flags) {
    struct order_stream *s = stream_new(handle, ORDER_CREATED, device, flags);
    if (!s)
        return NULL;
    handles_insert(&order.streams, &s->node);
    stream_link(s);
    return s;
}

/* A stream from before the attachment, or made without the table. A handle that the runtime does
 * not know and that stood for a destroyed stream still means that one: the call will fail, and the
 * recording shows which stream it was given. */
static struct order_stream *stream_ask(hipStream_t handle, struct order_stream *destroyed) {
    unsigned flags = 0;
    hipDevice_t device = audit_current_device();
    if (audit.raw.hipStreamGetFlags(handle, &flags) != hipSuccess) {
        if (destroyed)
            return destroyed;
        flags = hipStreamNonBlocking; /* the assumption that waits most */
    }
    hipDevice_t known = 0;
    if (audit.hip_major >= 6 && audit.raw.hipStreamGetDevice(handle, &known) == hipSuccess)
        device = known;
    return stream_enter(handle, device, flags);
}

struct order_stream *order_stream(hipStream_t handle) {
    if (!handle || handle == hipStreamLegacy)
        return order_default(audit_current_device());
    if (handle == hipStreamPerThread)
        return stream_per_thread(audit_current_device());
    struct order_stream *s = handles_find(&order.streams, (uint64_t)(uintptr_t)handle);
    if (s && atomic_load_explicit(&s->live, memory_order_acquire))
        return s;
    return stream_ask(handle, s);
}

struct order_stream *order_stream_spt(hipStream_t handle) {
    return order_stream(handle ? handle : hipStreamPerThread);
}

/* ---- creation and destruction ---------------------------------------------------------------- */

struct order_stream *order_created(hipStream_t handle, unsigned flags) {
    struct order_stream *s = handles_find(&order.streams, (uint64_t)(uintptr_t)handle);
    bool dead = false;
    /* The handle of a destroyed stream may be used again, and its node is reused, too, unless its
     * work may still run: then its event must continue to stand for that work. */
    if (s && !order_is_busy(s) && atomic_compare_exchange_strong(&s->live, &dead, true)) {
        s->device = audit_current_device();
        s->flags = flags;
        atomic_store(&s->record_id, 0);
        atomic_store(&s->capture, 0);
        spin_lock(&s->lock);
        s->event_at = UINT64_MAX; /* whatever it stood for, it was another stream */
        spin_unlock(&s->lock);
        return s;
    }
    return stream_enter(handle, audit_current_device(), flags);
}

bool order_is_destroyed(hipStream_t handle) {
    if (!handle || handle == hipStreamLegacy || handle == hipStreamPerThread)
        return false;
    struct order_stream *s = handles_find(&order.streams, (uint64_t)(uintptr_t)handle);
    return s && !atomic_load_explicit(&s->live, memory_order_acquire);
}

void order_destroyed(struct order_stream *s) {
    if (!s)
        return;
    if (atomic_exchange(&s->capture, 0) != 0)
        atomic_fetch_sub(&order.captures, 1);
    if (s->kind == ORDER_CREATED)
        atomic_store_explicit(&s->live, false, memory_order_release);
}

/* record_id is read before soft_number: if the node has been reused for another stream in between,
 * soft_number has changed, and nothing is recorded. */
void order_note_ran(struct order_stream *s) {
    if (!s || !audit.writer || !audit.soft.launches_done)
        return;
    uint32_t id = atomic_load_explicit(&s->record_id, memory_order_acquire);
    uint64_t number = atomic_load(&s->soft_number), told = atomic_load(&s->ran);
    uint64_t done = id && number ? audit.soft.launches_done(number) : 0;
    if (done <= told || atomic_load(&s->soft_number) != number ||
        !atomic_compare_exchange_strong(&s->ran, &told, done))
        return;
    struct event ev = {
        .kind = EVENT_RAN,
        .dst = done,
        .stream = id,
        .aux = event_aux(EVENT_NO_FN, 0),
    };
    record_event(audit.writer, &ev);
}

static _Atomic uint64_t last_queued; /* ns of the monotonic clock */

void order_note_queued(void) {
    atomic_store_explicit(&last_queued, tick_now_ns(), memory_order_relaxed);
}

uint64_t order_last_queued(void) {
    return atomic_load_explicit(&last_queued, memory_order_relaxed);
}

_Atomic uint64_t order_waits;

static bool none_waited_since(uint64_t waits) {
    return atomic_load_explicit(&order_waits, memory_order_relaxed) == waits;
}

bool order_is_unwaited(const struct order_stream *s) {
    return s && !order_is_capturing(s) && order_is_busy(s) &&
           none_waited_since(atomic_load_explicit(&s->waits, memory_order_relaxed));
}

void order_prove(struct order_stream *s, uint64_t mark) {
    if (!s)
        return;
    order_note_wait();
    uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed);
    while (done < mark && !atomic_compare_exchange_weak_explicit(
                              &s->done, &done, mark, memory_order_release, memory_order_relaxed))
        ;
    if (audit.host && audit.host->waited)
        audit.host->waited();
    order_note_ran(s);
}

void order_device_reset(int device) {
    for (struct order_stream *s = atomic_load(&order.all); s; s = s->next) {
        if (s->device != device)
            continue;
        order_prove(s, order_mark(s));
        order_destroyed(s);
        spin_lock(&s->lock);
        s->event = NULL; /* destroyed with the device */
        spin_unlock(&s->lock);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

struct order_event *order_event(hipEvent_t handle) {
    uint64_t key = (uint64_t)(uintptr_t)handle;
    struct order_event *ev = handles_find(&order.events, key);
    if (ev)
        return ev;
    ev = calloc(1, sizeof *ev);
    if (!ev)
        return NULL;
    ev->node.key = key;
    ev->seq = RECORD_NONE;
    handles_insert(&order.events, &ev->node);
    /* Two threads that meet a new handle together may both insert; all use the newest. */
    return handles_find(&order.events, key);
}

struct order_event order_event_read(struct order_event *ev) {
    struct order_event copy = { .seq = RECORD_NONE };
    if (!ev)
        return copy;
    spin_lock(&ev->lock);
    copy.stream = ev->stream;
    copy.mark = ev->mark;
    copy.seq = ev->seq;
    copy.capture = ev->capture;
    copy.unwaited = ev->unwaited;
    copy.waits = ev->waits;
    spin_unlock(&ev->lock);
    return copy;
}

void order_event_recorded(struct order_event *ev, struct order_stream *s, uint64_t mark,
                          uint64_t seq) {
    if (!ev || !s)
        return;
    spin_lock(&ev->lock);
    ev->stream = s;
    ev->mark = mark;
    ev->seq = seq;
    ev->capture = atomic_load(&s->capture);
    ev->unwaited = order_is_unwaited(s);
    ev->waits = atomic_load_explicit(&order_waits, memory_order_relaxed);
    spin_unlock(&ev->lock);
}

bool order_event_is_unwaited(struct order_event *ev) {
    struct order_event known = order_event_read(ev);
    return known.stream && !known.capture && known.unwaited && none_waited_since(known.waits);
}

void order_event_done(struct order_event *ev) {
    struct order_event known = order_event_read(ev);
    if (known.stream && !known.capture)
        order_prove(known.stream, known.mark);
}

/* ---- captures -------------------------------------------------------------------------------- */

bool order_any_capture(void) {
    return atomic_load_explicit(&order.captures, memory_order_acquire) != 0;
}

void order_capture_begin(struct order_stream *s, uint64_t seq) {
    if (!s)
        return;
    s->capture_seq = seq;
    uint32_t number = 1 + atomic_fetch_add(&order.next_capture, 1);
    if (atomic_exchange(&s->capture, number) == 0)
        atomic_fetch_add(&order.captures, 1);
}

void order_capture_join(struct order_stream *s, struct order_event *ev) {
    uint32_t number = order_event_read(ev).capture;
    uint32_t none = 0;
    if (s && number && atomic_compare_exchange_strong(&s->capture, &none, number))
        atomic_fetch_add(&order.captures, 1);
}

void order_capture_end(struct order_stream *origin) {
    uint32_t number = origin ? atomic_load(&origin->capture) : 0;
    if (number == 0)
        return;
    for (struct order_stream *s = atomic_load(&order.all); s; s = s->next) {
        uint32_t mine = number;
        if (atomic_compare_exchange_strong(&s->capture, &mine, 0))
            atomic_fetch_sub(&order.captures, 1);
    }
}

/* ---- recording and end ----------------------------------------------------------------------- */

struct order_stream *order_first(void) {
    return atomic_load_explicit(&order.all, memory_order_acquire);
}

/* The software device's number for a stream. Another thread's own stream has no handle here. */
static uint64_t soft_number_of(const struct order_stream *s) {
    if (!audit.soft.stream_number)
        return 0;
    bool mine = s->kind != ORDER_PER_THREAD;
    for (struct order_stream *own = audit_me()->own_streams; own && !mine; own = own->next_own)
        mine = own == s;
    return mine ? audit.soft.stream_number(s->handle, s->device) : 0;
}

uint32_t order_define(struct order_stream *s) {
    if (!audit.writer)
        return 0;
    static const uint32_t kind_flag[] = {
        [ORDER_DEFAULT] = RECORD_STREAM_DEFAULT,
        [ORDER_PER_THREAD] = RECORD_STREAM_PER_THREAD,
        [ORDER_CREATED] = 0,
    };
    spin_lock(&s->lock);
    uint32_t id = atomic_load(&s->record_id);
    if (!id) {
        id = record_stream(audit.writer, &(struct record_stream){
                                             .handle = (uint64_t)(uintptr_t)s->handle,
                                             .device = (uint32_t)s->device,
                                             .flags = s->flags | kind_flag[s->kind],
                                         });
        atomic_store(&s->soft_number, soft_number_of(s));
        atomic_store(&s->ran, 0);
        atomic_store_explicit(&s->record_id, id, memory_order_release);
    }
    spin_unlock(&s->lock);
    return id;
}

static void free_events(void) {
    for (int i = 0; i < HANDLES_BUCKETS; i++)
        for (struct handle_node *n = atomic_load(&order.events.bucket[i]), *next; n; n = next) {
            next = n->next;
            free(n);
        }
}

void order_reset(void) {
    for (struct order_stream *s = atomic_load(&order.all), *next; s; s = next) {
        next = s->next;
        if (s->event)
            (void)audit.raw.hipEventDestroy(s->event);
        free(s);
    }
    free_events();
    for (int i = 0; i < HANDLES_BUCKETS; i++) {
        atomic_store(&order.streams.bucket[i], NULL);
        atomic_store(&order.events.bucket[i], NULL);
    }
    for (int i = 0; i < ORDER_DEVICES; i++)
        atomic_store(&order.defaults[i], NULL);
    atomic_store(&order.all, NULL);
    atomic_store(&order.captures, 0);
}
