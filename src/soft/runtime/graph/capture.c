/* capture.c - stream capture: work queued in a capturing stream becomes nodes of a graph.
 *
 * A capture begins in one stream, its origin, and spreads: an event recorded in a capturing stream
 * stands for the nodes that stream has come to (its frontier), and a stream that waits for such an
 * event joins the capture. A new node depends on the frontier of its stream and replaces it. When
 * the capture ends, the origin must have waited for every stream that joined.
 *
 * While a blocking stream captures, the legacy default stream of its device must not be used,
 * because its work would have to wait for work that is captured and not queued. To notice that at
 * no cost, the legacy stream's capture pointer is set to `legacy_guard` meanwhile.
 *
 * The graph lock guards everything, except that stream->capture, event->capture_graph and
 * capture_count may be looked at without it. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/grow.h"
#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/stream.h"

struct branch {
    struct soft_stream *stream;
    struct node_list frontier;
};

struct soft_capture {
    struct soft_capture *next;
    struct graph *graph;
    bool borrowed; /* graph is the program's: hipStreamBeginCaptureToGraph */
    struct soft_stream *origin;
    hipStreamCaptureMode mode;
    uint64_t thread; /* that began it */
    unsigned long long id;
    bool invalid;
    struct branch *branches;
    size_t branch_count, branch_room;
    struct soft_event **events; /* whose last record is in this capture */
    size_t event_count, event_room;
    struct node_list
        dropped; /* nodes that hipStreamUpdateCaptureDependencies took from a frontier */
};

static struct soft_capture *captures;
static _Atomic unsigned capture_count;
static struct soft_capture legacy_guard;
static unsigned guards[SOFT_DEVICES_MAX]; /* capturing blocking streams of a device */

static _Thread_local hipStreamCaptureMode thread_mode; /* hipStreamCaptureModeGlobal */

