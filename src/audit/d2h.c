/* The checked copies. Read copy_sync() first: check, wait for other work by events, copy, wait for
 * the copy. */
#include "audit/d2h_internal.h"

#include <errno.h>
#include <stdio.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "audit/call.h"
#include "audit/hooks.h"

/* ---- results --------------------------------------------------------------------------------- */

#define NO_OP_ID UINT64_MAX

static enum gcore_d2h_code done(struct gcore_d2h_result *result, uint64_t op_id) {
    if (result) {
        result->code = GCORE_D2H_OK;
        result->hip_error = hipSuccess;
        result->op_id = op_id;
        result->message[0] = '\0';
    }
    return GCORE_D2H_OK;
}

/* A call that never became a copy: nothing to say about pointers. */
static enum gcore_d2h_code reject(struct gcore_d2h_result *result, enum gcore_d2h_code code,
                                  const char *message) {
    if (result) {
        *result = (struct gcore_d2h_result){ .code = code, .op_id = NO_OP_ID };
        snprintf(result->message, sizeof result->message, "%.*s", (int)sizeof result->message - 1,
                 message);
    }
    struct err e;
    if (code == GCORE_D2H_BAD_ARGUMENT && (audit_is_attached() || audit_ready(&e) == RC_OK))
        audit_log("[D2H_ERROR] reason=%s: %s", gcore_d2h_code_name(code), message);
    return code;
}

static unsigned decision_of(const struct d2h_finding *f) {
    static const uint8_t decisions[GCORE_D2H_CODE_COUNT] = {
        [GCORE_D2H_OK] = DETAIL_DECISION_PASSED,
        [GCORE_D2H_NULL_POINTER] = DETAIL_DECISION_NULL_POINTER,
        [GCORE_D2H_OVERFLOW] = DETAIL_DECISION_WRAPS,
        [GCORE_D2H_UNKNOWN_POINTER] = DETAIL_DECISION_UNKNOWN_POINTER,
        [GCORE_D2H_FREED] = DETAIL_DECISION_FREED,
        [GCORE_D2H_KIND_MISMATCH] = DETAIL_DECISION_KIND_MISMATCH,
        [GCORE_D2H_WRONG_SIDE] = DETAIL_DECISION_WRONG_SIDE,
        [GCORE_D2H_WRONG_DEVICE] = DETAIL_DECISION_WRONG_DEVICE,
        [GCORE_D2H_OUT_OF_ALLOCATION] = DETAIL_DECISION_PAST_ALLOCATION,
        [GCORE_D2H_OUT_OF_TENSOR] = DETAIL_DECISION_PAST_TENSOR,
        [GCORE_D2H_HOST_TOO_SMALL] = DETAIL_DECISION_HOST_TOO_SMALL,
        [GCORE_D2H_DEVICE_ERROR] = DETAIL_DECISION_DEVICE_FAILED,
    };
    if (f && f->claimed)
        return DETAIL_DECISION_FALSE_CLAIM;
    unsigned decision = f ? decisions[f->code] : DETAIL_DECISION_PASSED;
    return f && decision == DETAIL_DECISION_PASSED ? DETAIL_DECISION_OTHER : decision;
}

/* What was asked for and what was decided; f is NULL if the copy passed. */
static void record_decision(const struct d2h_request *q, uint64_t op_id,
                            const struct d2h_finding *f) {
    if (!call_is_recorded())
        return;
    struct call c = CALL_INIT((enum hip_fn)EVENT_NO_FN, q->caller);
    union event_slot slot[2];
    struct event ev = call_event(&c, f ? EVENT_REFUSED : EVENT_SAFE_COPY, decision_of(f), q->order);
    ev.dst = (uint64_t)(uintptr_t)(f ? q->to : q->dst);
    ev.src = (uint64_t)(uintptr_t)(f ? q->from : q->src);
    ev.len = q->meta.size;
    ev.name = q->tensor;
    ev.status = hipSuccess;
    slot[0].event = ev;
    struct event_safe safe = {
        .op_id = op_id,
        .step = q->meta.step,
        .layer = q->meta.layer,
        .offset = q->meta.offset,
        .alloc = q->meta.alloc,
    };
    event_extra_safe(&slot[1], &safe);
    record_events(audit.writer, slot, 2);
}

