/* graph.c - graphs, their nodes and edges. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/start.h"

/* ---- lists --------------------------------------------------------------------------------- */

bool node_list_add(struct node_list *list, struct graph_node *node) {
    struct graph_node **more = grow_array(list->at, &list->room, list->count, sizeof *more);
    if (!more)
        return false;
    list->at = more;
    list->at[list->count++] = node;
    return true;
}

static size_t index_of(const struct node_list *list, const struct graph_node *node) {
    size_t i = 0;
    while (i < list->count && list->at[i] != node)
        i++;
    return i;
}

bool node_list_has(const struct node_list *list, const struct graph_node *node) {
    return index_of(list, node) < list->count;
}

/* Keeps the order. */
static bool node_list_remove(struct node_list *list, const struct graph_node *node) {
    size_t i = index_of(list, node);
    if (i == list->count)
        return false;
    memmove(&list->at[i], &list->at[i + 1], (list->count - i - 1) * sizeof *list->at);
    list->count--;
    return true;
}

bool node_list_copy(struct node_list *to, const struct node_list *from) {
    struct node_list copy = { 0 };
    for (size_t i = 0; i < from->count; i++)
        if (!node_list_add(&copy, from->at[i])) {
            node_list_clear(&copy);
            return false;
        }
    node_list_clear(to);
    *to = copy;
    return true;
}