static uint64_t this_thread(void) {
    static _Atomic uint64_t last;
    static _Thread_local uint64_t mine;
    if (!mine)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

/* ---- branches ------------------------------------------------------------------------------ */

static struct branch *branch_of(struct soft_capture *c, const struct soft_stream *st) {
    for (size_t i = 0; i < c->branch_count; i++)
        if (c->branches[i].stream == st)
            return &c->branches[i];
    return NULL;
}

static bool is_blocking(const struct soft_stream *st) {
    return !(st->flags & hipStreamNonBlocking);
}

static void guard_legacy(const struct soft_stream *st, bool begin) {
    if (!is_blocking(st))
        return;
    guards[st->device] += begin ? 1u : -1u;
    soft_stream_null(st->device)->capture = guards[st->device] ? &legacy_guard : NULL;
}

/* st becomes part of c. NULL: no memory. */
static struct branch *join(struct soft_capture *c, struct soft_stream *st) {
    struct branch *more = grow_array(c->branches, &c->branch_room, c->branch_count, sizeof *more);
    if (!more)
        return NULL;
    c->branches = more;
    struct branch *b = &c->branches[c->branch_count++];
    *b = (struct branch){ .stream = st };
    st->capture = c;
    guard_legacy(st, true);
    return b;
}

static void leave(struct soft_capture *c, struct branch *b) {
    b->stream->capture = NULL;
    guard_legacy(b->stream, false);
    node_list_clear(&b->frontier);
    *b = c->branches[--c->branch_count];
}

/* Adds the nodes of `more` that list does not have. */
static bool merge(struct node_list *list, const struct node_list *more) {
    for (size_t i = 0; i < more->count; i++)
        if (!node_list_has(list, more->at[i]) && !node_list_add(list, more->at[i]))
            return false;
    return true;
}

/* ---- events -------------------------------------------------------------------------------- */

static void clear_event(struct soft_event *ev) {
    struct node_list *nodes = ev->capture_nodes;
    ev->capture_graph = NULL;
    ev->capture_nodes = NULL;
    if (nodes)
        node_list_clear(nodes);
    free(nodes);
}

static bool remember_event(struct soft_capture *c, struct soft_event *ev) {
    struct soft_event **more = grow_array(c->events, &c->event_room, c->event_count, sizeof *more);
    if (!more)
        return false;
    c->events = more;
    c->events[c->event_count++] = ev;
    return true;
}

static void forget_event(struct soft_event *ev) {
    struct soft_capture *c = ev->capture_graph;
    for (size_t i = 0; i < c->event_count; i++)
        if (c->events[i] == ev)
            c->events[i--] = c->events[--c->event_count];
    clear_event(ev);
}

void soft_capture_forget(struct soft_event *ev) {
    if (!ev->capture_graph)
        return;
    soft_graph_lock();
    if (ev->capture_graph)
        forget_event(ev);
    soft_graph_unlock();
}

/* ---- beginning and ending ------------------------------------------------------------------ */

static hipError_t begin(struct soft_stream *st, hipStreamCaptureMode mode, struct graph *g,
                        const struct node_list *frontier) {
    static unsigned long long last_id;
    struct soft_capture *c = calloc(1, sizeof *c);
    if (!c)
        return hipErrorOutOfMemory;
    c->borrowed = g != NULL;
    c->graph = g ? g : soft_graph_new();
    struct branch *b = c->graph ? join(c, st) : NULL;
    if (!b || (frontier && !node_list_copy(&b->frontier, frontier))) {
        if (b)
            leave(c, b);
        if (c->graph && !g)
            soft_graph_free(c->graph);
        free(c->branches);
        free(c);
        return hipErrorOutOfMemory;
    }
    c->origin = st;
    c->mode = mode;
    c->thread = this_thread();
    c->id = ++last_id;
    c->graph->capture = c;
    c->next = captures;
    captures = c;
    atomic_fetch_add(&capture_count, 1);
    return hipSuccess;
}

/* Ends a capture for all its streams and events. Its graph is returned, or freed with keep false
 * (unless the program lent it). */
static struct graph *dissolve(struct soft_capture *c, bool keep) {
    struct graph *g = c->graph;
    while (c->branch_count)
        leave(c, &c->branches[0]);
    for (size_t i = 0; i < c->event_count; i++)
        clear_event(c->events[i]);
    for (struct soft_capture **at = &captures; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    atomic_fetch_sub(&capture_count, 1);
    g->capture = NULL;
    if (!keep && !c->borrowed)
        soft_graph_free(g);
    node_list_clear(&c->dropped);
    free(c->branches);
    free(c->events);
    free(c);
    return keep ? g : NULL;
}

/* Marks (pending = 1) the nodes of list and all they depend on. */
static bool mark_ancestors(const struct node_list *list) {
    struct node_list stack = { 0 };
    bool memory = merge(&stack, list);
    while (memory && stack.count) {
        struct graph_node *n = stack.at[--stack.count];
        if (n->pending)
            continue;
        n->pending = 1;
        for (size_t i = 0; memory && i < n->dependencies.count; i++)
            if (!n->dependencies.at[i]->pending)
                memory = node_list_add(&stack, n->dependencies.at[i]);
    }
    node_list_clear(&stack);
    return memory;
}

/* Has the origin waited for all that other streams have done? */
static hipError_t check_joined(struct soft_capture *c) {
    for (size_t i = 0; i < c->graph->nodes.count; i++)
        c->graph->nodes.at[i]->pending = 0;
    if (!mark_ancestors(&branch_of(c, c->origin)->frontier))
        return hipErrorOutOfMemory;
    for (size_t i = 0; i < c->branch_count; i++) {
        const struct node_list *frontier = &c->branches[i].frontier;
        for (size_t k = 0; k < frontier->count; k++) {
            const struct graph_node *n = frontier->at[k];
            if (!n->pending && !n->manual && !node_list_has(&c->dropped, n))
                return hipErrorStreamCaptureUnjoined;
        }
    }
    return hipSuccess;
}

static hipError_t end(struct soft_stream *st, struct graph **out) {
    struct soft_capture *c = st->capture;
    if (!c || c == &legacy_guard)
        return hipErrorIllegalState;
    if (c->origin != st)
        return hipErrorStreamCaptureUnmatched;
    if (c->mode != hipStreamCaptureModeRelaxed && c->thread != this_thread())
        return hipErrorStreamCaptureWrongThread;
    hipError_t r = c->invalid ? hipErrorStreamCaptureInvalidated : check_joined(c);
    *out = dissolve(c, r == hipSuccess);
    return r;
}

void soft_capture_abandon(struct soft_stream *st) {
    soft_graph_lock();
    struct soft_capture *c = st->capture;
    if (c && c != &legacy_guard) {
        if (c->origin == st) {
            dissolve(c, false);
        } else {
            c->invalid = true;
            leave(c, branch_of(c, st));
        }
    }
    soft_graph_unlock();
}

/* ---- refusing ------------------------------------------------------------------------------ */

/* The legacy stream of a device was used while blocking streams of it capture. */
static hipError_t refuse_legacy(int device) {
    for (struct soft_capture *c = captures; c; c = c->next)
        for (size_t i = 0; i < c->branch_count; i++)
            if (c->branches[i].stream->device == device && is_blocking(c->branches[i].stream))
                c->invalid = true;
    return hipErrorStreamCaptureImplicit;
}

static hipError_t refuse(struct soft_stream *st, hipError_t error) {
    struct soft_capture *c = st->capture;
    if (c == &legacy_guard)
        return refuse_legacy(st->device);
    if (!c || c->invalid)
        return hipErrorStreamCaptureInvalidated;
    c->invalid = true;
    return error;
}

hipError_t soft_capture_refuse(struct soft_stream *st) {
    soft_graph_lock();
    hipError_t r = refuse(st, hipErrorStreamCaptureUnsupported);
    soft_graph_unlock();
    return r;
}

hipError_t soft_capture_refuse_sync(void) {
    if (!atomic_load_explicit(&capture_count, memory_order_relaxed))
        return hipSuccess;
    hipError_t r = hipSuccess;
    int device = soft_current_device();
    soft_graph_lock();
    for (struct soft_capture *c = captures; c; c = c->next)
        for (size_t i = 0; i < c->branch_count; i++)
            if (c->branches[i].stream->device == device) {
                c->invalid = true;
                r = hipErrorStreamCaptureUnsupported;
            }
    soft_graph_unlock();
    return r;
}

/* Forbidden by this thread's own captures unless they are relaxed and, if the thread's mode is
 * global, by global captures of other threads. */
static bool forbids_unsafe(const struct soft_capture *c) {
    if (c->thread == this_thread())
        return c->mode != hipStreamCaptureModeRelaxed;
    return thread_mode == hipStreamCaptureModeGlobal && c->mode == hipStreamCaptureModeGlobal;
}

hipError_t soft_capture_refuse_unsafe(void) {
    if (!atomic_load_explicit(&capture_count, memory_order_relaxed) ||
        thread_mode == hipStreamCaptureModeRelaxed)
        return hipSuccess;
    hipError_t r = hipSuccess;
    soft_graph_lock();
    for (struct soft_capture *c = captures; c; c = c->next)
        if (forbids_unsafe(c)) {
            c->invalid = true;
            r = hipErrorStreamCaptureUnsupported;
        }
    soft_graph_unlock();
    return r;
}

/* ---- adding -------------------------------------------------------------------------------- */

static bool node_type(enum soft_op_kind kind, hipGraphNodeType *type) {
    switch (kind) {
    case SOFT_OP_COPY:
        *type = hipGraphNodeTypeMemcpy;
        return true;
    case SOFT_OP_FILL:
        *type = hipGraphNodeTypeMemset;
        return true;
    case SOFT_OP_LAUNCH:
        *type = hipGraphNodeTypeKernel;
        return true;
    case SOFT_OP_HOST:
        *type = hipGraphNodeTypeHost;
        return true;
    case SOFT_OP_BARRIER:
        *type = hipGraphNodeTypeEmpty;
        return true;
    case SOFT_OP_GRAPH_ALLOC:
        *type = hipGraphNodeTypeMemAlloc;
        return true;
    case SOFT_OP_GRAPH_FREE:
        *type = hipGraphNodeTypeMemFree;
        return true;
    default:
        return false;
    }
}

static bool is_device(uint64_t addr) {
    struct soft_block b;
    return soft_memory_is_device_address(addr) &&
           !(soft_memory_find(addr, &b) && b.kind == SOFT_PINNED);
}

/* The kind of a captured copy follows from its addresses: hipMemcpyHostToHost + 1 if the
 * destination is the device's, + 2 if the source is. */
static hipMemcpyKind kind_of(const struct soft_copy *c) {
    bool to = is_device(c->dst), from = is_device(c->src);
    return (hipMemcpyKind)((to ? hipMemcpyHostToDevice : 0) + (from ? hipMemcpyDeviceToHost : 0));
}

/* The branch of a stream that can take a node, or NULL and why not. */
static struct branch *open_branch(struct soft_stream *st, hipError_t *why) {
    struct soft_capture *c = st->capture;
    if (c && c != &legacy_guard && !c->invalid)
        return branch_of(c, st);
    *why = c == &legacy_guard ? refuse_legacy(st->device) : hipErrorStreamCaptureInvalidated;
    return NULL;
}

/* A new node at the end of a branch; NULL: no memory. */
static struct graph_node *extend(struct branch *b, hipGraphNodeType type, struct soft_op *op) {
    struct soft_capture *c = b->stream->capture;
    struct graph_node *n = soft_node_new(c->graph, type, op, &b->frontier);
    if (!n)
        return NULL;
    if (op)
        op->node = soft_current_tag();
    b->frontier.count = 0;
    if (node_list_add(&b->frontier, n))
        return n;
    c->invalid = true; /* the node is in the graph, but nothing can follow it */
    return n;
}

hipError_t soft_capture_add(struct soft_stream *st, struct soft_op *op) {
    hipError_t r = hipSuccess;
    hipGraphNodeType type;
    struct graph_node *n = NULL;
    soft_graph_lock();
    if (!st->capture) { /* ended meanwhile */
        soft_graph_unlock();
        return soft_submit(st, op, NULL);
    }
    struct branch *b = open_branch(st, &r);
    if (b && !node_type(op->kind, &type))
        r = refuse(st, hipErrorStreamCaptureUnsupported);
    else if (b) {
        bool empty = op->kind == SOFT_OP_BARRIER;
        n = extend(b, type, empty ? NULL : op);
        r = n ? hipSuccess : hipErrorOutOfMemory;
    }
    if (n && op->kind == SOFT_OP_COPY)
        n->kind = kind_of(&op->u.copy);
    bool taken = n && n->op;
    soft_graph_unlock();
    if (!taken)
        soft_op_free(op);
    return r;
}

hipError_t soft_capture_add_graph(struct soft_stream *st, const struct graph *graph) {
    hipError_t r = hipSuccess;
    struct branch *b = open_branch(st, &r);
    if (!b)
        return r;
    struct graph *copy = soft_graph_copy(graph);
    if (!copy)
        return hipErrorOutOfMemory;
    struct graph_node *n = extend(b, hipGraphNodeTypeGraph, NULL);
    if (!n) {
        soft_graph_free(copy);
        return hipErrorOutOfMemory;
    }
    n->child = copy;
    copy->owner = n;
    return hipSuccess;
}

hipError_t soft_capture_record(struct soft_stream *st, struct soft_event *ev) {
    hipError_t r = hipSuccess;
    soft_graph_lock();
    struct branch *b = open_branch(st, &r);
    if (b) {
        struct node_list *nodes = calloc(1, sizeof *nodes);
        if (ev->capture_graph)
            forget_event(ev);
        if (nodes && node_list_copy(nodes, &b->frontier) && remember_event(st->capture, ev)) {
            ev->capture_nodes = nodes;
            ev->capture_graph = st->capture;
        } else {
            if (nodes)
                node_list_clear(nodes);
            free(nodes);
            r = hipErrorOutOfMemory;
        }
    }
    soft_graph_unlock();
    return r;
}

/* st, which may or may not capture, waits for an event of capture c. */
static hipError_t wait_for_captured(struct soft_stream *st, struct soft_event *ev,
                                    struct soft_capture *c) {
    struct soft_capture *own = st->capture;
    if (own == &legacy_guard || (st->is_null && !own)) {
        c->invalid = true;
        return hipErrorStreamCaptureImplicit;
    }
    if (c->invalid || (own && own->invalid))
        return hipErrorStreamCaptureInvalidated;
    if (own && own != c) {
        own->invalid = c->invalid = true;
        return hipErrorStreamCaptureMerge;
    }
    struct branch *b = own ? branch_of(c, st) : join(c, st);
    return b && merge(&b->frontier, ev->capture_nodes) ? hipSuccess : hipErrorOutOfMemory;
}

/* An event that was never recorded is nothing to wait for; one that was recorded outside is work
 * that a graph cannot depend on. */
hipError_t soft_capture_wait(struct soft_stream *st, struct soft_event *ev) {
    hipError_t r = hipSuccess;
    soft_graph_lock();
    struct soft_capture *c = ev->capture_graph;
    if (!c && !st->capture) { /* ended meanwhile */
        soft_graph_unlock();
        return soft_event_wait(ev, st);
    }
    if (c) {
        r = wait_for_captured(st, ev, c);
    } else if (open_branch(st, &r)) {
        soft_schedule_lock();
        bool recorded = ev->stream != NULL;
        soft_schedule_unlock();
        if (recorded)
            r = refuse(st, hipErrorStreamCaptureIsolation);
    }
    soft_graph_unlock();
    return r;
}

/* ---- HIP ----------------------------------------------------------------------------------- */

static bool is_mode(hipStreamCaptureMode mode) {
    return (unsigned)mode <= hipStreamCaptureModeRelaxed;
}

/* Begins a capture; with graph, into it and after the nodes of `after`. */
static hipError_t begin_capture(hipStream_t stream, hipStreamCaptureMode mode, hipGraph_t graph,
                                const hipGraphNode_t *after, size_t count) {
    struct soft_stream *st;
    struct node_list frontier = { 0 };
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    if (st->is_null)
        return hipErrorStreamCaptureUnsupported;
    if (!is_mode(mode))
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = graph ? soft_graph_of(graph) : NULL;
    if ((graph && !g) || (g && g->capture))
        r = hipErrorInvalidValue;
    for (size_t i = 0; r == hipSuccess && i < count; i++) {
        struct graph_node *n = soft_node_of(after[i]);
        if (!n || n->graph != g || node_list_has(&frontier, n))
            r = hipErrorInvalidValue;
        else if (!node_list_add(&frontier, n))
            r = hipErrorOutOfMemory;
    }
    if (r == hipSuccess)
        r = st->capture ? hipErrorIllegalState : begin(st, mode, g, &frontier);
    soft_graph_unlock();
    node_list_clear(&frontier);
    return r;
}

hipError_t soft_hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
    return begin_capture(stream, mode, NULL, NULL, 0);
}

hipError_t soft_hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode) {
    return begin_capture(stream ? stream : hipStreamPerThread, mode, NULL, NULL, 0);
}

