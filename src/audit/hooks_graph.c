/* Hooks of stream capture and graphs. */
#include "audit/graph_uses.h"
#include "audit/hooks.h"

#include "audit/statements.h"

static uint64_t bits(const void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

void hook_capture_begin(struct call *c, struct order_stream *s, hipStreamCaptureMode mode) {
    wait_settle(s);
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_CAPTURE_BEGIN, 0, s);
        ev.dst = (uint64_t)mode;
        call_begin(c, &ev);
    }
}

void hook_capture_begun(struct call *c, hipError_t r, struct order_stream *s) {
    if (r == hipSuccess)
        order_capture_begin(s, c->seq);
    call_end(c, (unsigned)r);
}

void hook_capture_end(struct call *c, struct order_stream *s) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_CAPTURE_END, 0, s);
        ev.src = s && order_is_capturing(s) ? s->capture_seq : EVENT_NO_SEQ;
        call_begin(c, &ev);
    }
}

void hook_capture_ended(struct call *c, hipError_t r, struct order_stream *s,
                        const hipGraph_t *graph) {
    uint32_t number = s ? atomic_load(&s->capture) : 0;
    /* A capture that failed has ended as well. */
    order_capture_end(s);
    if (audit.host && number)
        graph_uses_ended(number, graph && r == hipSuccess ? *graph : NULL);
    call_end_dst(c, (unsigned)r, graph && r == hipSuccess ? bits(*graph) : 0);
}

void hook_graph(struct call *c, enum event_kind kind, const void *dst, const void *src,
                const void *node) {
    if (!call_is_recorded())
        return;
    struct event ev = call_event(c, kind, 0, NULL);
    ev.dst = bits(dst);
    ev.src = bits(src);
    ev.len = bits(node);
    call_begin(c, &ev);
}

void hook_graph_done(struct call *c, hipError_t r, const void *made) {
    if (made)
        call_end_dst(c, (unsigned)r, bits(made));
    else
        call_end(c, (unsigned)r);
}

void hook_graph_made_of(struct call *c, hipError_t r, const void *made, const void *from) {
    if (audit.host && made)
        graph_uses_copy(from, made);
    hook_graph_done(c, r, made);
}

void hook_graph_updated(struct call *c, hipError_t r, const void *exec, const void *from) {
    if (audit.host && r == hipSuccess)
        graph_uses_copy(from, exec);
    hook_graph_done(c, r, NULL);
}

void hook_graph_destroyed(struct call *c, hipError_t r, const void *graph) {
    if (audit.host && r == hipSuccess)
        graph_uses_forget(graph);
    hook_graph_done(c, r, NULL);
}

void hook_graph_edges(struct call *c, hipError_t r, hipGraph_t graph, const hipGraphNode_t *from,
                      const hipGraphNode_t *to, size_t count) {
    call_end(c, (unsigned)r);
    if (!call_is_recorded() || r != hipSuccess)
        return;
    for (size_t i = 0; from && to && i < count; i++) {
        struct event ev = call_event(c, EVENT_GRAPH_EDGE, 0, NULL);
        ev.dst = bits(graph);
        ev.src = bits(from[i]);
        ev.len = bits(to[i]);
        ev.status = hipSuccess;
        record_event(audit.writer, &ev);
    }
}

static void note_use(const struct audit_host_use *use, void *work) {
    hook_note_host_use(work, use);
}

struct hook_work hook_graph_launch(struct call *c, hipGraphExec_t exec, struct order_stream *s) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_GRAPH_LAUNCH, 0, s);
        ev.dst = bits(exec);
        call_begin(c, &ev);
        statement_tag(c);
    }
    struct hook_work w = { .stream = s };
    if (audit.host)
        graph_uses_each(exec, note_use, &w);
    return w;
}

/* ---- nodes added by hand --------------------------------------------------------------------- */

enum { NODE_SLOTS = 1 + EVENT_EXTRA_MAX };

/* The GRAPH_NODE event with what the node depends on; what does not fit is left out, and len says
 * how many there are. */
static void record_node(struct call *c, hipError_t r, const struct hook_node *n, uint32_t name) {
    union event_slot slot[NODE_SLOTS];
    struct event ev = call_event(c, EVENT_GRAPH_NODE, 0, NULL);
    ev.dst = bits(n->graph);
    ev.src = n->node && r == hipSuccess ? bits(*n->node) : 0;
    ev.len = n->count;
    ev.name = name;
    ev.status = (uint16_t)r;
    slot[0].event = ev;
    unsigned slots = 1;
    for (size_t i = 0; n->needs && i < n->count && slots < NODE_SLOTS; slots++) {
        size_t some = n->count - i < EVENT_WORDS ? n->count - i : EVENT_WORDS;
        uint64_t *word = event_extra_init(&slot[slots], EXTRA_NODES, (unsigned)some);
        for (size_t k = 0; k < some; k++)
            word[k] = bits(n->needs[i++]);
    }
    call_begin_slots(c, slot, slots);
}