void node_list_clear(struct node_list *list) {
    free(list->at);
    *list = (struct node_list){ 0 };
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Adds an edge; false without memory. */
static bool link_nodes(struct graph_node *from, struct graph_node *to) {
    if (!node_list_add(&from->dependents, to))
        return false;
    if (node_list_add(&to->dependencies, from))
        return true;
    from->dependents.count--;
    return false;
}

static uint64_t changes = 1; /* under the lock */

uint64_t soft_graph_changes(void) {
    return changes;
}
void soft_graph_changed(void) {
    changes++;
}

void soft_node_set_op(struct graph_node *n, struct soft_op *op) {
    soft_graph_changed();
    if (n->op)
        soft_op_free(n->op);
    n->op = op;
    free(n->kernel_params);
    n->kernel_params = NULL;
}

/* Unlinks it, too. */
static void free_node(struct graph_node *n) {
    for (size_t i = 0; i < n->dependencies.count; i++)
        node_list_remove(&n->dependencies.at[i]->dependents, n);
    for (size_t i = 0; i < n->dependents.count; i++)
        node_list_remove(&n->dependents.at[i]->dependencies, n);
    node_list_remove(&n->graph->nodes, n);
    node_list_clear(&n->dependencies);
    node_list_clear(&n->dependents);
    soft_node_set_op(n, NULL);
    if (n->child)
        soft_graph_free(n->child);
    soft_graph_table_free_node(n);
}

struct graph_node *soft_node_new(struct graph *graph, hipGraphNodeType type, struct soft_op *op,
                                 const struct node_list *dependencies) {
    struct graph_node *n = soft_graph_table_node();
    if (!n)
        return NULL;
    n->graph = graph;
    n->type = type;
    bool added = node_list_add(&graph->nodes, n);
    bool linked = added;
    for (size_t i = 0; linked && dependencies && i < dependencies->count; i++)
        linked = link_nodes(dependencies->at[i], n);
    if (!linked) {
        free_node(n);
        return NULL;
    }
    n->op = op;
    return n;
}

/* ---- graphs -------------------------------------------------------------------------------- */

struct graph *soft_graph_new(void) {
    return soft_graph_table_graph();
}

/* Edges are not unlinked one by one: both ends go. */
void soft_graph_free(struct graph *g) {
    for (size_t i = 0; i < g->nodes.count; i++) {
        struct graph_node *n = g->nodes.at[i];
        node_list_clear(&n->dependencies);
        node_list_clear(&n->dependents);
        soft_node_set_op(n, NULL);
        if (n->child)
            soft_graph_free(n->child);
        soft_graph_table_free_node(n);
    }
    node_list_clear(&g->nodes);
    soft_graph_keep_drop(g);
    soft_graph_table_free_graph(g);
}

/* The payload of one node; edges come later. NULL: no memory. */
static struct graph_node *copy_node(struct graph *to, struct graph_node *from) {
    struct soft_op *op = from->op ? soft_op_clone(from->op) : NULL;
    if (from->op && !op)
        return NULL;
    struct graph_node *n = soft_node_new(to, from->type, op, NULL);
    if (!n) {
        if (op)
            soft_op_free(op);
        return NULL;
    }
    n->event = from->event;
    n->origin = from;
    n->manual = from->manual;
    n->disabled = from->disabled;
    n->function = from->function;
    n->box = from->box;
    n->kind = from->kind;
    memcpy(n->attributes, from->attributes, sizeof n->attributes);
    if (from->child) {
        n->child = soft_graph_copy(from->child);
        if (!n->child)
            return NULL;
        n->child->owner = n;
    }
    return n;
}

/* `number` is scratch: where in the list a node is. */
static bool copy_edges(struct graph *to, const struct graph *from) {
    for (size_t i = 0; i < from->nodes.count; i++)
        from->nodes.at[i]->number = i;
    for (size_t i = 0; i < from->nodes.count; i++) {
        const struct node_list *deps = &from->nodes.at[i]->dependencies;
        for (size_t d = 0; d < deps->count; d++)
            if (!link_nodes(to->nodes.at[deps->at[d]->number], to->nodes.at[i]))
                return false;
    }
    return true;
}

struct graph *soft_graph_copy(const struct graph *from) {
    struct graph *g = soft_graph_new();
    if (!g)
        return NULL;
    bool good = true;
    for (size_t i = 0; good && i < from->nodes.count; i++)
        good = copy_node(g, from->nodes.at[i]) != NULL;
    if (!good || !copy_edges(g, from)) {
        soft_graph_free(g);
        return NULL;
    }
    soft_graph_keep_copy(g, from);
    return g;
}

/* ---- HIP: graphs --------------------------------------------------------------------------- */

hipError_t soft_hipGraphCreate(hipGraph_t *pGraph, unsigned int flags) {
    if (!pGraph || flags)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_new();
    soft_graph_unlock();
    *pGraph = (hipGraph_t)g;
    return g ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t soft_hipGraphDestroy(hipGraph_t graph) {
    if (!graph)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    /* A child graph belongs to its node, a graph under capture to the capture. */
    bool own = g && !g->owner && !g->capture;
    if (own)
        soft_graph_free(g);
    soft_graph_unlock();
    return own ? hipSuccess : hipErrorIllegalState;
}

hipError_t soft_hipGraphClone(hipGraph_t *pGraphClone, hipGraph_t originalGraph) {
    if (!pGraphClone || !originalGraph)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *from = soft_graph_of(originalGraph);
    struct graph *g = from ? soft_graph_copy(from) : NULL;
    if (g)
        g->origin = from;
    soft_graph_unlock();
    if (g)
        *pGraphClone = (hipGraph_t)g;
    return g ? hipSuccess : from ? hipErrorOutOfMemory : hipErrorInvalidValue;
}

hipError_t soft_hipGraphNodeFindInClone(hipGraphNode_t *pNode, hipGraphNode_t originalNode,
                                        hipGraph_t clonedGraph) {
    if (!pNode || !originalNode || !clonedGraph)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(clonedGraph);
    struct graph_node *original = soft_node_of(originalNode), *found = NULL;
    bool related = g && original && g->origin == original->graph;
    for (size_t i = 0; related && i < g->nodes.count && !found; i++)
        if (g->nodes.at[i]->origin == original)
            found = g->nodes.at[i];
    soft_graph_unlock();
    if (found)
        *pNode = (hipGraphNode_t)found;
    return found ? hipSuccess : hipErrorInvalidValue;
}

/* ---- HIP: edges ---------------------------------------------------------------------------- */

/* The ends of an edge that may be: two different nodes of g. */
static bool ends_of(const struct graph *g, hipGraphNode_t from, hipGraphNode_t to,
                    struct graph_node **f, struct graph_node **t) {
    *f = soft_node_of(from);
    *t = soft_node_of(to);
    return *f && *t && *f != *t && (*f)->graph == g && (*t)->graph == g;
}

/* All edges are checked before the first is changed. */
static hipError_t change_edges(hipGraph_t graph, const hipGraphNode_t *from,
                               const hipGraphNode_t *to, size_t count, bool add) {
    struct graph *g = soft_graph_of(graph);
    struct graph_node *f, *t;
    if (!g || (count && (!from || !to)))
        return hipErrorInvalidValue;
    for (size_t i = 0; i < count; i++)
        if (!ends_of(g, from[i], to[i], &f, &t) || node_list_has(&t->dependencies, f) == add)
            return hipErrorInvalidValue;
    for (size_t i = 0; i < count; i++) {
        ends_of(g, from[i], to[i], &f, &t);
        if (!add) {
            node_list_remove(&f->dependents, t);
            node_list_remove(&t->dependencies, f);
        } else if (node_list_has(&t->dependencies, f)) {
            return hipErrorInvalidValue; /* twice in this call */
        } else if (!link_nodes(f, t)) {
            return hipErrorOutOfMemory;
        }
    }
    return hipSuccess;
}

hipError_t soft_hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                        const hipGraphNode_t *to, size_t numDependencies) {
    soft_graph_lock();
    hipError_t r = change_edges(graph, from, to, numDependencies, true);
    soft_graph_unlock();
    return r;
}

hipError_t soft_hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                           const hipGraphNode_t *to, size_t numDependencies) {
    soft_graph_lock();
    hipError_t r = change_edges(graph, from, to, numDependencies, false);
    soft_graph_unlock();
    return r;
}

