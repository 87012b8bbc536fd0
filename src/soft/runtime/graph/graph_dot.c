/* graph_dot.c - a graph as a drawing: hipGraphDebugDotPrint writes the language of Graphviz.
 * Nodes are numbered in order of creation; a child graph is a cluster. */
#include <stdio.h>

#include "soft/runtime/graph/graph.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"

static const char *type_name(hipGraphNodeType type) {
    static const char *const names[] = { "kernel", "memcpy", "memset",     "host",
                                         "graph",  "empty",  "wait event", "record event" };
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "node";
}

static void write_label(FILE *f, const struct graph_node *n) {
    const struct soft_op *op = n->op;
    fprintf(f, "%s", type_name(n->type));
    if (n->type == hipGraphNodeTypeKernel)
        fprintf(f, "\\n%s\\n(%u, %u, %u) x (%u, %u, %u)",
                soft_launch_is_alive(op) ? op->what : "(unloaded)", op->u.launch.grid[0],
                op->u.launch.grid[1], op->u.launch.grid[2], op->u.launch.block[0],
                op->u.launch.block[1], op->u.launch.block[2]);
    else if (n->type == hipGraphNodeTypeMemcpy)
        fprintf(f, "\\n0x%llx to 0x%llx\\n%zu x %zu x %zu bytes",
                (unsigned long long)op->u.copy.src, (unsigned long long)op->u.copy.dst,
                op->u.copy.width, op->u.copy.height, op->u.copy.depth);
    else if (n->type == hipGraphNodeTypeMemset)
        fprintf(f, "\\n0x%llx = %u\\n%zu x %zu", (unsigned long long)op->u.fill.dst,
                op->u.fill.value, op->u.fill.width, op->u.fill.height);
}

/* Node numbers are `number`; each graph counts on from *next. */
static void write_graph(FILE *f, const struct graph *g, size_t *next) {
    for (size_t i = 0; i < g->nodes.count; i++)
        g->nodes.at[i]->number = (*next)++;
    for (size_t i = 0; i < g->nodes.count; i++) {
        const struct graph_node *n = g->nodes.at[i];
        fprintf(f, "  n%zu [label=\"", n->number);
        write_label(f, n);
        fprintf(f, "\"];\n");
        for (size_t d = 0; d < n->dependents.count; d++)
            fprintf(f, "  n%zu -> n%zu;\n", n->number, n->dependents.at[d]->number);
        if (n->child) {
            fprintf(f, "  subgraph cluster_%zu {\n  label=\"n%zu\";\n", n->number, n->number);
            write_graph(f, n->child, next);
            fprintf(f, "  }\n");
        }
    }
}

hipError_t soft_hipGraphDebugDotPrint(hipGraph_t graph, const char *path, unsigned int flags) {
    (void)flags; /* they ask for more detail than there is */
    if (!graph || !path)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    FILE *f = g ? fopen(path, "we") : NULL;
    bool written = false;
    if (f) {
        size_t next = 0;
        fprintf(f, "digraph graph_1 {\n  node [shape=box];\n");
        write_graph(f, g, &next);
        fprintf(f, "}\n");
        written = !ferror(f);
        written &= !fclose(f);
    }
    soft_graph_unlock();
    return !g ? hipErrorInvalidValue : written ? hipSuccess : hipErrorOperatingSystem;
}
