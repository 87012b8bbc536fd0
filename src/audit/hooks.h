/* hooks.h - what the audit does before and after HIP calls; hook_table.h says for which.
 *
 * Each takes the call it belongs to. The first half of a pair runs before the runtime and the
 * second after it, with the runtime's result. Parameters have the types of the HIP functions. All
 * of them may be called from any thread; none of them prints, fails, or keeps the program from its
 * call. */
#ifndef AUDIT_HOOKS_H
#define AUDIT_HOOKS_H

#include "audit/call.h"
#include "audit/d2h_internal.h"
#include "audit/ledger.h"
#include "audit/order.h"
#include "audit/wait.h"

/* Was the HIP function the asynchronous one? */
enum { HOOK_SYNC = 0, HOOK_ASYNC = EVENT_DETAIL_ASYNC };

/* ---- hooks_memory.c -------------------------------------------------------------------------- */

/* Enters memory into the ledger and the recording, with c as the call that made it. found: only if
 * nothing is known there yet. */
void hook_enter_memory(struct call *c, hipError_t r, const struct ledger_entry *what,
                       uint64_t flags, bool found);

/* Has the process ever had managed memory? */
bool hook_has_managed(void);

/* Memory came into being at ptr, in the order of the stream if there is one. */
void hook_alloc(struct call *c, hipError_t r, enum ledger_family family, const void *ptr,
                size_t bytes, uint64_t flags);
void hook_alloc_async(struct call *c, hipError_t r, enum ledger_family family, const void *ptr,
                      size_t bytes, hipStream_t stream, const void *owner);
/* Only the runtime knows the size of what lies at ptr; it is asked. */
void hook_import(struct call *c, hipError_t r, const void *ptr, size_t bytes, const void *owner);
/* An array: no address range, known by its handle. */
void hook_array(struct call *c, hipError_t r, const void *handle);

struct hook_free {
    struct ledger_free what;
    struct order_stream *stream;
};
struct hook_free hook_free(struct call *c, const void *ptr);
struct hook_free hook_free_async(struct call *c, const void *ptr, hipStream_t stream);
void hook_freed(struct call *c, hipError_t r, const struct hook_free *f);
/* owner was destroyed, and everything that was allocated in it. */
void hook_free_owner(struct call *c, hipError_t r, const void *owner);

/* ---- hooks_work.c ---------------------------------------------------------------------------- */

/* Work on a stream, between its two halves. */
struct hook_work {
    struct order_stream *stream;
    bool leaves_nothing;    /* complete when the call has returned */
    struct d2h_pending *op; /* a copy that is in the audit log, or NULL */
    const void *function;   /* a launch's, else NULL */
    unsigned host_uses;     /* memory that audit.host wants to know of; the thread has the list */
    uint64_t host_left_out; /* the last that found no room there */
};

struct hook_work hook_copy(struct call *c, const void *dst, const void *src, size_t bytes,
                           hipMemcpyKind kind, struct order_stream *stream, unsigned async);
/* The recording's part of it alone; tensor 0: the ledger's name, if any. */
void hook_record_copy(struct call *c, const void *dst, const void *src, size_t bytes,
                      hipMemcpyKind kind, struct order_stream *stream, unsigned async,
                      uint32_t tensor);
/* Rows, and slices of rows. Pitches and slices are distances in bytes. */
struct hook_rows {
    const void *dst, *src;
    size_t dst_pitch, src_pitch, width, height;
    size_t dst_slice, src_slice, depth;
};
struct hook_work hook_copy_rows(struct call *c, const struct hook_rows *rows, hipMemcpyKind kind,
                                struct order_stream *stream, unsigned async);
/* From HIP's descriptions, which may be NULL: then everything is 0. */
struct hook_rows hook_rows_3d(const hipMemcpy3DParms *p);
hipMemcpyKind hook_kind_3d(const hipMemcpy3DParms *p);
struct hook_rows hook_rows_param2d(const hip_Memcpy2D *p);
struct hook_rows hook_rows_drv3d(const HIP_MEMCPY3D *p);
/* The address of a device variable, for copies to and from symbols. */
const void *hook_symbol(const void *symbol, size_t offset);

struct hook_work hook_set(struct call *c, const void *dst, uint64_t value, unsigned width,
                          size_t count, struct order_stream *stream, unsigned async);
struct hook_work hook_set_rows(struct call *c, const struct hook_rows *rows, uint64_t value,
                               struct order_stream *stream, unsigned async);

struct hook_launch {
    const void *function;
    uint32_t grid[3], block[3]; /* blocks; threads per block */
    uint64_t shared;
    void **params, **extra;
    bool cooperative;
};
struct hook_work hook_launch(struct call *c, const struct hook_launch *launch,
                             struct order_stream *stream);