hipError_t soft_hipStreamBeginCaptureToGraph(hipStream_t stream, hipGraph_t graph,
                                             const hipGraphNode_t *dependencies,
                                             const hipGraphEdgeData *dependencyData,
                                             size_t numDependencies, hipStreamCaptureMode mode) {
    if (dependencyData)
        return hipErrorNotSupported;
    if (!graph || !dependencies != !numDependencies)
        return hipErrorInvalidValue;
    return begin_capture(stream, mode, graph, dependencies, numDependencies);
}

hipError_t soft_hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph) {
    struct soft_stream *st;
    struct graph *g = NULL;
    if (!pGraph)
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    soft_graph_lock();
    r = end(st, &g);
    soft_graph_unlock();
    *pGraph = (hipGraph_t)g;
    return r;
}

hipError_t soft_hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t *pGraph) {
    return soft_hipStreamEndCapture(stream ? stream : hipStreamPerThread, pGraph);
}

hipError_t soft_hipStreamGetCaptureInfo_v2(hipStream_t stream,
                                           hipStreamCaptureStatus *captureStatus_out,
                                           unsigned long long *id_out, hipGraph_t *graph_out,
                                           const hipGraphNode_t **dependencies_out,
                                           size_t *numDependencies_out) {
    struct soft_stream *st;
    if (!captureStatus_out)
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    soft_graph_lock();
    struct soft_capture *c = st->capture;
    if (c == &legacy_guard) {
        soft_graph_unlock();
        return hipErrorStreamCaptureImplicit;
    }
    *captureStatus_out = !c           ? hipStreamCaptureStatusNone
                         : c->invalid ? hipStreamCaptureStatusInvalidated
                                      : hipStreamCaptureStatusActive;
    if (c && !c->invalid) {
        const struct branch *b = branch_of(c, st);
        if (id_out)
            *id_out = c->id;
        if (graph_out)
            *graph_out = (hipGraph_t)c->graph;
        if (dependencies_out)
            *dependencies_out = (const hipGraphNode_t *)(const void *)b->frontier.at;
        if (numDependencies_out)
            *numDependencies_out = b->frontier.count;
    }
    soft_graph_unlock();
    return hipSuccess;
}

