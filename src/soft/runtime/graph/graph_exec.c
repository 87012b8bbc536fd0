/* graph_exec.c - executable graphs: made, launched, updated.
 *
 * A launch queues copies of all operations in one stream, in an order that respects the edges, so
 * that what follows in that stream comes after all of them. HIP leaves the order of independent
 * nodes open, so the schedule decides: as they were created (fast, eager), always the latest of
 * those that are ready (lazy), or any of them (random, anew for each launch). A program whose edges
 * are incomplete shows it when the order changes.
 *
 * Kernels only, in the order in which they were created, are queued as one operation (struct
 * soft_piece). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/graph_block.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/stream.h"

enum { EXECS_MAX = 1 << 18 };

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct graph_exec), EXECS_MAX);
}

static struct soft_handles *execs(void) {
    pthread_once(&pool_once, make_pool);
    return pool;
}

struct graph_exec *soft_exec_of(hipGraphExec_t handle) {
    return soft_handle_valid(execs(), handle) ? (struct graph_exec *)handle : NULL;
}

static struct graph_node *find_origin(const struct graph *g, const struct graph_node *original) {
    for (size_t i = 0; i < g->nodes.count; i++) {
        struct graph_node *n = g->nodes.at[i];
        if (n->origin == original)
            return n;
        struct graph_node *inside = n->child ? find_origin(n->child, original) : NULL;
        if (inside)
            return inside;
    }
    return NULL;
}

struct graph_node *soft_exec_node(const struct graph_exec *exec,
                                  const struct graph_node *original) {
    return find_origin(exec->graph, original);
}

/* ---- the order ----------------------------------------------------------------------------- */

/* Leaves that may come next. A child graph is no leaf: once what it depends on is placed, its own
 * roots may come, and it is placed itself when all of its nodes are. */
struct ordering {
    struct node_list ready, *order;
    size_t leaves;
    bool failed; /* no memory */
};

/* Numbers nodes as a reader of the program would meet them. */
static void prepare(struct graph *g, struct ordering *o, size_t *number) {
    g->left = g->nodes.count;
    for (size_t i = 0; i < g->nodes.count; i++) {
        struct graph_node *n = g->nodes.at[i];
        n->number = (*number)++;
        n->pending = n->dependencies.count;
        if (n->child)
            prepare(n->child, o, number);
        else
            o->leaves++;
    }
}

static void place(struct ordering *o, struct graph_node *n);

static void open_node(struct ordering *o, struct graph_node *n) {
    if (!n->child) {
        o->failed |= !node_list_add(&o->ready, n);
        return;
    }
    if (!n->child->nodes.count)
        place(o, n);
    for (size_t i = 0; i < n->child->nodes.count; i++)
        if (!n->child->nodes.at[i]->dependencies.count)
            open_node(o, n->child->nodes.at[i]);
}

static void place(struct ordering *o, struct graph_node *n) {
    for (size_t i = 0; i < n->dependents.count; i++)
        if (--n->dependents.at[i]->pending == 0)
            open_node(o, n->dependents.at[i]);
    if (--n->graph->left == 0 && n->graph->owner)
        place(o, n->graph->owner);
}

static struct graph_node *take_ready(struct ordering *o) {
    enum soft_policy policy = soft_settings()->policy;
    size_t best = 0;
    if (policy == SOFT_RANDOM)
        best = soft_schedule_random() % o->ready.count;
    else
        for (size_t i = 1; i < o->ready.count; i++) {
            bool later = o->ready.at[i]->number > o->ready.at[best]->number;
            if (later == (policy == SOFT_LAZY))
                best = i;
        }
    struct graph_node *n = o->ready.at[best];
    o->ready.at[best] = o->ready.at[--o->ready.count];
    return n;
}

/* Fills order with all leaves. hipErrorInvalidValue if the edges form a cycle. */
static hipError_t find_order(struct graph *g, struct node_list *order) {
    struct ordering o = { .order = order };
    size_t number = 0;
    order->count = 0;
    prepare(g, &o, &number);
    for (size_t i = 0; i < g->nodes.count; i++)
        if (!g->nodes.at[i]->dependencies.count)
            open_node(&o, g->nodes.at[i]);
    while (o.ready.count && !o.failed) {
        struct graph_node *n = take_ready(&o);
        o.failed |= !node_list_add(order, n);
        place(&o, n);
    }
    node_list_clear(&o.ready);
    if (o.failed)
        return hipErrorOutOfMemory;
    return order->count == o.leaves ? hipSuccess : hipErrorInvalidValue;
}