/* Records the launch that a node of a graph stands for. */
void hook_record_captured_launch(struct call *c, hipError_t r, const struct hook_launch *launch);
/* Launches on several devices in one call; all streams get work. */
void hook_launch_each(struct call *c, hipError_t r, hipLaunchParams *list, int count);
void hook_launch_functions(struct call *c, hipError_t r, hipFunctionLaunchParams *list,
                           unsigned count);
/* hipConfigureCall ... hipLaunchByPtr: the configuration of the launch to come. */
void hook_configure(hipStream_t stream);
struct hook_work hook_launch_configured(struct call *c, const void *function);

/* Anything else that queues work on a stream: recorded as a plain call. */
struct hook_work hook_queue(struct call *c, const void *a, uint64_t b, struct order_stream *stream);

/* A copy, and the memory of its two sides that the host reaches; returns how many. */
unsigned hook_copy_uses(struct audit_host_use out[2], const void *dst, size_t dst_bytes,
                        const void *src, size_t src_bytes, hipMemcpyKind kind);
/* The present operation uses this too. */
void hook_note_host_use(struct hook_work *w, const struct audit_host_use *use);

/* The second half of all of them. */
void hook_worked(struct call *c, hipError_t r, const struct hook_work *w);

/* A host node that is added by hand: the graph gets a function of ours that calls the program's and
 * records when it runs. It is never freed, because graphs are copied and instantiated without
 * notice. Reading the node's parameters gives back the program's. */
struct hook_host_node {
    const hipHostNodeParams *asked; /* may be NULL */
    hipHostNodeParams given;
};
void hook_host_node(struct hook_host_node *w, const hipHostNodeParams **params);
void hook_host_node_added(hipError_t r, struct hook_host_node *w, uint64_t seq);
void hook_host_node_read(hipError_t r, hipHostNodeParams *params);

/* Host functions: replaces the program's function and data by ones that record its run. */
struct hook_work hook_host_fn(struct call *c, hipHostFn_t *fn, void **data,
                              struct order_stream *stream);
struct hook_work hook_callback(struct call *c, hipStreamCallback_t *fn, void **data,
                               struct order_stream *stream);
void hook_host_queued(struct call *c, hipError_t r, const struct hook_work *w, void *data);

/* ---- hooks_order.c --------------------------------------------------------------------------- */

void hook_stream_created(struct call *c, hipError_t r, const hipStream_t *stream, unsigned flags,
                         int priority);
struct order_stream *hook_stream_destroy(struct call *c, hipStream_t stream);
void hook_stream_destroyed(struct call *c, hipError_t r, struct order_stream *s);

/* A wait of the host: for a stream, or for a device. */
struct hook_sync {
    struct order_stream *stream;
    uint64_t mark;
    struct wait_list others;
};
struct hook_sync hook_sync_stream(struct call *c, struct order_stream *s, unsigned scope);
struct hook_sync hook_sync_device(struct call *c);
void hook_synced(struct call *c, hipError_t r, const struct hook_sync *s);

/* What a query answers that got r from the runtime: r, or "not ready", as if the work took longer.
 */
hipError_t hook_stream_answer(const struct call *c, hipError_t r, const struct order_stream *s);
hipError_t hook_event_answer(const struct call *c, hipError_t r, hipEvent_t event);

void hook_event_created(struct call *c, hipError_t r, const hipEvent_t *event, unsigned flags);
void hook_event_destroy(struct call *c, hipEvent_t event);
uint64_t hook_event_record(struct call *c, hipEvent_t event, struct order_stream *s);
void hook_event_recorded(struct call *c, hipError_t r, hipEvent_t event, struct order_stream *s,
                         uint64_t mark);
/* A launch that records events of its own: with start before it begins, with stop when it is over.
 */
void hook_event_beside(const struct call *c, hipError_t r, hipEvent_t event,
                       struct order_stream *s);
void hook_event_wait(struct call *c, hipEvent_t event, struct order_stream *s);
void hook_event_waited(struct call *c, hipError_t r, hipEvent_t event, struct order_stream *s);
void hook_event_sync(struct call *c, hipEvent_t event, unsigned wait);
void hook_event_synced(struct call *c, hipError_t r, hipEvent_t event);

/* ---- hooks_device.c -------------------------------------------------------------------------- */

void hook_set_device(struct call *c, int device);
void hook_device_set(struct call *c, hipError_t r, int device);
/* The context changed: the runtime must be asked for the current device. */
void hook_device_unknown(void);
int hook_reset(struct call *c, int device);
void hook_was_reset(struct call *c, hipError_t r, int device);
void hook_error_read(struct call *c, hipError_t r, bool clears);

/* ---- hooks_code.c ---------------------------------------------------------------------------- */

void hook_module_loaded(struct call *c, hipError_t r, const void *module, const void *image,
                        const char *file);