/* Log line, message, code. For refusals and for failures of the runtime. */
static enum gcore_d2h_code fail(const struct d2h_request *q, const struct d2h_finding *f,
                                uint64_t op_id, struct gcore_d2h_result *result) {
    struct gcore_d2h_result local;
    if (!result)
        result = &local;
    result->code = f->code;
    result->hip_error = (int)f->error;
    result->op_id = op_id;
    d2h_explain(q, f, result->message, sizeof result->message);
    d2h_log_refusal(q, f, result->message);
    return f->code;
}

static enum gcore_d2h_code refuse(const struct d2h_request *q, const struct d2h_finding *f,
                                  struct gcore_d2h_result *result) {
    record_decision(q, NO_OP_ID, f);
    return fail(q, f, NO_OP_ID, result);
}

/* The runtime returned an error: it is passed on, and the copy is not tried again. */
static enum gcore_d2h_code fail_runtime(const struct d2h_request *q, hipError_t error,
                                        uint64_t op_id, struct gcore_d2h_result *result) {
    struct d2h_finding f = { .code = GCORE_D2H_DEVICE_ERROR, .error = error };
    return fail(q, &f, op_id, result);
}

/* ---- running a copy -------------------------------------------------------------------------- */

static uint64_t new_op_id(void) {
    if (!audit.verbose && !audit.writer)
        return NO_OP_ID; /* not needed, and the counter is shared by all threads */
    return atomic_fetch_add_explicit(&audit.next_op_id, 1, memory_order_relaxed);
}

/* Puts the copy after everything that may produce the data. Where the audit does not see all work,
 * only the device as a whole can be waited for. */
static hipError_t wait_for_others(const struct d2h_request *q, struct wait_list *others) {
    if (!audit.partial)
        return wait_for_busy(q->order, others, q->caller);
    others->count = 0;
    return audit.raw.hipDeviceSynchronize();
}

static hipError_t wait_stream(const struct d2h_request *q) {
    struct call c = CALL_INIT(HIP_FN_hipStreamSynchronize, q->caller);
    struct hook_sync s = hook_sync_stream(&c, q->order, DETAIL_SCOPE_STREAM);
    hipError_t r = audit.raw.hipStreamSynchronize(q->stream);
    hook_synced(&c, r, &s);
    if (r != hipSuccess)
        audit_note_error(c.fn, c.caller, c.seq, r);
    return r;
}

static hipError_t call_copy(const struct d2h_request *q, bool async) {
    struct call c = CALL_INIT(async ? HIP_FN_hipMemcpyAsync : HIP_FN_hipMemcpy, q->caller);
    if (call_is_recorded())
        hook_record_copy(&c, q->dst, q->src, q->meta.size, q->kind, q->order,
                         async ? HOOK_ASYNC : HOOK_SYNC, q->tensor);
    hipError_t r = async
                       ? audit.raw.hipMemcpyAsync(q->dst, q->src, q->meta.size, q->kind, q->stream)
                       : audit.raw.hipMemcpy(q->dst, q->src, q->meta.size, q->kind);
    call_end(&c, (unsigned)r);
    if (r != hipSuccess)
        audit_note_error(c.fn, c.caller, c.seq, r);
    return r;
}

/* On return the copy is complete or has failed. hipMemcpy waits for copies to and from the host;
 * only between devices it may return early. */
static hipError_t run_sync(const struct d2h_request *q) {
    bool plain = q->order->kind == ORDER_DEFAULT;
    hipError_t r = call_copy(q, !plain);
    if (r == hipSuccess && (!plain || q->kind == hipMemcpyDeviceToDevice))
        r = wait_stream(q);
    return r;
}

/* Checks the words of a call and fills in the request. False: *code says why. */
static bool prepare(struct d2h_request *q, void *to, const void *from, int kind,
                    const struct gcore_d2h_meta *meta, hipStream_t stream, const void *caller,
                    struct gcore_d2h_result *result, enum gcore_d2h_code *code) {
    if (!meta) {
        *code = reject(result, GCORE_D2H_BAD_ARGUMENT,
                       "expected a struct gcore_d2h_meta; found a null pointer; describe the copy");
        return false;
    }
    if (!audit_is_attached()) {
        struct err e = { 0 };
        if (audit_ready(&e) != RC_OK) {
            *code = reject(result, GCORE_D2H_NO_RUNTIME, e.msg);
            return false;
        }
    }
    q->to = to;
    q->from = from;
    q->kind = (hipMemcpyKind)kind;
    q->meta = *meta;
    q->stream = stream;
    q->caller = caller;
    q->tensor = audit.writer ? record_string(audit.writer, meta->tensor) : 0;
    q->order = NULL;
    q->base = q->device = q->other = 0;
    q->dst = to;
    q->src = from;
    return true;
}