/* ---- making -------------------------------------------------------------------------------- */

static void destroy(struct graph_exec *x) {
    soft_piece_drop(x->piece);
    soft_graph_free(x->graph);
    node_list_clear(&x->order);
    soft_handle_free(execs(), x);
}

static hipError_t make(struct graph_exec **out, struct graph *g, unsigned long long flags) {
    struct graph_exec *x = soft_handle_alloc(execs());
    if (!x)
        return hipErrorOutOfMemory;
    x->order = (struct node_list){ 0 };
    x->flags = flags;
    x->piece = NULL;
    x->changes = 0;
    x->graph = soft_graph_copy(g);
    if (!x->graph) {
        soft_handle_free(execs(), x);
        return hipErrorOutOfMemory;
    }
    hipError_t r = find_order(x->graph, &x->order);
    if (r == hipSuccess)
        *out = x;
    else
        destroy(x);
    return r;
}

static hipError_t instantiate(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags) {
    struct graph_exec *x = NULL;
    if (!out || !graph)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    hipError_t r = g ? make(&x, g, flags) : hipErrorInvalidValue;
    soft_graph_unlock();
    if (r == hipSuccess)
        *out = (hipGraphExec_t)x;
    return r;
}

hipError_t soft_hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                    hipGraphNode_t *pErrorNode, char *pLogBuffer,
                                    size_t bufferSize) {
    hipError_t r = instantiate(pGraphExec, graph, 0);
    if (pErrorNode)
        *pErrorNode = NULL;
    if (pLogBuffer && bufferSize)
        snprintf(pLogBuffer, bufferSize, "%s",
                 r == hipErrorInvalidValue ? "the dependencies of the graph form a circle" : "");
    return r;
}

hipError_t soft_hipGraphInstantiateWithFlags(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                             unsigned long long flags) {
    if (flags && flags != hipGraphInstantiateFlagAutoFreeOnLaunch &&
        flags != hipGraphInstantiateFlagUseNodePriority)
        return hipErrorInvalidValue;
    return instantiate(pGraphExec, graph, flags);
}

hipError_t soft_hipGraphInstantiateWithParams(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                              hipGraphInstantiateParams *instantiateParams) {
    if (!pGraphExec || !graph || !instantiateParams)
        return hipErrorInvalidValue;
    unsigned long long flags = instantiateParams->flags;
    hipError_t r = flags == hipGraphInstantiateFlagUpload
                       ? instantiate(pGraphExec, graph, flags)
                       : soft_hipGraphInstantiateWithFlags(pGraphExec, graph, flags);
    instantiateParams->errNode_out = NULL;
    instantiateParams->result_out = r == hipSuccess ? hipGraphInstantiateSuccess
                                    : r == hipErrorInvalidValue
                                        ? hipGraphInstantiateInvalidStructure
                                        : hipGraphInstantiateError;
    return r;
}