void hook_fatbin(const void *handle, const void *wrapper);
void hook_fatbin_gone(const void *handle);
void hook_module_unload(struct call *c, const void *module);
void hook_module_unloaded(struct call *c, hipError_t r, const void *module);
void hook_function(struct call *c, hipError_t r, const void *function, const void *module,
                   const char *name);
void hook_function_of_symbol(struct call *c, hipError_t r, const void *function,
                             const void *symbol);
void hook_global(struct call *c, hipError_t r, const void *ptr, size_t bytes, const void *module,
                 const char *name);
/* A symbol that a copy names, if it is not known yet: its size is what the copy is measured by. */
void hook_symbol_found(const void *ptr, const void *symbol);
void hook_symbol_address(struct call *c, hipError_t r, const void *ptr, const void *symbol);

/* ---- hooks_graph.c --------------------------------------------------------------------------- */

void hook_capture_begin(struct call *c, struct order_stream *s, hipStreamCaptureMode mode);
void hook_capture_begun(struct call *c, hipError_t r, struct order_stream *s);
void hook_capture_end(struct call *c, struct order_stream *s);
void hook_capture_ended(struct call *c, hipError_t r, struct order_stream *s,
                        const hipGraph_t *graph);
/* An event of that kind about a graph; made: what the call brings into being, stored at its end. */
void hook_graph(struct call *c, enum event_kind kind, const void *dst, const void *src,
                const void *node);
void hook_graph_done(struct call *c, hipError_t r, const void *made);
/* The same where memory that the graph's operations use goes along: to what is made of it, or away
 * with it. */
void hook_graph_made_of(struct call *c, hipError_t r, const void *made, const void *from);
void hook_graph_updated(struct call *c, hipError_t r, const void *exec, const void *from);
void hook_graph_destroyed(struct call *c, hipError_t r, const void *graph);
struct hook_work hook_graph_launch(struct call *c, hipGraphExec_t exec, struct order_stream *s);

/* Dependencies were added: events of their own follow the call's. */
void hook_graph_edges(struct call *c, hipError_t r, hipGraph_t graph, const hipGraphNode_t *from,
                      const hipGraphNode_t *to, size_t count);

/* A node was added to a graph by hand. */
struct hook_node {
    const hipGraphNode_t *node;
    hipGraph_t graph;
    const hipGraphNode_t *needs;
    size_t count;
};
static inline struct hook_node hook_node(const hipGraphNode_t *node, hipGraph_t graph,
                                         const hipGraphNode_t *needs, size_t count) {
    return (struct hook_node){ node, graph, needs, count };
}
void hook_node_plain(struct call *c, hipError_t r, const struct hook_node *n);
/* kind: what it does with the event. */
void hook_node_event(struct call *c, hipError_t r, const struct hook_node *n, enum event_kind kind,
                     hipEvent_t event);
void hook_node_child(struct call *c, hipError_t r, const struct hook_node *n, const void *child);
void hook_node_kernel(struct call *c, hipError_t r, const struct hook_node *n,
                      const hipKernelNodeParams *p);
void hook_node_copy(struct call *c, hipError_t r, const struct hook_node *n, const void *dst,
                    const void *src, size_t bytes, hipMemcpyKind kind);
void hook_node_copy3d(struct call *c, hipError_t r, const struct hook_node *n,
                      const hipMemcpy3DParms *p);
void hook_node_set(struct call *c, hipError_t r, const struct hook_node *n,
                   const hipMemsetParams *p);
/* A node got other parameters: the operation follows as a captured event. graph: executable or
 * not; NULL: whichever the node is of. */
void hook_node_kernel_set(struct call *c, hipError_t r, const hipKernelNodeParams *p);
void hook_node_copy_set(struct call *c, hipError_t r, const void *graph, const void *dst,
                        const void *src, size_t bytes, hipMemcpyKind kind);
void hook_node_copy3d_set(struct call *c, hipError_t r, const void *graph,
                          const hipMemcpy3DParms *p);
void hook_node_set_set(struct call *c, hipError_t r, const hipMemsetParams *p);
/* All nodes of a graph were asked for, in the order in which they were added. */
void hook_graph_nodes(struct call *c, hipError_t r, hipGraph_t graph, const hipGraphNode_t *nodes,
                      const size_t *count);
struct hook_host_node;
void hook_node_host(struct call *c, hipError_t r, const struct hook_node *n,
                    struct hook_host_node *w);
void hook_node_host_set(struct call *c, hipError_t r, struct hook_host_node *w);
/* Memory that every launch of the graph allocates at the same address, and frees. */
void hook_node_alloc(struct call *c, hipError_t r, const struct hook_node *n,
                     const hipMemAllocNodeParams *p);
void hook_node_free(struct call *c, hipError_t r, const struct hook_node *n, const void *ptr);

#endif
