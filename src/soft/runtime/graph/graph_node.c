/* graph_node.c - adding nodes to graphs, and changing nodes of graphs and executable graphs. */
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/runtime.h"

/* ---- adding -------------------------------------------------------------------------------- */

/* Nodes of g, none twice. */
static hipError_t read_dependencies(const struct graph *g, const hipGraphNode_t *from, size_t count,
                                    struct node_list *out) {
    for (size_t i = 0; i < count; i++) {
        struct graph_node *n = soft_node_of(from[i]);
        if (!n || n->graph != g || node_list_has(out, n))
            return hipErrorInvalidValue;
        if (!node_list_add(out, n))
            return hipErrorOutOfMemory;
    }
    return hipSuccess;
}

static bool bad_target(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *dependencies,
                       size_t count) {
    return !out || !graph || (count && !dependencies);
}

/* Adds what `planned` says went well; the plan is used up in any case. */
static hipError_t add(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *dependencies,
                      size_t count, hipError_t planned, struct node_plan *plan) {
    if (planned != hipSuccess) {
        soft_plan_drop(plan);
        return planned;
    }
    struct node_list list = { 0 };
    struct graph_node *n = NULL;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    hipError_t r = g ? read_dependencies(g, dependencies, count, &list) : hipErrorInvalidValue;
    if (r == hipSuccess) {
        n = soft_node_new(g, plan->type, NULL, &list);
        r = n ? hipSuccess : hipErrorOutOfMemory;
    }
    if (n) {
        n->manual = true;
        soft_plan_apply(plan, n);
        *out = (hipGraphNode_t)n;
    }
    soft_graph_unlock();
    node_list_clear(&list);
    soft_plan_drop(plan);
    return r;
}

/* Defines hipGraphAdd<name>, whose parameters after the usual four are in the argument list;
 * `planned` makes the plan of them. */
#define ADD(name, planned, ...)                                                                    \
    hipError_t soft_hipGraphAdd##name(hipGraphNode_t *node, hipGraph_t graph,                      \
                                      const hipGraphNode_t *after, size_t edges, __VA_ARGS__) {    \
        struct node_plan plan;                                                                     \
        if (bad_target(node, graph, after, edges))                                                 \
            return hipErrorInvalidValue;                                                           \
        hipError_t r = planned;                                                                    \
        return add(node, graph, after, edges, r, &plan);                                           \
    }

ADD(KernelNode, soft_plan_kernel(&plan, p), const hipKernelNodeParams *p)
ADD(MemcpyNode, soft_plan_memcpy(&plan, p), const hipMemcpy3DParms *p)
ADD(MemcpyNode1D, soft_plan_memcpy_1d(&plan, dst, src, count, kind), void *dst, const void *src,
    size_t count, hipMemcpyKind kind)
ADD(MemcpyNodeFromSymbol, soft_plan_from_symbol(&plan, dst, symbol, count, offset, kind), void *dst,
    const void *symbol, size_t count, size_t offset, hipMemcpyKind kind)
ADD(MemcpyNodeToSymbol, soft_plan_to_symbol(&plan, symbol, src, count, offset, kind),
    const void *symbol, const void *src, size_t count, size_t offset, hipMemcpyKind kind)
ADD(MemsetNode, soft_plan_memset(&plan, p), const hipMemsetParams *p)
ADD(HostNode, soft_plan_host(&plan, p), const hipHostNodeParams *p)
ADD(MemAllocNode, soft_plan_alloc(&plan, p), hipMemAllocNodeParams *p)
ADD(MemFreeNode, soft_plan_free(&plan, dev_ptr), void *dev_ptr)
ADD(Node, soft_plan_any(&plan, p), hipGraphNodeParams *p)

hipError_t soft_hipGraphAddEmptyNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                     const hipGraphNode_t *pDependencies, size_t numDependencies) {
    struct node_plan plan = { .type = hipGraphNodeTypeEmpty };
    if (bad_target(pGraphNode, graph, pDependencies, numDependencies))
        return hipErrorInvalidValue;
    return add(pGraphNode, graph, pDependencies, numDependencies, hipSuccess, &plan);
}

