/* Copies that are queued and not known to be complete. */
#include "audit/d2h_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/call.h"
#include "audit/hooks.h"

enum { UNFINISHED, FINISHING, FINISHED };

struct d2h_pending {
    struct d2h_request q;
    char tensor[D2H_NAME_MAX]; /* q.meta.tensor points here */
    uint64_t op_id;
    hipEvent_t event; /* kept from use to use */
    int event_device;
    unsigned event_resets; /* value of resets when it was made */
    bool wait;             /* the event is in use */
    bool async;            /* watched copies: END comes from the stream */
    bool listed;           /* lines are due */
    atomic_uint holds;
    atomic_int state;
    _Atomic int result;
    struct d2h_pending *next, *prev; /* of the free ones, or of those whose lines are due */
    struct d2h_pending *next_of_all;
};

/* The lock is held while lines are written, so that d2h_pending_fail() and a callback agree on who
 * writes; it is never held while the runtime is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct d2h_pending *all, *free_ones, *due;
static atomic_uint due_count;
/* Counts device resets: events made before a reset no longer exist. */
static atomic_uint resets;

static struct d2h_pending *take_free(int device, bool wait) {
    pthread_mutex_lock(&lock);
    struct d2h_pending **link = &free_ones;
    while (*link && wait && (*link)->event && (*link)->event_device != device)
        link = &(*link)->next;
    struct d2h_pending *p = *link;
    if (p) {
        *link = p->next;
    } else if ((p = calloc(1, sizeof *p))) {
        p->next_of_all = all;
        all = p;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static void put_free(struct d2h_pending *p) {
    pthread_mutex_lock(&lock);
    p->next = free_ones;
    free_ones = p;
    pthread_mutex_unlock(&lock);
}

static void list_due(struct d2h_pending *p) {
    pthread_mutex_lock(&lock);
    p->listed = true;
    p->prev = NULL;
    p->next = due;
    if (due)
        due->prev = p;
    due = p;
    atomic_fetch_add(&due_count, 1);
    pthread_mutex_unlock(&lock);
}

/* With the lock. */
static void unlist_due(struct d2h_pending *p) {
    *(p->prev ? &p->prev->next : &due) = p->next;
    if (p->next)
        p->next->prev = p->prev;
    p->listed = false;
    atomic_fetch_sub(&due_count, 1);
}

struct d2h_pending *d2h_pending_new(const struct d2h_request *q, uint64_t op_id, bool wait,
                                    hipError_t *error) {
    *error = hipErrorOutOfMemory;
    struct d2h_pending *p = take_free(q->order ? q->order->device : 0, wait);
    if (!p)
        return NULL;
    p->q = *q;
    d2h_safe_name(p->tensor, q->meta.tensor);
    p->q.meta.tensor = p->tensor;
    p->op_id = op_id;
    p->wait = wait;
    p->async = true;
    p->listed = false;
    atomic_store(&p->holds, 1);
    atomic_store(&p->state, UNFINISHED);
    *error = hipSuccess;
    if (p->event_resets != atomic_load(&resets))
        p->event = NULL;
    if (wait && !p->event) {
        hipEvent_t event = NULL;
        *error = wait_make_event(q->order, &event);
        if (*error != hipSuccess) {
            put_free(p);
            return NULL;
        }
        p->event = event;
        p->event_device = q->order->device;
        p->event_resets = atomic_load(&resets);
    }
    if (audit.verbose)
        list_due(p);
    return p;
}

/* With the lock. */
static void finish_locked(struct d2h_pending *p, hipError_t result) {
    int before = UNFINISHED;
    if (!atomic_compare_exchange_strong(&p->state, &before, FINISHING))
        return;
    atomic_store(&p->result, (int)result);
    if (p->listed)
        unlist_due(p);
    d2h_log_end(NULL, &p->q, p->op_id, result);
    atomic_store(&p->state, FINISHED);
}

void d2h_pending_finish(struct d2h_pending *p, hipError_t result) {
    pthread_mutex_lock(&lock);
    finish_locked(p, result);
    pthread_mutex_unlock(&lock);
}

void d2h_pending_drop(struct d2h_pending *p) {
    if (atomic_fetch_sub(&p->holds, 1) == 1)
        put_free(p);
}

/* Called by the stream after the copy, on a thread of the runtime. */
static void on_completion(hipStream_t stream, hipError_t status, void *user) {
    (void)stream;
    struct d2h_pending *p = user;
    d2h_pending_finish(p, status);
    d2h_pending_drop(p);
}

static hipError_t mark_end(struct d2h_pending *p) {
    struct call c = CALL_INIT(HIP_FN_hipEventRecord, p->q.caller);
    uint64_t mark = hook_event_record(&c, p->event, p->q.order);
    hipError_t r = audit.raw.hipEventRecord(p->event, p->q.stream);
    hook_event_recorded(&c, r, p->event, p->q.order, mark);
    return r;
}

hipError_t d2h_pending_queued(struct d2h_pending *p) {
    if (p->wait) {
        hipError_t r = mark_end(p);
        if (r != hipSuccess) {
            d2h_pending_finish(p, r);
            return r;
        }
    }
    if (!p->listed)
        return hipSuccess;
    atomic_fetch_add(&p->holds, 1);
    if (audit.raw.hipStreamAddCallback(p->q.stream, on_completion, p, 0) != hipSuccess) {
        /* Without a report from the stream, wait: an END that comes too early would be a lie. */
        hipError_t r = audit.raw.hipStreamSynchronize(p->q.stream);
        on_completion(p->q.stream, r, p);
        return r;
    }
    return hipSuccess;
}

hipError_t d2h_pending_wait(struct d2h_pending *p) {
    if (!p->event || p->event_resets != atomic_load(&resets)) {
        d2h_pending_finish(p, hipErrorContextIsDestroyed);
        return hipErrorContextIsDestroyed;
    }
    struct call c = CALL_INIT(HIP_FN_hipEventSynchronize, p->q.caller);
    hook_event_sync(&c, p->event, DETAIL_WAIT_WAIT);
    hipError_t r = audit.raw.hipEventSynchronize(p->event);
    hook_event_synced(&c, r, p->event);
    if (r != hipSuccess)
        audit_note_error(c.fn, c.caller, c.seq, r);
    d2h_pending_finish(p, r);
    /* The end may have been logged before: neither result may hide a failure in the other. */
    int logged = atomic_load(&p->result);
    return r != hipSuccess ? r : (hipError_t)logged;
}

const struct d2h_request *d2h_pending_request(const struct d2h_pending *p) {
    return &p->q;
}

void d2h_pending_fail(hipError_t error) {
    if (atomic_load_explicit(&due_count, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&lock);
    while (due)
        finish_locked(due, error);
    pthread_mutex_unlock(&lock);
}

void d2h_pending_device_reset(void) {
    d2h_pending_fail(hipErrorContextIsDestroyed);
    atomic_fetch_add(&resets, 1);
}

void d2h_pending_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void d2h_pending_fork_done(void) {
    pthread_mutex_unlock(&lock);
}

void d2h_pending_reset(void) {
    d2h_pending_fail(hipErrorNotReady);
    pthread_mutex_lock(&lock);
    free_ones = NULL;
    for (struct d2h_pending **link = &all; *link;) {
        struct d2h_pending *p = *link;
        if (atomic_load(&p->holds) > 0) {
            p->event = NULL; /* a callback may still come, however late */
            link = &p->next_of_all;
            continue;
        }
        *link = p->next_of_all;
        if (p->event && p->event_resets == atomic_load(&resets))
            (void)audit.raw.hipEventDestroy(p->event);
        free(p);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- copies the program makes itself --------------------------------------------------------- */

/* The tensor's name as the ledger has it; out stays empty if there is none. */
static void name_at(const void *address, char out[D2H_NAME_MAX]) {
    out[0] = '\0';
    if (!ledger_has_names(audit.ledger))
        return;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_name *name = ledger_name_at(audit.ledger, (uint64_t)(uintptr_t)address);
    if (name)
        d2h_safe_name(out, name->text);
    ledger_read_end(t);
}

struct d2h_pending *d2h_watch_begin(const struct call *c, const void *dst, const void *src,
                                    size_t bytes, struct order_stream *stream, bool async) {
    if (!stream || order_is_capturing(stream))
        return NULL;
    char name[D2H_NAME_MAX];
    name_at(src, name);
    struct d2h_request q = {
        .to = (void *)(uintptr_t)dst,
        .from = src,
        .kind = hipMemcpyDeviceToHost,
        .meta = { .tensor = name, .step = -1, .layer = -1, .size = bytes },
        .stream = stream->handle,
        .caller = c->caller,
        .order = stream,
    };
    struct d2h_finding f;
    if (bytes && d2h_check(&q, &f) != GCORE_D2H_OK) {
        char message[sizeof((struct gcore_d2h_result *)0)->message];
        d2h_explain(&q, &f, message, sizeof message);
        d2h_log_refusal(&q, &f, message);
    }
    (void)d2h_assign_sides(&q, &f);
    hipError_t error;
    struct d2h_pending *p =
        d2h_pending_new(&q, atomic_fetch_add(&audit.next_op_id, 1), false, &error);
    if (p) {
        p->async = async;
        d2h_log_start(NULL, &p->q, p->op_id);
    }
    return p;
}

void d2h_watch_end(struct d2h_pending *p, hipError_t result) {
    if (p->async && result == hipSuccess)
        (void)d2h_pending_queued(p);
    else
        d2h_pending_finish(p, result);
    d2h_pending_drop(p);
}
