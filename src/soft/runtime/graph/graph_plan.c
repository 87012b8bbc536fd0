/* graph_plan.c - node parameters become operations, and back.
 *
 * Checked here is what HIP checks when a node is added or changed. A plan is made without the graph
 * lock and put into a node under it. */
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "soft/runtime/copy.h"
#include "soft/runtime/event.h"
#include "soft/runtime/function.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/graph_block.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/host.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"

/* A kernel node may name its kernel by host address or by hipFunction_t. */
static hipError_t find_function(void *func, struct soft_function **out) {
    if (soft_handle_valid(soft_functions(), func)) {
        *out = func;
        return hipSuccess;
    }
    return soft_function_for_host(func, out);
}

hipError_t soft_plan_kernel(struct node_plan *plan, const hipKernelNodeParams *p) {
    struct soft_function *f;
    *plan = (struct node_plan){ .type = hipGraphNodeTypeKernel };
    if (!p || !p->func)
        return hipErrorInvalidValue;
    hipError_t r = find_function(p->func, &f);
    if (r != hipSuccess)
        return r;
    plan->function = p->func;
    return soft_op_launch(&plan->op, f, (uint32_t[]){ p->gridDim.x, p->gridDim.y, p->gridDim.z },
                          (uint32_t[]){ p->blockDim.x, p->blockDim.y, p->blockDim.z },
                          p->sharedMemBytes, p->kernelParams, p->extra);
}

bool soft_launch_is_alive(const struct soft_op *op) {
    const struct soft_function *f = op->u.launch.function;
    return soft_handle_valid(soft_functions(), f) && f->name == op->what;
}

static hipError_t plan_copy(struct node_plan *plan, const struct soft_copy *copy,
                            hipMemcpyKind kind) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemcpy, .kind = kind };
    return soft_op_copy(&plan->op, "hipGraphMemcpyNode", copy, kind);
}

hipError_t soft_plan_memcpy(struct node_plan *plan, const hipMemcpy3DParms *p) {
    struct soft_copy copy;
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemcpy };
    if (!p)
        return hipErrorInvalidValue;
    hipError_t r = soft_copy_from_3d(p, &copy);
    if (r != hipSuccess)
        return r;
    if (!copy.width || !copy.height || !copy.depth)
        return hipErrorInvalidValue;
    r = plan_copy(plan, &copy, p->kind);
    plan->box = *p;
    return r;
}

hipError_t soft_plan_memcpy_1d(struct node_plan *plan, void *dst, const void *src, size_t count,
                               hipMemcpyKind kind) {
    struct soft_copy copy = { .dst = (uint64_t)(uintptr_t)dst,
                              .src = (uint64_t)(uintptr_t)src,
                              .width = count,
                              .height = 1,
                              .depth = 1,
                              .dst_pitch = count,
                              .src_pitch = count };
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemcpy };
    if (!dst || !src || !count)
        return hipErrorInvalidValue;
    return plan_copy(plan, &copy, kind);
}

hipError_t soft_plan_to_symbol(struct node_plan *plan, const void *symbol, const void *src,
                               size_t count, size_t offset, hipMemcpyKind kind) {
    uint64_t addr;
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemcpy };
    if (kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost)
        return hipErrorInvalidMemcpyDirection;
    hipError_t r = soft_symbol_range(symbol, offset, count, &addr);
    return r == hipSuccess ? soft_plan_memcpy_1d(plan, (void *)(uintptr_t)addr, src, count, kind)
                           : r;
}

hipError_t soft_plan_from_symbol(struct node_plan *plan, void *dst, const void *symbol,
                                 size_t count, size_t offset, hipMemcpyKind kind) {
    uint64_t addr;
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemcpy };
    if (kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice)
        return hipErrorInvalidMemcpyDirection;
    hipError_t r = soft_symbol_range(symbol, offset, count, &addr);
    return r == hipSuccess
               ? soft_plan_memcpy_1d(plan, dst, (const void *)(uintptr_t)addr, count, kind)
               : r;
}