hipError_t soft_hipGraphExecDestroy(hipGraphExec_t graphExec) {
    soft_graph_lock();
    struct graph_exec *x = soft_exec_of(graphExec);
    if (x)
        destroy(x);
    soft_graph_unlock();
    return x ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphExecGetFlags(hipGraphExec_t graphExec, unsigned long long *flags) {
    if (!flags)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_exec *x = soft_exec_of(graphExec);
    if (x)
        *flags = x->flags;
    soft_graph_unlock();
    return x ? hipSuccess : hipErrorInvalidValue;
}

/* There is nothing to upload: graphs run from host memory. */
hipError_t soft_hipGraphUpload(hipGraphExec_t graphExec, hipStream_t stream) {
    struct soft_stream *st;
    hipError_t r = soft_stream_resolve(stream, &st);
    soft_graph_lock();
    if (!soft_exec_of(graphExec))
        r = hipErrorInvalidValue;
    soft_graph_unlock();
    return r;
}

/* ---- launching ----------------------------------------------------------------------------- */

/* The operation that a leaf becomes in this launch; *out NULL: none. */
static hipError_t leaf_op(const struct graph_node *n, struct soft_op **out) {
    *out = NULL;
    if (n->disabled || n->type == hipGraphNodeTypeEmpty)
        return hipSuccess;
    if (n->type == hipGraphNodeTypeEventRecord || n->type == hipGraphNodeTypeWaitEvent) {
        bool record = n->type == hipGraphNodeTypeEventRecord;
        if (!soft_handle_valid(soft_events(), n->event))
            return hipErrorInvalidHandle;
        *out = record ? soft_op_new(SOFT_OP_RECORD, "hipGraphEventRecordNode")
                      : soft_op_new(SOFT_OP_BARRIER, "hipGraphEventWaitNode");
        if (*out)
            (*out)->u.record.event = n->event;
    } else {
        if (n->type == hipGraphNodeTypeKernel && !soft_launch_is_alive(n->op))
            return hipErrorInvalidDeviceFunction;
        *out = soft_op_clone(n->op);
    }
    return *out ? hipSuccess : hipErrorOutOfMemory;
}

static void free_chain(struct soft_op *first) {
    for (struct soft_op *next; first; first = next) {
        next = first->next;
        soft_op_free(first);
    }
}

static bool is_kernel(const struct graph_node *n) {
    return n->type == hipGraphNodeTypeKernel && !n->disabled;
}

/* The leaves as a piece; NULL if they cannot be one, or without memory. */
static struct soft_piece *make_piece(const struct graph_exec *x) {
    struct soft_piece *p = NULL;
    for (size_t i = 0; i < x->order.count; i++)
        if (!is_kernel(x->order.at[i]))
            return NULL;
    if (x->order.count > 1 && x->order.count <= UINT32_MAX)
        p = soft_piece_new((uint32_t)x->order.count);
    for (size_t i = 0; p && i < x->order.count; i++) {
        struct soft_op *op = soft_op_clone(x->order.at[i]->op);
        if (op) {
            soft_piece_add(p, op);
        } else {
            soft_piece_drop(p);
            p = NULL;
        }
    }
    return p;
}

/* The launch as one operation. NULL if it must be queued operation by operation, because there are
 * others than kernels, or because the schedule works on single operations. */
static struct soft_op *build_piece(struct graph_exec *x) {
    enum soft_policy policy = soft_settings()->policy;
    if (policy != SOFT_FAST && policy != SOFT_EAGER)
        return NULL;
    if (x->changes != soft_graph_changes()) {
        soft_piece_drop(x->piece);
        x->piece = make_piece(x);
        x->changes = soft_graph_changes();
    }
    for (uint32_t i = 0; x->piece && i < x->piece->count; i++)
        if (!soft_launch_is_alive(x->piece->op[i]))
            return NULL;
    return x->piece ? soft_piece_op(x->piece) : NULL;
}

/* Notes that a launch gives memory of the graph to the program, or frees it. False if it does so
 * twice: hipGraphInstantiateFlagAutoFreeOnLaunch alone permits that. */
static bool note_memory(const struct graph_exec *x, const struct soft_op *op) {
    if (op->kind == SOFT_OP_GRAPH_ALLOC)
        return soft_memory_hand_out(op->u.graph_block->addr) ||
               (x->flags & hipGraphInstantiateFlagAutoFreeOnLaunch);
    return op->kind != SOFT_OP_GRAPH_FREE || soft_memory_take_back(op->u.graph_block->addr);
}

static void note_memory_back(const struct soft_op *op) {
    if (op->kind == SOFT_OP_GRAPH_ALLOC)
        soft_memory_take_back(op->u.graph_block->addr);
    else if (op->kind == SOFT_OP_GRAPH_FREE)
        soft_memory_hand_out(op->u.graph_block->addr);
}

static hipError_t note_all_memory(const struct graph_exec *x, const struct soft_op *first) {
    const struct soft_op *at = first;
    while (at && note_memory(x, at))
        at = at->next;
    if (!at)
        return hipSuccess;
    for (const struct soft_op *op = first; op != at; op = op->next)
        note_memory_back(op);
    return hipErrorInvalidValue;
}

/* All operations of one launch, chained by next. */
static hipError_t build(struct graph_exec *x, struct soft_op **first) {
    struct soft_op **tail = first;
    *first = build_piece(x);
    if (*first)
        return hipSuccess;
    hipError_t r =
        soft_settings()->policy == SOFT_RANDOM ? find_order(x->graph, &x->order) : hipSuccess;
    for (size_t i = 0; r == hipSuccess && i < x->order.count; i++) {
        struct soft_op *op;
        r = leaf_op(x->order.at[i], &op);
        if (op) {
            *tail = op;
            tail = &op->next;
        }
    }
    if (r == hipSuccess)
        r = note_all_memory(x, *first);
    if (r != hipSuccess) {
        free_chain(*first);
        *first = NULL;
    }
    return r;
}

/* Under the scheduler's lock. */
static hipError_t queue_one(struct soft_stream *st, struct soft_op *op) {
    if (op->kind == SOFT_OP_RECORD)
        return soft_event_record_locked(op->u.record.event, st, op);
    if (op->kind == SOFT_OP_BARRIER) {
        struct soft_event *ev = op->u.record.event;
        if (ev->stream && !soft_op_depend(op, ev->stream, ev->seq))
            return hipErrorOutOfMemory;
    }
    return soft_submit_locked(st, op);
}

/* Queues a chain without a gap: no other thread's work comes between. It begins after *last, which
 * becomes its own end. */
static hipError_t queue(struct soft_stream *st, struct soft_op *first,
                        struct soft_dep *last_launch) {
    const struct soft_settings *s = soft_settings();
    unsigned serialize = s->serialize_kernel | s->serialize_copy;
    if (!first)
        return hipSuccess;
    if (serialize & SOFT_SERIALIZE_BEFORE)
        soft_schedule_drain(st->device);
    for (struct soft_op *op = first; op; op = op->next)
        if (op->kind == SOFT_OP_RECORD)
            soft_capture_forget(op->u.record.event);
    hipError_t r = hipSuccess;
    soft_schedule_lock();
    if (last_launch->stream && last_launch->stream != st &&
        !soft_op_depend(first, last_launch->stream, last_launch->seq))
        r = hipErrorOutOfMemory;
    while (first && r == hipSuccess) {
        struct soft_op *next = first->next;
        r = queue_one(st, first);
        if (r == hipSuccess)
            first = next;
    }
    uint64_t last = st->submitted;
    *last_launch = (struct soft_dep){ st, last };
    soft_schedule_unlock();
    free_chain(first);
    soft_schedule_submitted(st, last, false);
    if (r == hipSuccess && serialize & SOFT_SERIALIZE_AFTER) {
        soft_schedule_wait(st, last);
        return soft_error_observe();
    }
    return r;
}

/* Launches of one executable graph run one after another, whatever streams they are in. */
hipError_t soft_hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream) {
    struct soft_stream *st;
    struct soft_op *first = NULL;
    struct soft_dep last = { 0 };
    soft_graph_lock();
    struct graph_exec *x = soft_exec_of(graphExec);
    hipError_t r = x ? soft_stream_resolve(stream, &st) : hipErrorInvalidValue;
    bool captured = r == hipSuccess && st->capture;
    if (captured)
        r = soft_capture_add_graph(st, x->graph);
    else if (r == hipSuccess)
        r = build(x, &first);
    if (x)
        last = x->last;
    soft_graph_unlock();
    if (r != hipSuccess || captured)
        return r;
    r = queue(st, first, &last);
    soft_graph_lock();
    x = soft_exec_of(graphExec); /* another thread may have destroyed it */
    if (x)
        x->last = last;
    soft_graph_unlock();
    return r;
}