hipError_t soft_hipStreamGetCaptureInfo_v2_spt(hipStream_t stream,
                                               hipStreamCaptureStatus *captureStatus_out,
                                               unsigned long long *id_out, hipGraph_t *graph_out,
                                               const hipGraphNode_t **dependencies_out,
                                               size_t *numDependencies_out) {
    return soft_hipStreamGetCaptureInfo_v2(stream ? stream : hipStreamPerThread, captureStatus_out,
                                           id_out, graph_out, dependencies_out,
                                           numDependencies_out);
}

hipError_t soft_hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus,
                                        unsigned long long *pId) {
    return soft_hipStreamGetCaptureInfo_v2(stream, pCaptureStatus, pId, NULL, NULL, NULL);
}

hipError_t soft_hipStreamGetCaptureInfo_spt(hipStream_t stream,
                                            hipStreamCaptureStatus *pCaptureStatus,
                                            unsigned long long *pId) {
    return soft_hipStreamGetCaptureInfo(stream ? stream : hipStreamPerThread, pCaptureStatus, pId);
}

hipError_t soft_hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus) {
    return soft_hipStreamGetCaptureInfo(stream, pCaptureStatus, NULL);
}

hipError_t soft_hipStreamIsCapturing_spt(hipStream_t stream,
                                         hipStreamCaptureStatus *pCaptureStatus) {
    return soft_hipStreamGetCaptureInfo_spt(stream, pCaptureStatus, NULL);
}

