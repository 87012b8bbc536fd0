/* graph_table.c - the lock of all graphs, the handles of graphs and nodes, and destructors that
 * wait until the lock is free. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/graph/graph.h"

enum { GRAPHS_MAX = 1 << 18, NODES_MAX = 1 << 22 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t pools_once = PTHREAD_ONCE_INIT;
static struct soft_handles *graphs, *nodes;

static void make_pools(void) {
    graphs = soft_handles_new(sizeof(struct graph), GRAPHS_MAX);
    nodes = soft_handles_new(sizeof(struct graph_node), NODES_MAX);
    if (!graphs || !nodes)
        abort(); /* no address space for two tables: nothing could work */
}

void soft_graph_prepare(void) {
    pthread_once(&pools_once, make_pools);
}

/* ---- the lock ------------------------------------------------------------------------------ */

static struct doomed {
    struct doomed *next;
    hipHostFn_t destroy;
    void *data;
} * doomed; /* under the lock */

void soft_graph_lock(void) {
    pthread_once(&pools_once, make_pools);
    pthread_mutex_lock(&lock);
}

void soft_graph_unlock(void) {
    struct doomed *list = doomed;
    doomed = NULL;
    pthread_mutex_unlock(&lock);
    for (struct doomed *d = list, *next; d; d = next) {
        next = d->next;
        d->destroy(d->data);
        free(d);
    }
}

void soft_graph_doom(hipHostFn_t destroy, void *data) {
    struct doomed *d = malloc(sizeof *d);
    if (d) { /* without memory the program's data leaks, which is better than calling its destructor
                under the lock */
        *d = (struct doomed){ doomed, destroy, data };
        doomed = d;
    }
}

/* ---- handles ------------------------------------------------------------------------------- */

struct graph *soft_graph_of(hipGraph_t handle) {
    return soft_handle_valid(graphs, handle) ? (struct graph *)handle : NULL;
}

struct graph_node *soft_node_of(hipGraphNode_t handle) {
    return soft_handle_valid(nodes, handle) ? (struct graph_node *)handle : NULL;
}

/* A zeroed object; reused ones come as they were left. */
static void *take(struct soft_handles *pool, size_t size) {
    char *object = soft_handle_alloc(pool);
    if (object)
        memset(object + sizeof(struct soft_handle), 0, size - sizeof(struct soft_handle));
    return object;
}

struct graph *soft_graph_table_graph(void) {
    return take(graphs, sizeof(struct graph));
}

struct graph_node *soft_graph_table_node(void) {
    return take(nodes, sizeof(struct graph_node));
}

void soft_graph_table_free_graph(struct graph *graph) {
    soft_handle_free(graphs, graph);
}

void soft_graph_table_free_node(struct graph_node *node) {
    soft_handle_free(nodes, node);
}