hipError_t soft_hipGraphLaunch_spt(hipGraphExec_t graphExec, hipStream_t stream) {
    return soft_hipGraphLaunch(graphExec, stream ? stream : hipStreamPerThread);
}

/* ---- updating ------------------------------------------------------------------------------ */

static void number_nodes(const struct graph *g) {
    for (size_t i = 0; i < g->nodes.count; i++)
        g->nodes.at[i]->number = i;
}

/* Do two nodes depend on the nodes of the same numbers? */
static bool same_dependencies(const struct graph_node *a, const struct graph_node *b) {
    if (a->dependencies.count != b->dependencies.count)
        return false;
    for (size_t i = 0; i < a->dependencies.count; i++) {
        bool found = false;
        for (size_t k = 0; k < b->dependencies.count && !found; k++)
            found = a->dependencies.at[i]->number == b->dependencies.at[k]->number;
        if (!found)
            return false;
    }
    return true;
}

/* Whether the nodes of `now` can be given the parameters of those of `next`, node by node in order
 * of creation; if not, *culprit is the node of `next` that cannot (NULL: their number). */
static hipGraphExecUpdateResult compare(const struct graph *now, const struct graph *next,
                                        struct graph_node **culprit) {
    *culprit = NULL;
    if (now->nodes.count != next->nodes.count)
        return hipGraphExecUpdateErrorTopologyChanged;
    number_nodes(now);
    number_nodes(next);
    for (size_t i = 0; i < now->nodes.count; i++) {
        const struct graph_node *a = now->nodes.at[i];
        struct graph_node *b = next->nodes.at[i];
        *culprit = b;
        if (a->type != b->type)
            return hipGraphExecUpdateErrorNodeTypeChanged;
        if (!same_dependencies(a, b))
            return hipGraphExecUpdateErrorTopologyChanged;
        if (a->type == hipGraphNodeTypeMemcpy && a->kind != b->kind)
            return hipGraphExecUpdateErrorParametersChanged;
    }
    for (size_t i = 0; i < now->nodes.count; i++)
        if (now->nodes.at[i]->child) {
            hipGraphExecUpdateResult r =
                compare(now->nodes.at[i]->child, next->nodes.at[i]->child, culprit);
            if (r != hipGraphExecUpdateSuccess)
                return r;
        }
    *culprit = NULL;
    return hipGraphExecUpdateSuccess;
}