hipError_t soft_plan_memset(struct node_plan *plan, const hipMemsetParams *p) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemset };
    if (!p || !p->dst || !p->width || !p->height ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return hipErrorInvalidValue;
    if (p->height > 1 && p->pitch / p->elementSize < p->width)
        return hipErrorInvalidValue;
    struct soft_fill fill = { .dst = (uint64_t)(uintptr_t)p->dst,
                              .width = p->width,
                              .height = p->height,
                              .depth = 1,
                              .pitch = p->pitch,
                              .value = p->value,
                              .element = p->elementSize };
    return soft_op_fill(&plan->op, "hipGraphMemsetNode", &fill);
}

hipError_t soft_plan_host(struct node_plan *plan, const hipHostNodeParams *p) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeHost };
    if (!p || !p->fn)
        return hipErrorInvalidValue;
    struct soft_host_call call = { .fn = p->fn, .user = p->userData };
    return soft_op_host(&plan->op, "hipGraphHostNode", &call);
}

hipError_t soft_plan_event(struct node_plan *plan, hipGraphNodeType type, hipEvent_t event) {
    *plan = (struct node_plan){ .type = type };
    if (!event || !soft_handle_valid(soft_events(), event))
        return hipErrorInvalidValue;
    plan->event = (struct soft_event *)event;
    return hipSuccess;
}

hipError_t soft_plan_alloc(struct node_plan *plan, hipMemAllocNodeParams *p) {
    struct soft_graph_block *block;
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemAlloc };
    hipError_t r = soft_graph_block_new(p, &block);
    if (r != hipSuccess)
        return r;
    p->dptr = block->params.dptr;
    return soft_op_graph_block(&plan->op, block, false);
}

hipError_t soft_plan_free(struct node_plan *plan, void *ptr) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeMemFree };
    struct soft_graph_block *block = soft_graph_block_find((uint64_t)(uintptr_t)ptr);
    return block ? soft_op_graph_block(&plan->op, block, true) : hipErrorInvalidValue;
}

static hipError_t plan_child(struct node_plan *plan, hipGraph_t child) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeGraph };
    soft_graph_lock();
    struct graph *g = soft_graph_of(child);
    plan->child = g ? soft_graph_copy(g) : NULL;
    soft_graph_unlock();
    return plan->child ? hipSuccess : g ? hipErrorOutOfMemory : hipErrorInvalidValue;
}

hipError_t soft_plan_any(struct node_plan *plan, hipGraphNodeParams *p) {
    *plan = (struct node_plan){ .type = hipGraphNodeTypeEmpty };
    if (!p)
        return hipErrorInvalidValue;
    switch (p->type) {
    case hipGraphNodeTypeKernel:
        return soft_plan_kernel(plan, &p->kernel);
    case hipGraphNodeTypeMemcpy:
        return soft_plan_memcpy(plan, &p->memcpy.copyParams);
    case hipGraphNodeTypeMemset:
        return soft_plan_memset(plan, &p->memset);
    case hipGraphNodeTypeHost:
        return soft_plan_host(plan, &p->host);
    case hipGraphNodeTypeGraph:
        return plan_child(plan, p->graph.graph);
    case hipGraphNodeTypeEmpty:
        return hipSuccess;
    case hipGraphNodeTypeWaitEvent:
        return soft_plan_event(plan, p->type, p->eventWait.event);
    case hipGraphNodeTypeEventRecord:
        return soft_plan_event(plan, p->type, p->eventRecord.event);
    case hipGraphNodeTypeMemAlloc:
        return soft_plan_alloc(plan, &p->alloc);
    case hipGraphNodeTypeMemFree:
        return soft_plan_free(plan, p->free.dptr);
    default:
        return hipErrorNotSupported;
    }
}