/* An empty copy succeeds whatever its pointers are, and touches nothing. */
static enum gcore_d2h_code copy_nothing(struct d2h_request *q, struct gcore_d2h_result *result) {
    struct d2h_finding f;
    uint64_t op_id = new_op_id();
    if (q->kind != hipMemcpyDefault)
        (void)d2h_assign_sides(q, &f);
    d2h_log_start(NULL, q, op_id);
    d2h_log_end(NULL, q, op_id, hipSuccess);
    return done(result, op_id);
}

static enum gcore_d2h_code copy_sync(struct d2h_request *q, struct gcore_d2h_result *result) {
    struct d2h_finding f;
    struct wait_list others;
    if (audit.verbose)
        d2h_log_engaged(q);
    if (q->meta.size == 0)
        return copy_nothing(q, result);
    if (d2h_check(q, &f) != GCORE_D2H_OK)
        return refuse(q, &f, result);

    uint64_t op_id = new_op_id();
    record_decision(q, op_id, NULL);
    if (audit.verbose) {
        d2h_log_start(NULL, q, op_id);
        d2h_log_trace_before(q);
    }
    hipError_t r = wait_for_others(q, &others);
    if (r == hipSuccess)
        r = run_sync(q);
    if (r == hipSuccess)
        wait_done(&others);
    if (audit.verbose)
        d2h_log_end(NULL, q, op_id, r);
    return r == hipSuccess ? done(result, op_id) : fail_runtime(q, r, op_id, result);
}

enum gcore_d2h_code gcore_copy(void *to, const void *from, int kind,
                               const struct gcore_d2h_meta *meta, struct ihipStream_t *stream,
                               struct gcore_d2h_result *result) {
    struct d2h_request q;
    enum gcore_d2h_code code;
    int saved = errno;
    if (prepare(&q, to, from, kind, meta, stream, __builtin_return_address(0), result, &code))
        code = copy_sync(&q, result);
    errno = saved;
    return code;
}

#define GCORE_COPY(name, to_name, from_name, kind)                                                 \
    enum gcore_d2h_code name(void *to_name, const void *from_name,                                 \
                             const struct gcore_d2h_meta *meta, struct ihipStream_t *stream,       \
                             struct gcore_d2h_result *result) {                                    \
        struct d2h_request q;                                                                      \
        enum gcore_d2h_code code;                                                                  \
        int saved = errno;                                                                         \
        if (prepare(&q, to_name, from_name, kind, meta, stream, __builtin_return_address(0),       \
                    result, &code))                                                                \
            code = copy_sync(&q, result);                                                          \
        errno = saved;                                                                             \
        return code;                                                                               \
    }
GCORE_COPY(gcore_d2h_copy, host, device_base, hipMemcpyDeviceToHost)
GCORE_COPY(gcore_h2d_copy, device_base, host, hipMemcpyHostToDevice)
GCORE_COPY(gcore_d2d_copy, device_to, device_base, hipMemcpyDeviceToDevice)

/* ---- asynchronous ---------------------------------------------------------------------------- */

