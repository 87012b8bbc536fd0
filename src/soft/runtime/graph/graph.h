/* graph.h - shared by graph*.c and capture.c: graphs as lists of operations with dependencies.
 *
 * A node keeps an operation (struct soft_op) as a template; a launch queues copies of it, so that a
 * graph may be changed or destroyed while launches of it are under way. An executable graph is a
 * deep copy of the graph it was made from, each node knowing its origin.
 *
 * One lock guards all graphs, executable graphs and captures. It comes before the scheduler's lock
 * and is never held while an operation runs or is waited for. Functions here that say nothing about
 * the lock want it held. */
#ifndef SOFT_RUNTIME_GRAPH_H
#define SOFT_RUNTIME_GRAPH_H

#include "hip/hip_types.h"
#include "soft/runtime/event.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/op.h"
#include "soft/runtime/stream.h"

struct graph_node;

struct node_list {
    struct graph_node **at;
    size_t count, room;
};

bool node_list_add(struct node_list *list, struct graph_node *node); /* false: no memory */
bool node_list_has(const struct node_list *list, const struct graph_node *node);
bool node_list_copy(struct node_list *to, const struct node_list *from); /* replaces what to has */
void node_list_clear(struct node_list *list);

struct graph {
    struct soft_handle handle;
    struct node_list nodes;       /* in order of creation */
    struct graph_node *owner;     /* the child graph node this graph belongs to, or NULL */
    struct graph *origin;         /* hipGraphClone: of which graph */
    struct soft_capture *capture; /* being captured into */
    struct graph_keep *keeps;     /* user objects, graph_object.c */
    size_t left;                  /* graph_exec.c: nodes not yet placed */
};

enum { GRAPH_ATTRIBUTES = 3 };

struct graph_node {
    struct soft_handle handle;
    struct graph *graph;
    hipGraphNodeType type;
    struct node_list dependencies, dependents;
    struct soft_op *op;        /* kernel, memcpy, memset, host; else NULL */
    struct graph *child;       /* hipGraphNodeTypeGraph: own copy */
    struct soft_event *event;  /* event record and wait */
    struct graph_node *origin; /* what this one was copied from */
    bool manual;               /* added through the graph API, not by capture */
    bool disabled;             /* executable graphs: hipGraphNodeSetEnabled */
    /* What GetParams must give back and the operation does not hold. */
    void *function;       /* kernel: as the program named it */
    hipMemcpyKind kind;   /* memcpy */
    hipMemcpy3DParms box; /* memcpy: as given, with arrays and positions; extent 0: not that way */
    void **kernel_params; /* kernel: pointers into op->data, made on demand */
    struct {
        bool set;
        hipKernelNodeAttrValue value;
    } attributes[GRAPH_ATTRIBUTES];
    /* graph_exec.c: while the order is found */
    size_t number, pending;
};

/* ---- graph_table.c ------------------------------------------------------------------------- */

/* Makes room for graphs; called once, at the start. */
void soft_graph_prepare(void);

void soft_graph_lock(void);
void soft_graph_unlock(void);
/* Calls destroy(data) once the lock is free. */
void soft_graph_doom(hipHostFn_t destroy, void *data);

/* The object behind a handle; NULL if it is none, or destroyed. */
struct graph *soft_graph_of(hipGraph_t handle);
struct graph_node *soft_node_of(hipGraphNode_t handle);

/* Objects that are zero but for their handle; NULL: no memory. */
struct graph *soft_graph_table_graph(void);
struct graph_node *soft_graph_table_node(void);
void soft_graph_table_free_graph(struct graph *graph);
void soft_graph_table_free_node(struct graph_node *node);

/* ---- graph.c ------------------------------------------------------------------------------- */

struct graph *soft_graph_new(void); /* NULL: no memory */
void soft_graph_free(struct graph *graph);
/* A copy of from; NULL: no memory. */
struct graph *soft_graph_copy(const struct graph *from);