void soft_plan_drop(struct node_plan *plan) {
    if (plan->op)
        soft_op_free(plan->op);
    if (plan->child) {
        soft_graph_lock();
        soft_graph_free(plan->child);
        soft_graph_unlock();
    }
    *plan = (struct node_plan){ 0 };
}

void soft_plan_apply(struct node_plan *plan, struct graph_node *n) {
    if (plan->op) {
        /* Which node it is does not change with its parameters, nor when it is instantiated. */
        plan->op->node = n->op ? n->op->node : (uint64_t)(uintptr_t)n | GRETA_SOFT_NODE_ADDED;
        soft_node_set_op(n, plan->op);
    }
    n->function = plan->function;
    n->kind = plan->kind;
    n->box = plan->box;
    n->event = plan->event;
    if (plan->child) {
        if (n->child)
            soft_graph_free(n->child);
        n->child = plan->child;
        n->child->owner = n;
    }
    *plan = (struct node_plan){ 0 };
}

/* ---- and back ------------------------------------------------------------------------------ */

/* The node, if it is one of that type. */
static struct graph_node *typed(hipGraphNode_t node, hipGraphNodeType type) {
    struct graph_node *n = soft_node_of(node);
    return n && n->type == type ? n : NULL;
}

/* Where the arguments of a native kernel are in its packed ones, and of one of a code object. */
static void list_native(struct graph_node *n, const struct greta_soft_kernel *k) {
    for (uint32_t i = 0, at = 0; i < k->param_count; i++) {
        at = soft_param_offset(at, k->params[i].size);
        n->kernel_params[i] = n->op->data + at;
        at += k->params[i].size;
    }
}

static void list_machine(struct graph_node *n, const struct codeobj_kernel *k) {
    for (uint32_t i = 0; i < codeobj_explicit_count(k); i++)
        n->kernel_params[i] = n->op->data + k->arguments[i].offset;
}

/* Pointers to the node's own copies of the arguments, valid as long as its parameters. */
static bool list_params(struct graph_node *n) {
    const struct soft_function *f = n->op->u.launch.function;
    uint32_t count = f->native    ? f->native->param_count
                     : f->machine ? codeobj_explicit_count(f->machine->kernel)
                                  : 0;
    if (n->kernel_params || !count)
        return true;
    n->kernel_params = calloc(count, sizeof *n->kernel_params);
    if (!n->kernel_params)
        return false;
    if (f->native)
        list_native(n, f->native);
    else
        list_machine(n, f->machine->kernel);
    return true;
}

hipError_t soft_hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams *p) {
    if (!p)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, hipGraphNodeTypeKernel);
    if (n && !soft_launch_is_alive(n->op))
        n = NULL;
    bool listed = n && list_params(n);
    if (listed) {
        const struct soft_launch *l = &n->op->u.launch;
        *p = (hipKernelNodeParams){
            .func = n->function ? n->function : l->function,
            .gridDim = { l->grid[0], l->grid[1], l->grid[2] },
            .blockDim = { l->block[0], l->block[1], l->block[2] },
            .sharedMemBytes = l->shared_bytes,
            .kernelParams = n->kernel_params,
        };
    }
    soft_graph_unlock();
    return listed ? hipSuccess : n ? hipErrorOutOfMemory : hipErrorInvalidValue;
}

/* One side of a rectangle as hipMemcpy3D would take it. */
static hipPitchedPtr pitched(uint64_t addr, const struct soft_copy *c, size_t pitch, size_t slice) {
    if (!pitch)
        pitch = c->width;
    return (hipPitchedPtr){ .ptr = (void *)(uintptr_t)addr,
                            .pitch = pitch,
                            .xsize = c->width,
                            .ysize = slice ? slice / pitch : c->height };
}