static enum gcore_d2h_code copy_async(struct d2h_request *q, struct gcore_d2h_op *op,
                                      struct gcore_d2h_result *result) {
    struct d2h_finding f;
    struct wait_list others;
    struct d2h_pending *p = NULL;
    if (audit.verbose)
        d2h_log_engaged(q);
    if (q->meta.size == 0)
        return copy_nothing(q, result);
    if (d2h_check(q, &f) != GCORE_D2H_OK)
        return refuse(q, &f, result);

    hipError_t r = hipSuccess;
    uint64_t op_id = new_op_id();
    /* If the caller does not want to wait and nothing is logged, there is nothing to remember. */
    if (op || audit.verbose) {
        p = d2h_pending_new(q, op_id, op != NULL, &r);
        if (!p)
            return fail_runtime(q, r, NO_OP_ID, result);
    }
    record_decision(q, op_id, NULL);
    if (audit.verbose) {
        d2h_log_start(NULL, q, op_id);
        d2h_log_trace_before(q);
    }
    r = wait_for_others(q, &others);
    if (r == hipSuccess)
        r = call_copy(q, true);
    if (r == hipSuccess)
        order_submitted(q->order);
    if (r == hipSuccess && p)
        r = d2h_pending_queued(p);
    if (r != hipSuccess) {
        if (p) {
            d2h_pending_finish(p, r);
            d2h_pending_drop(p);
        }
        return fail_runtime(q, r, op_id, result);
    }
    if (op) {
        op->op_id = op_id;
        op->pending = p;
    } else if (p) {
        d2h_pending_drop(p);
    }
    return done(result, op_id);
}

#define GCORE_COPY_ASYNC(name, to_name, from_name, kind)                                           \
    enum gcore_d2h_code name(void *to_name, const void *from_name,                                 \
                             const struct gcore_d2h_meta *meta, struct ihipStream_t *stream,       \
                             struct gcore_d2h_op *op, struct gcore_d2h_result *result) {           \
        struct d2h_request q;                                                                      \
        enum gcore_d2h_code code;                                                                  \
        int saved = errno;                                                                         \
        if (op)                                                                                    \
            *op = (struct gcore_d2h_op){ .op_id = NO_OP_ID };                                      \
        if (prepare(&q, to_name, from_name, kind, meta, stream, __builtin_return_address(0),       \
                    result, &code))                                                                \
            code = copy_async(&q, op, result);                                                     \
        errno = saved;                                                                             \
        return code;                                                                               \
    }
GCORE_COPY_ASYNC(gcore_d2h_copy_async, host, device_base, hipMemcpyDeviceToHost)
GCORE_COPY_ASYNC(gcore_h2d_copy_async, device_base, host, hipMemcpyHostToDevice)
GCORE_COPY_ASYNC(gcore_d2d_copy_async, device_to, device_base, hipMemcpyDeviceToDevice)