/* The event of the operation itself, which is not queued but part of the graph. */
static struct event node_event(const struct call *c, enum event_kind kind, unsigned detail,
                               hipError_t r) {
    struct event ev = call_event(c, kind, detail | EVENT_CAPTURED, NULL);
    ev.status = (uint16_t)r;
    return ev;
}

void hook_node_plain(struct call *c, hipError_t r, const struct hook_node *n) {
    if (call_is_recorded())
        record_node(c, r, n, 0);
}

void hook_node_event(struct call *c, hipError_t r, const struct hook_node *n, enum event_kind kind,
                     hipEvent_t event) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    struct event ev = node_event(c, kind, 0, r);
    ev.dst = bits(event);
    ev.src = EVENT_NO_SEQ; /* which record a wait is for is known when the graph is launched */
    record_event(audit.writer, &ev);
}

void hook_node_child(struct call *c, hipError_t r, const struct hook_node *n, const void *child) {
    if (audit.host && r == hipSuccess)
        graph_uses_copy(child, n->graph);
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    struct event ev = node_event(c, EVENT_GRAPH_LAUNCH, 0, r);
    ev.src = bits(child);
    record_event(audit.writer, &ev);
}

static struct hook_launch launch_of(const hipKernelNodeParams *p) {
    return (struct hook_launch){
        .function = p->func,
        .grid = { p->gridDim.x, p->gridDim.y, p->gridDim.z },
        .block = { p->blockDim.x, p->blockDim.y, p->blockDim.z },
        .shared = p->sharedMemBytes,
        .params = p->kernelParams,
        .extra = p->extra,
    };
}

void hook_node_kernel(struct call *c, hipError_t r, const struct hook_node *n,
                      const hipKernelNodeParams *p) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    if (!p)
        return;
    struct hook_launch q = launch_of(p);
    hook_record_captured_launch(c, r, &q);
}

/* The memory that a copy of a graph shares with the host. */
static void keep_uses(const void *graph, uint64_t event, const void *dst, size_t dst_bytes,
                      const void *src, size_t src_bytes, hipMemcpyKind kind) {
    struct audit_host_use use[2];
    unsigned count = hook_copy_uses(use, dst, dst_bytes, src, src_bytes, kind);
    for (unsigned i = 0; i < count; i++) {
        use[i].event = event;
        if (graph)
            graph_uses_add(graph, &use[i]);
        if (audit.host->captured)
            audit.host->captured(&use[i]);
    }
}

static void record_copy(const struct call *c, hipError_t r, const void *graph, const void *dst,
                        const void *src, size_t bytes, hipMemcpyKind kind) {
    struct event ev = node_event(c, EVENT_COPY, ((unsigned)kind & 7) | HOOK_ASYNC, r);
    ev.dst = bits(dst);
    ev.src = bits(src);
    ev.len = bytes;
    uint64_t seq = record_event(audit.writer, &ev);
    if (audit.host && r == hipSuccess)
        keep_uses(graph, seq, dst, bytes, src, bytes, kind);
}

void hook_node_copy(struct call *c, hipError_t r, const struct hook_node *n, const void *dst,
                    const void *src, size_t bytes, hipMemcpyKind kind) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    record_copy(c, r, n->graph, dst, src, bytes, kind);
}

/* From the first byte of the first row to the last of the last. */
static size_t extent(size_t pitch, size_t slice, const struct hook_rows *rows) {
    return rows->width && rows->height && rows->depth
               ? (rows->depth - 1) * slice + (rows->height - 1) * pitch + rows->width
               : 0;
}

static void record_copy3d(const struct call *c, hipError_t r, const void *graph,
                          const hipMemcpy3DParms *p) {
    struct hook_rows rows = hook_rows_3d(p);
    union event_slot slot[3];
    struct event ev = node_event(c, EVENT_COPY2D, ((unsigned)hook_kind_3d(p) & 7) | HOOK_ASYNC, r);
    ev.dst = bits(rows.dst);
    ev.src = bits(rows.src);
    ev.len = (uint64_t)rows.width * rows.height * rows.depth;
    slot[0].event = ev;
    event_extra_rows(&slot[1], rows.dst_pitch, rows.src_pitch, rows.width, rows.height);
    event_extra_slices(&slot[2], rows.dst_slice, rows.src_slice, rows.depth);
    uint64_t seq = record_events(audit.writer, slot, rows.depth > 1 ? 3 : 2);
    if (audit.host && r == hipSuccess)
        keep_uses(graph, seq, rows.dst, extent(rows.dst_pitch, rows.dst_slice, &rows), rows.src,
                  extent(rows.src_pitch, rows.src_slice, &rows), hook_kind_3d(p));
}