hipError_t soft_hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms *p) {
    if (!p)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, hipGraphNodeTypeMemcpy);
    if (n) {
        const struct soft_copy *c = &n->op->u.copy;
        *p = n->box;
        if (!n->box.extent.width)
            *p = (hipMemcpy3DParms){
                .srcPtr = pitched(c->src, c, c->src_pitch, c->src_slice),
                .dstPtr = pitched(c->dst, c, c->dst_pitch, c->dst_slice),
                .extent = { c->width, c->height, c->depth },
                .kind = n->kind,
            };
    }
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams *p) {
    if (!p)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, hipGraphNodeTypeMemset);
    if (n) {
        const struct soft_fill *f = &n->op->u.fill;
        *p = (hipMemsetParams){
            .dst = (void *)(uintptr_t)f->dst,
            .elementSize = f->element,
            .height = f->height,
            .pitch = f->pitch,
            .value = f->value,
            .width = f->width,
        };
    }
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams *p) {
    if (!p)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, hipGraphNodeTypeHost);
    if (n)
        *p = (hipHostNodeParams){ .fn = n->op->u.host.fn, .userData = n->op->u.host.user };
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t get_event(hipGraphNode_t node, hipGraphNodeType type, hipEvent_t *out) {
    if (!out)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, type);
    if (n)
        *out = (hipEvent_t)n->event;
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphEventRecordNodeGetEvent(hipGraphNode_t node, hipEvent_t *event_out) {
    return get_event(node, hipGraphNodeTypeEventRecord, event_out);
}

hipError_t soft_hipGraphEventWaitNodeGetEvent(hipGraphNode_t node, hipEvent_t *event_out) {
    return get_event(node, hipGraphNodeTypeWaitEvent, event_out);
}

hipError_t soft_hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *pGraph) {
    if (!pGraph)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(node, hipGraphNodeTypeGraph);
    if (n)
        *pGraph = (hipGraph_t)n->child;
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static int attribute_slot(hipKernelNodeAttrID attr) {
    switch (attr) {
    case hipLaunchAttributeAccessPolicyWindow:
        return 0;
    case hipLaunchAttributeCooperative:
        return 1;
    case hipLaunchAttributePriority:
        return 2;
    default:
        return -1;
    }
}

hipError_t soft_hipGraphKernelNodeSetAttribute(hipGraphNode_t hNode, hipKernelNodeAttrID attr,
                                               const hipKernelNodeAttrValue *value) {
    int slot = attribute_slot(attr);
    if (!value || slot < 0)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(hNode, hipGraphNodeTypeKernel);
    if (n) {
        n->attributes[slot].set = true;
        n->attributes[slot].value = *value;
    }
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphKernelNodeGetAttribute(hipGraphNode_t hNode, hipKernelNodeAttrID attr,
                                               hipKernelNodeAttrValue *value) {
    int slot = attribute_slot(attr);
    if (!value || slot < 0)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = typed(hNode, hipGraphNodeTypeKernel);
    if (n && n->attributes[slot].set)
        *value = n->attributes[slot].value;
    else if (n)
        memset(value, 0, sizeof *value);
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphKernelNodeCopyAttributes(hipGraphNode_t hSrc, hipGraphNode_t hDst) {
    soft_graph_lock();
    struct graph_node *from = typed(hSrc, hipGraphNodeTypeKernel);
    struct graph_node *to = typed(hDst, hipGraphNodeTypeKernel);
    if (from && to)
        memmove(to->attributes, from->attributes, sizeof to->attributes);
    soft_graph_unlock();
    return from && to ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphMemAllocNodeGetParams(hipGraphNode_t node, hipMemAllocNodeParams *p) {
    if (!p)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = soft_node_of(node);
    bool good = n && n->type == hipGraphNodeTypeMemAlloc;
    if (good)
        *p = n->op->u.graph_block->params;
    soft_graph_unlock();
    return good ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void *dev_ptr) {
    if (!dev_ptr)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = soft_node_of(node);
    bool good = n && n->type == hipGraphNodeTypeMemFree;
    if (good)
        *(void **)dev_ptr = n->op->u.graph_block->params.dptr;
    soft_graph_unlock();
    return good ? hipSuccess : hipErrorInvalidValue;
}