hipError_t soft_hipDrvGraphAddMemFreeNode(hipGraphNode_t *phGraphNode, hipGraph_t hGraph,
                                          const hipGraphNode_t *dependencies,
                                          size_t numDependencies, hipDeviceptr_t dptr) {
    return soft_hipGraphAddMemFreeNode(phGraphNode, hGraph, dependencies, numDependencies, dptr);
}

hipError_t soft_hipGraphAddChildGraphNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                          const hipGraphNode_t *pDependencies,
                                          size_t numDependencies, hipGraph_t childGraph) {
    hipGraphNodeParams p = { .type = hipGraphNodeTypeGraph, .graph = { childGraph } };
    return soft_hipGraphAddNode(pGraphNode, graph, pDependencies, numDependencies, &p);
}

hipError_t soft_hipGraphAddEventRecordNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                           const hipGraphNode_t *pDependencies,
                                           size_t numDependencies, hipEvent_t event) {
    hipGraphNodeParams p = { .type = hipGraphNodeTypeEventRecord, .eventRecord = { event } };
    return soft_hipGraphAddNode(pGraphNode, graph, pDependencies, numDependencies, &p);
}

hipError_t soft_hipGraphAddEventWaitNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                         const hipGraphNode_t *pDependencies,
                                         size_t numDependencies, hipEvent_t event) {
    hipGraphNodeParams p = { .type = hipGraphNodeTypeWaitEvent, .eventWait = { event } };
    return soft_hipGraphAddNode(pGraphNode, graph, pDependencies, numDependencies, &p);
}

/* ---- changing ------------------------------------------------------------------------------ */

/* Whose node is changed: a graph's own, or an executable graph's copy of it. */
struct target {
    bool in_exec;
    hipGraphExec_t exec;
    hipGraphNode_t node;
};

static struct target graph_target(hipGraphNode_t node) {
    return (struct target){ .node = node };
}

static struct target exec_target(hipGraphExec_t exec, hipGraphNode_t node) {
    return (struct target){ .in_exec = true, .exec = exec, .node = node };
}

static struct graph_node *find(const struct target *t) {
    struct graph_node *n = soft_node_of(t->node);
    if (!n || !t->in_exec)
        return n;
    struct graph_exec *x = soft_exec_of(t->exec);
    return x ? soft_exec_node(x, n) : NULL;
}

static hipError_t change(struct target t, hipError_t planned, struct node_plan *plan) {
    if (planned != hipSuccess) {
        soft_plan_drop(plan);
        return planned;
    }
    soft_graph_lock();
    struct graph_node *n = find(&t);
    bool fits = n && n->type == plan->type;
    if (fits)
        soft_plan_apply(plan, n);
    soft_graph_unlock();
    soft_plan_drop(plan);
    return fits ? hipSuccess : hipErrorInvalidValue;
}

/* Defines hipGraph<name> for a graph's node, and hipGraphExec<name> for an executable graph's copy
 * of it. */
#define SET_BOTH(name, planned, ...)                                                               \
    SET_GRAPH(name, planned, __VA_ARGS__)                                                          \
    SET_EXEC(name, planned, __VA_ARGS__)
#define SET_GRAPH(name, planned, ...)                                                              \
    hipError_t soft_hipGraph##name(hipGraphNode_t node, __VA_ARGS__) {                             \
        struct node_plan plan;                                                                     \
        hipError_t r = planned;                                                                    \
        return change(graph_target(node), r, &plan);                                               \
    }
#define SET_EXEC(name, planned, ...)                                                               \
    hipError_t soft_hipGraphExec##name(hipGraphExec_t exec, hipGraphNode_t node, __VA_ARGS__) {    \
        struct node_plan plan;                                                                     \
        hipError_t r = planned;                                                                    \
        return change(exec_target(exec, node), r, &plan);                                          \
    }