void hook_node_copy3d(struct call *c, hipError_t r, const struct hook_node *n,
                      const hipMemcpy3DParms *p) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    record_copy3d(c, r, n->graph, p);
}

static void record_set(const struct call *c, hipError_t r, const hipMemsetParams *p) {
    union event_slot slot[2];
    struct event ev = node_event(c, EVENT_SET, (p->elementSize & 7) | HOOK_ASYNC, r);
    ev.dst = bits(p->dst);
    ev.src = p->value;
    ev.len = (uint64_t)p->elementSize * p->width * p->height;
    slot[0].event = ev;
    event_extra_rows(&slot[1], p->pitch, 0, (uint64_t)p->elementSize * p->width, p->height);
    record_events(audit.writer, slot, p->height > 1 ? 2 : 1);
}

void hook_node_set(struct call *c, hipError_t r, const struct hook_node *n,
                   const hipMemsetParams *p) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    if (p)
        record_set(c, r, p);
}

static uint64_t record_host(const struct call *c, hipError_t r, const struct hook_host_node *w) {
    struct event ev = node_event(c, EVENT_HOST_FN, 0, r);
    ev.dst = w->asked ? (uint64_t)(uintptr_t)w->asked->fn : 0;
    ev.src = w->asked ? bits(w->asked->userData) : 0;
    return record_event(audit.writer, &ev);
}

void hook_node_host(struct call *c, hipError_t r, const struct hook_node *n,
                    struct hook_host_node *w) {
    uint64_t seq = EVENT_NO_SEQ;
    if (call_is_recorded()) {
        record_node(c, r, n, 0);
        seq = record_host(c, r, w);
    }
    hook_host_node_added(r, w, seq);
}

void hook_node_alloc(struct call *c, hipError_t r, const struct hook_node *n,
                     const hipMemAllocNodeParams *p) {
    if (call_is_recorded())
        record_node(c, r, n, 0);
    const struct ledger_entry what = {
        .addr = p && r == hipSuccess ? bits(p->dptr) : 0,
        .size = p ? p->bytesize : 0,
        .family = LEDGER_GRAPH, /* as with a captured hipMallocAsync() */
        .device = p ? p->poolProps.location.id : 0,
    };
    if (what.addr)
        hook_enter_memory(c, r, &what, 0, false);
}

void hook_node_free(struct call *c, hipError_t r, const struct hook_node *n, const void *ptr) {
    if (!call_is_recorded())
        return;
    record_node(c, r, n, 0);
    struct event ev = node_event(c, EVENT_FREE, DETAIL_FAMILY_UNKNOWN, r);
    ev.dst = bits(ptr);
    ev.src = EVENT_NO_SEQ;
    if (r == hipSuccess)
        record_event(audit.writer, &ev);
}

/* ---- nodes that get other parameters --------------------------------------------------------- */

void hook_node_kernel_set(struct call *c, hipError_t r, const hipKernelNodeParams *p) {
    hook_graph_done(c, r, NULL);
    if (!call_is_recorded() || !p)
        return;
    struct hook_launch q = launch_of(p);
    hook_record_captured_launch(c, r, &q);
}

void hook_node_copy_set(struct call *c, hipError_t r, const void *graph, const void *dst,
                        const void *src, size_t bytes, hipMemcpyKind kind) {
    hook_graph_done(c, r, NULL);
    if (call_is_recorded())
        record_copy(c, r, graph, dst, src, bytes, kind);
}

void hook_node_copy3d_set(struct call *c, hipError_t r, const void *graph,
                          const hipMemcpy3DParms *p) {
    hook_graph_done(c, r, NULL);
    if (call_is_recorded() && p)
        record_copy3d(c, r, graph, p);
}

void hook_node_set_set(struct call *c, hipError_t r, const hipMemsetParams *p) {
    hook_graph_done(c, r, NULL);
    if (call_is_recorded() && p)
        record_set(c, r, p);
}

void hook_node_host_set(struct call *c, hipError_t r, struct hook_host_node *w) {
    hook_graph_done(c, r, NULL);
    hook_host_node_added(r, w, call_is_recorded() ? record_host(c, r, w) : EVENT_NO_SEQ);
}

void hook_graph_nodes(struct call *c, hipError_t r, hipGraph_t graph, const hipGraphNode_t *nodes,
                      const size_t *count) {
    call_end(c, (unsigned)r);
    if (!call_is_recorded() || r != hipSuccess || !nodes || !count)
        return;
    for (size_t i = 0; i < *count; i++) {
        struct event ev = call_event(c, EVENT_GRAPH_HANDLE, 0, NULL);
        ev.dst = bits(graph);
        ev.src = bits(nodes[i]);
        ev.len = i;
        ev.status = hipSuccess;
        record_event(audit.writer, &ev);
    }
}