/* A new node after dependencies, which are nodes of the same graph without repetition (the caller
 * has checked). NULL: no memory; op is the caller's then, else the node's. */
struct graph_node *soft_node_new(struct graph *graph, hipGraphNodeType type, struct soft_op *op,
                                 const struct node_list *dependencies);
/* Another operation for the node. */
void soft_node_set_op(struct graph_node *node, struct soft_op *op);
/* Another number whenever an operation of some node, or whether it is enabled, has changed. */
uint64_t soft_graph_changes(void);
void soft_graph_changed(void);

/* ---- graph_node.c: parameters to operations ------------------------------------------------- */

/* What a node's parameters become. op NULL: the type has none. */
struct node_plan {
    hipGraphNodeType type;
    struct soft_op *op;
    void *function;
    hipMemcpyKind kind;
    hipMemcpy3DParms box;
    struct soft_event *event;
    struct graph *child; /* a copy */
};

/* Check parameters as HIP does when a node is added; the lock is not needed. On success the plan
 * owns what it holds. */
hipError_t soft_plan_kernel(struct node_plan *plan, const hipKernelNodeParams *params);
hipError_t soft_plan_memcpy(struct node_plan *plan, const hipMemcpy3DParms *params);
hipError_t soft_plan_memcpy_1d(struct node_plan *plan, void *dst, const void *src, size_t count,
                               hipMemcpyKind kind);
hipError_t soft_plan_to_symbol(struct node_plan *plan, const void *symbol, const void *src,
                               size_t count, size_t offset, hipMemcpyKind kind);
hipError_t soft_plan_from_symbol(struct node_plan *plan, void *dst, const void *symbol,
                                 size_t count, size_t offset, hipMemcpyKind kind);
hipError_t soft_plan_memset(struct node_plan *plan, const hipMemsetParams *params);
hipError_t soft_plan_host(struct node_plan *plan, const hipHostNodeParams *params);
hipError_t soft_plan_event(struct node_plan *plan, hipGraphNodeType type, hipEvent_t event);
/* Memory of the graph: where it is goes into params->dptr. */
hipError_t soft_plan_alloc(struct node_plan *plan, hipMemAllocNodeParams *params);
hipError_t soft_plan_free(struct node_plan *plan, void *ptr);
/* From the union of hipGraphAddNode. */
hipError_t soft_plan_any(struct node_plan *plan, hipGraphNodeParams *params);
void soft_plan_drop(struct node_plan *plan);

/* False if the module of a kernel node's function was unloaded. Its handle may have been given to
 * another function since, which then has another name. */
bool soft_launch_is_alive(const struct soft_op *op);

/* Puts a plan into a node of the same type and empties it. */
void soft_plan_apply(struct node_plan *plan, struct graph_node *node);

/* ---- graph_exec.c -------------------------------------------------------------------------- */

struct graph_exec {
    struct soft_handle handle;
    struct graph *graph;      /* own copy */
    struct node_list order;   /* leaves in the order of a launch; random: any valid one */
    struct soft_piece *piece; /* the same as one operation; NULL: not made, or not possible */
    uint64_t changes;         /* soft_graph_changes() when that was decided; 0: it was not */
    unsigned long long flags;
    struct soft_dep last; /* its last launch, which the next one waits for; stream NULL: none */
};

struct graph_exec *soft_exec_of(hipGraphExec_t handle);
/* The node of an executable graph that was made from original; NULL if none. */
struct graph_node *soft_exec_node(const struct graph_exec *exec, const struct graph_node *original);

/* ---- capture.c ------------------------------------------------------------------------------ */

/* A launch of graph into a capturing stream: a child graph node. */
hipError_t soft_capture_add_graph(struct soft_stream *stream, const struct graph *graph);

/* ---- graph_object.c: user objects ------------------------------------------------------------ */

void soft_graph_keep_copy(struct graph *to, const struct graph *from); /* shares the references */
void soft_graph_keep_drop(struct graph *graph);                        /* gives them back */

#endif