/* The nodes of c that the program names, in *out. */
static hipError_t read_nodes(const struct soft_capture *c, const hipGraphNode_t *nodes,
                             size_t count, struct node_list *out) {
    for (size_t i = 0; i < count; i++) {
        struct graph_node *n = soft_node_of(nodes[i]);
        if (!n || n->graph != c->graph)
            return hipErrorInvalidValue;
        if (!node_list_has(out, n) && !node_list_add(out, n))
            return hipErrorOutOfMemory;
    }
    return hipSuccess;
}

static hipError_t update_frontier(struct soft_stream *st, const struct node_list *nodes, bool set) {
    struct branch *b = branch_of(st->capture, st);
    struct soft_capture *c = st->capture;
    if (set) {
        if (!merge(&c->dropped, &b->frontier))
            return hipErrorOutOfMemory;
        b->frontier.count = 0;
    }
    return merge(&b->frontier, nodes) ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t soft_hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *dependencies,
                                                   size_t numDependencies, unsigned int flags) {
    struct soft_stream *st;
    struct node_list nodes = { 0 };
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    if (flags > hipStreamSetCaptureDependencies || (numDependencies && !dependencies))
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct soft_capture *c = st->capture;
    if (!c || c == &legacy_guard)
        r = hipErrorIllegalState;
    else if (c->invalid)
        r = hipErrorStreamCaptureInvalidated;
    else
        r = read_nodes(c, dependencies, numDependencies, &nodes);
    if (r == hipSuccess)
        r = update_frontier(st, &nodes, flags == hipStreamSetCaptureDependencies);
    soft_graph_unlock();
    node_list_clear(&nodes);
    return r;
}

hipError_t soft_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
    if (!mode || !is_mode(*mode))
        return hipErrorInvalidValue;
    hipStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return hipSuccess;
}