enum gcore_d2h_code gcore_d2h_wait(struct gcore_d2h_op *op, struct gcore_d2h_result *result) {
    if (!op)
        return reject(result, GCORE_D2H_BAD_ARGUMENT,
                      "expected a struct gcore_d2h_op; found a null pointer");
    int saved = errno;
    enum gcore_d2h_code code;
    struct d2h_pending *p = op->pending;
    if (!p) {
        code = done(result, op->op_id);
    } else {
        hipError_t r = d2h_pending_wait(p);
        code = r == hipSuccess ? done(result, op->op_id)
                               : fail_runtime(d2h_pending_request(p), r, op->op_id, result);
        op->pending = NULL;
        d2h_pending_drop(p);
    }
    errno = saved;
    return code;
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool item_request(struct d2h_request *q, struct gcore_d2h_item *item, hipStream_t stream,
                         const void *caller) {
    enum gcore_d2h_code code;
    return prepare(q, item->to, item->from, item->kind, &item->meta, stream, caller, &item->result,
                   &code);
}

/* A batch is worked on in groups: the lines of a group's beginnings, and those of its ends, are
 * written together. */
enum { GROUP = 16 };

struct group {
    struct gcore_d2h_item *items;
    size_t count;
    hipStream_t stream;
    const void *caller;
    struct d2h_request q[GROUP];
    bool checked[GROUP]; /* to be copied; its START is written */
    struct d2h_lines lines;
};

struct batch {
    struct wait_list others;
    bool ordered;
    hipError_t
        error; /* the runtime's word, kept, so that a device that failed is not asked again */
};

/* True if the item is to be copied: its result then has the op_id. */
static bool check_item(struct group *g, size_t i) {
    struct gcore_d2h_item *item = &g->items[i];
    struct d2h_request *q = &g->q[i];
    struct d2h_finding f;
    if (!item_request(q, item, g->stream, g->caller))
        return false;
    if (audit.verbose)
        d2h_log_engaged(q);
    if (item->meta.size == 0) {
        (void)copy_nothing(q, &item->result);
        return false;
    }
    if (d2h_check(q, &f) != GCORE_D2H_OK) {
        d2h_lines_write(&g->lines);
        (void)refuse(q, &f, &item->result);
        return false;
    }
    item->kind = (int)q->kind; /* hipMemcpyDefault is decided now, not again at the end */
    (void)done(&item->result, new_op_id());
    if (audit.verbose) {
        d2h_log_start(&g->lines, q, item->result.op_id);
        d2h_log_trace_before(q);
    }
    return true;
}

/* Queues a checked item; its result stays OK if that works. */
static void queue_item(struct group *g, size_t i, struct batch *b) {
    struct gcore_d2h_item *item = &g->items[i];
    struct d2h_request *q = &g->q[i];
    uint64_t op_id = item->result.op_id;
    record_decision(q, op_id, NULL);
    hipError_t r = b->error;
    if (r == hipSuccess && !b->ordered) {
        r = wait_for_others(q, &b->others);
        b->ordered = r == hipSuccess;
    }
    if (r == hipSuccess)
        r = call_copy(q, true);
    if (r == hipSuccess) {
        order_submitted(q->order);
        return;
    }
    if (hip_error_is_sticky(r))
        b->error = r;
    if (audit.verbose)
        d2h_log_end(NULL, q, op_id, r);
    (void)fail_runtime(q, r, op_id, &item->result);
}

static void queue_group(struct group *g, struct batch *b) {
    g->lines.used = 0;
    for (size_t i = 0; i < g->count; i++)
        g->checked[i] = check_item(g, i);
    d2h_lines_write(&g->lines);
    for (size_t i = 0; i < g->count; i++)
        if (g->checked[i])
            queue_item(g, i, b);
}

/* Tells every queued item how the synchronisation ended. */
static void end_item(struct gcore_d2h_item *item, hipStream_t stream, const void *caller,
                     hipError_t r, struct d2h_lines *lines) {
    struct d2h_request q;
    struct d2h_finding f;
    if (item->result.code != GCORE_D2H_OK || item->meta.size == 0 ||
        !item_request(&q, item, stream, caller))
        return;
    (void)d2h_assign_sides(&q, &f);
    if (audit.verbose)
        d2h_log_end(lines, &q, item->result.op_id, r);
    if (r == hipSuccess)
        return;
    d2h_lines_write(lines);
    (void)fail_runtime(&q, r, item->result.op_id, &item->result);
}

/* Waits for what was queued. */
static void wait_batch(struct batch *b, hipStream_t stream, const void *caller) {
    struct d2h_request q = { .stream = stream, .caller = caller };
    if (!b->ordered)
        return;
    q.order = order_stream(stream);
    if (b->error == hipSuccess)
        b->error = wait_stream(&q);
    if (b->error == hipSuccess)
        wait_done(&b->others);
}

static enum gcore_d2h_code batch(struct gcore_d2h_item *items, size_t count, hipStream_t stream,
                                 struct gcore_d2h_result *result, const void *caller) {
    struct batch b = { .others.count = 0, .error = hipSuccess };
    struct group g;
    const struct gcore_d2h_item *first_bad = NULL;
    g.stream = stream;
    g.caller = caller;
    for (size_t at = 0; at < count; at += g.count) {
        g.items = items + at;
        g.count = count - at < GROUP ? count - at : GROUP;
        queue_group(&g, &b);
    }
    wait_batch(&b, stream, caller);
    g.lines.used = 0;
    for (size_t i = 0; i < count; i++) {
        end_item(&items[i], stream, caller, b.error, &g.lines);
        if (!first_bad && items[i].result.code != GCORE_D2H_OK)
            first_bad = &items[i];
    }
    d2h_lines_write(&g.lines);
    if (!first_bad)
        return done(result, NO_OP_ID);
    if (result)
        *result = first_bad->result;
    return first_bad->result.code;
}

enum gcore_d2h_code gcore_d2h_batch(struct gcore_d2h_item *items, size_t count,
                                    struct ihipStream_t *stream, struct gcore_d2h_result *result) {
    if (!items && count)
        return reject(result, GCORE_D2H_BAD_ARGUMENT,
                      "expected an array of items; found a null pointer");
    int saved = errno;
    enum gcore_d2h_code code = batch(items, count, stream, result, __builtin_return_address(0));
    errno = saved;
    return code;
}