hipError_t soft_hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t *from, hipGraphNode_t *to,
                                 size_t *numEdges) {
    if (!numEdges || !from != !to)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    size_t n = 0, room = from ? *numEdges : 0;
    for (size_t i = 0; g && i < g->nodes.count; i++) {
        const struct node_list *out = &g->nodes.at[i]->dependents;
        for (size_t d = 0; d < out->count; d++, n++)
            if (n < room) {
                from[n] = (hipGraphNode_t)g->nodes.at[i];
                to[n] = (hipGraphNode_t)out->at[d];
            }
    }
    soft_graph_unlock();
    if (!g)
        return hipErrorInvalidValue;
    for (size_t i = n; i < room; i++)
        from[i] = to[i] = NULL;
    *numEdges = from && room < n ? room : n;
    return hipSuccess;
}

/* ---- HIP: nodes ---------------------------------------------------------------------------- */

/* HIP's way to return a list: without room only the number; else what fits, and NULL after it. */
static void give_list(const struct node_list *list, hipGraphNode_t *out, size_t *count) {
    size_t room = out ? *count : 0;
    for (size_t i = 0; i < room; i++)
        out[i] = i < list->count ? (hipGraphNode_t)list->at[i] : NULL;
    *count = out && room < list->count ? room : list->count;
}

hipError_t soft_hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *out, size_t *numNodes) {
    if (!numNodes)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    if (g)
        give_list(&g->nodes, out, numNodes);
    soft_graph_unlock();
    return g ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *pRootNodes,
                                     size_t *pNumRootNodes) {
    if (!pNumRootNodes)
        return hipErrorInvalidValue;
    struct node_list roots = { 0 };
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    bool memory = true;
    for (size_t i = 0; g && memory && i < g->nodes.count; i++)
        if (!g->nodes.at[i]->dependencies.count)
            memory = node_list_add(&roots, g->nodes.at[i]);
    if (g && memory)
        give_list(&roots, pRootNodes, pNumRootNodes);
    soft_graph_unlock();
    node_list_clear(&roots);
    return !g ? hipErrorInvalidValue : memory ? hipSuccess : hipErrorOutOfMemory;
}

/* What a node depends on, or what depends on it. */
static hipError_t give_neighbours(hipGraphNode_t node, bool dependents, hipGraphNode_t *out,
                                  size_t *count) {
    if (!count)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = soft_node_of(node);
    if (n)
        give_list(dependents ? &n->dependents : &n->dependencies, out, count);
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *pDependencies,
                                            size_t *pNumDependencies) {
    return give_neighbours(node, false, pDependencies, pNumDependencies);
}

hipError_t soft_hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t *pDependentNodes,
                                              size_t *pNumDependentNodes) {
    return give_neighbours(node, true, pDependentNodes, pNumDependentNodes);
}

/* 5.x counts the types from 1. */
hipError_t soft_hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *pType) {
    if (!pType)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph_node *n = soft_node_of(node);
    if (n)
        *pType = (hipGraphNodeType)((int)n->type + (soft_hip_major() == 5));
    soft_graph_unlock();
    return n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipGraphDestroyNode(hipGraphNode_t node) {
    soft_graph_lock();
    struct graph_node *n = soft_node_of(node);
    bool free_to_go = n && !n->graph->capture;
    if (free_to_go)
        free_node(n);
    soft_graph_unlock();
    return free_to_go ? hipSuccess : hipErrorInvalidValue;
}