SET_BOTH(KernelNodeSetParams, soft_plan_kernel(&plan, p), const hipKernelNodeParams *p)
SET_GRAPH(MemcpyNodeSetParams, soft_plan_memcpy(&plan, p), const hipMemcpy3DParms *p)
SET_EXEC(MemcpyNodeSetParams, soft_plan_memcpy(&plan, p), hipMemcpy3DParms *p)
SET_BOTH(MemcpyNodeSetParams1D, soft_plan_memcpy_1d(&plan, dst, src, count, kind), void *dst,
         const void *src, size_t count, hipMemcpyKind kind)
SET_BOTH(MemcpyNodeSetParamsFromSymbol,
         soft_plan_from_symbol(&plan, dst, symbol, count, offset, kind), void *dst,
         const void *symbol, size_t count, size_t offset, hipMemcpyKind kind)
SET_BOTH(MemcpyNodeSetParamsToSymbol, soft_plan_to_symbol(&plan, symbol, src, count, offset, kind),
         const void *symbol, const void *src, size_t count, size_t offset, hipMemcpyKind kind)
SET_BOTH(MemsetNodeSetParams, soft_plan_memset(&plan, p), const hipMemsetParams *p)
SET_BOTH(HostNodeSetParams, soft_plan_host(&plan, p), const hipHostNodeParams *p)
SET_BOTH(EventRecordNodeSetEvent, soft_plan_event(&plan, hipGraphNodeTypeEventRecord, event),
         hipEvent_t event)
SET_BOTH(EventWaitNodeSetEvent, soft_plan_event(&plan, hipGraphNodeTypeWaitEvent, event),
         hipEvent_t event)

/* A child graph belongs to its node and is changed node by node, not as a whole. */
hipError_t soft_hipGraphNodeSetParams(hipGraphNode_t node, hipGraphNodeParams *nodeParams) {
    if (nodeParams && nodeParams->type == hipGraphNodeTypeGraph)
        return hipErrorNotSupported;
    struct node_plan plan;
    hipError_t r = soft_plan_any(&plan, nodeParams);
    return change(graph_target(node), r, &plan);
}

hipError_t soft_hipGraphExecNodeSetParams(hipGraphExec_t graphExec, hipGraphNode_t node,
                                          hipGraphNodeParams *nodeParams) {
    if (nodeParams && nodeParams->type == hipGraphNodeTypeGraph)
        return soft_hipGraphExecChildGraphNodeSetParams(graphExec, node, nodeParams->graph.graph);
    struct node_plan plan;
    hipError_t r = soft_plan_any(&plan, nodeParams);
    return change(exec_target(graphExec, node), r, &plan);
}

/* ---- enabling ------------------------------------------------------------------------------ */

static bool can_disable(const struct graph_node *n) {
    return n->type == hipGraphNodeTypeKernel || n->type == hipGraphNodeTypeMemcpy ||
           n->type == hipGraphNodeTypeMemset;
}

hipError_t soft_hipGraphNodeSetEnabled(hipGraphExec_t hGraphExec, hipGraphNode_t hNode,
                                       unsigned int isEnabled) {
    struct target t = exec_target(hGraphExec, hNode);
    soft_graph_lock();
    struct graph_node *n = find(&t);
    bool can = n && can_disable(n);
    if (can) {
        n->disabled = !isEnabled;
        soft_graph_changed();
    }
    soft_graph_unlock();
    return can ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphNodeGetEnabled(hipGraphExec_t hGraphExec, hipGraphNode_t hNode,
                                       unsigned int *isEnabled) {
    if (!isEnabled)
        return hipErrorInvalidValue;
    struct target t = exec_target(hGraphExec, hNode);
    soft_graph_lock();
    struct graph_node *n = find(&t);
    bool can = n && can_disable(n);
    if (can)
        *isEnabled = !n->disabled;
    soft_graph_unlock();
    return can ? hipSuccess : hipErrorInvalidValue;
}