/* Gives the nodes of `now` the parameters of `from`, a graph that compare() has accepted and that
 * is thrown away afterwards. */
static void adopt(struct graph *now, struct graph *from) {
    for (size_t i = 0; i < now->nodes.count; i++) {
        struct graph_node *a = now->nodes.at[i], *b = from->nodes.at[i];
        soft_node_set_op(a, b->op);
        b->op = NULL;
        a->function = b->function;
        a->kind = b->kind;
        a->box = b->box;
        a->event = b->event;
        if (a->child)
            adopt(a->child, b->child);
    }
}

static hipError_t update(struct graph *now, const struct graph *next) {
    struct graph *copy = soft_graph_copy(next);
    if (!copy)
        return hipErrorOutOfMemory;
    adopt(now, copy);
    soft_graph_free(copy);
    return hipSuccess;
}

hipError_t soft_hipGraphExecUpdate(hipGraphExec_t hGraphExec, hipGraph_t hGraph,
                                   hipGraphNode_t *hErrorNode_out,
                                   hipGraphExecUpdateResult *updateResult_out) {
    if (!hErrorNode_out || !updateResult_out)
        return hipErrorInvalidValue;
    struct graph_node *culprit = NULL;
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    hipError_t r = hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_exec *x = soft_exec_of(hGraphExec);
    struct graph *g = soft_graph_of(hGraph);
    if (x && g) {
        result = compare(x->graph, g, &culprit);
        r = result == hipGraphExecUpdateSuccess ? update(x->graph, g)
                                                : hipErrorGraphExecUpdateFailure;
        if (r == hipErrorOutOfMemory)
            result = hipGraphExecUpdateError;
    }
    soft_graph_unlock();
    *hErrorNode_out = (hipGraphNode_t)culprit;
    *updateResult_out = result;
    return r;
}

hipError_t soft_hipGraphExecChildGraphNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                                    hipGraph_t childGraph) {
    struct graph_node *culprit;
    hipError_t r = hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_exec *x = soft_exec_of(hGraphExec);
    struct graph_node *original = soft_node_of(node);
    struct graph *g = soft_graph_of(childGraph);
    struct graph_node *n = x && original && g ? soft_exec_node(x, original) : NULL;
    if (n && n->child && compare(n->child, g, &culprit) == hipGraphExecUpdateSuccess)
        r = update(n->child, g);
    soft_graph_unlock();
    return r;
}

/* ---- memory of graphs ----------------------------------------------------------------------- */

/* Only accessible memory is reserved: what waits for the next launch takes addresses alone. */
hipError_t soft_hipDeviceGetGraphMemAttribute(int device, hipGraphMemAttributeType attr,
                                              void *value) {
    uint64_t now, high;
    hipError_t r = soft_check_device(device);
    if (r != hipSuccess)
        return r;
    if (!value || (unsigned)attr > hipGraphMemAttrReservedMemHigh)
        return hipErrorInvalidValue;
    soft_memory_graph_usage(device, &now, &high);
    bool is_high = attr == hipGraphMemAttrUsedMemHigh || attr == hipGraphMemAttrReservedMemHigh;
    memcpy(value, is_high ? &high : &now, sizeof now);
    return hipSuccess;
}

hipError_t soft_hipDeviceSetGraphMemAttribute(int device, hipGraphMemAttributeType attr,
                                              void *value) {
    hipError_t r = soft_check_device(device);
    if (r != hipSuccess)
        return r;
    bool high = attr == hipGraphMemAttrUsedMemHigh || attr == hipGraphMemAttrReservedMemHigh;
    uint64_t zero = 0; /* the only value a high-water mark can be set to */
    if (!value || !high || memcmp(value, &zero, sizeof zero) != 0)
        return hipErrorInvalidValue;
    soft_memory_graph_forget_high(device);
    return hipSuccess;
}

hipError_t soft_hipDeviceGraphMemTrim(int device) {
    return soft_check_device(device);
}
