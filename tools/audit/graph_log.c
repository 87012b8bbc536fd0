#include "tools/audit/graph_log.h"

#include <stdlib.h>

#include "hip/hip_types.h"
#include "verdict/table.h"

/* Nodes and graphs are numbered from 1, in arrays that only grow: there is none that the recording
 * does not have. Handles and streams map to the graph that they stand for now. */
struct list {
    uint32_t first, last; /* nodes; 0: none */
};

struct place {
    int64_t step, layer;
};

struct graph_log {
    struct graph_log_node *nodes;
    struct list *graphs;
    uint32_t node_count, node_room, graph_count, graph_room;
    struct table handles;  /* of graphs and executable graphs */
    struct table captures; /* streams */
    struct table threads;  /* struct place */
    uint32_t latest; /* the graph that was last given a node by hand, or begun to be captured */
};

struct graph_log *graph_log_open(void) {
    return calloc(1, sizeof(struct graph_log));
}

void graph_log_close(struct graph_log **g) {
    size_t at = 0;
    if (!*g)
        return;
    for (const struct table_entry *e; (e = table_next(&(*g)->threads, &at));)
        free(e->value);
    table_clear(&(*g)->handles);
    table_clear(&(*g)->captures);
    table_clear(&(*g)->threads);
    free((*g)->nodes);
    free((*g)->graphs);
    free(*g);
    *g = NULL;
}

/* One more element, the last; false without memory. */
static bool grow(void *array, uint32_t *count, uint32_t *room, size_t size) {
    void **at = array;
    if (*count + 1 >= *room) {
        uint32_t more = *room ? 2 * *room : 64;
        void *p = more > *room ? realloc(*at, more * size) : NULL;
        if (!p)
            return false;
        *at = p;
        *room = more;
    }
    ++*count;
    return true;
}

static uint32_t number_of(const struct table *t, uint64_t key) {
    return (uint32_t)(uintptr_t)table_find(t, key);
}

static void set_number(struct table *t, uint64_t key, uint32_t number) {
    if (number && key)
        (void)table_set(t, key, (void *)(uintptr_t)number);
    else
        (void)table_remove(t, key);
}

/* Makes a graph with the nodes that `from` has now; 0: with none. */
static uint32_t new_graph(struct graph_log *g, uint32_t from) {
    if (!grow(&g->graphs, &g->graph_count, &g->graph_room, sizeof *g->graphs))
        return 0;
    g->graphs[g->graph_count] = from ? g->graphs[from] : (struct list){ 0 };
    return g->graph_count;
}

/* Makes a copy of a known graph, under another handle. */
static void copy_graph(struct graph_log *g, uint64_t to, uint64_t from) {
    uint32_t known = number_of(&g->handles, from);
    set_number(&g->handles, to, known ? new_graph(g, known) : 0);
}

static struct place *place_of(struct graph_log *g, uint32_t thread) {
    struct place *p = table_find(&g->threads, (uint64_t)thread + 1);
    if (!p && (p = malloc(sizeof *p))) {
        *p = (struct place){ -1, -1 };
        if (!table_set(&g->threads, (uint64_t)thread + 1, p)) {
            free(p);
            p = NULL;
        }
    }
    return p;
}

static void note_mark(struct graph_log *g, const struct event *e) {
    struct place *p = place_of(g, e->thread);
    if (p && event_detail(e) == DETAIL_MARK_STEP)
        *p = (struct place){ (int64_t)e->dst, -1 };
    else if (p && event_detail(e) == DETAIL_MARK_LAYER)
        p->layer = (int64_t)e->dst;
}

/* An operation belongs to the capture of its stream; to the latest one, if the stream joined it. */
static void add_node(struct graph_log *g, const struct reader_event *e) {
    uint32_t graph = e->event.stream ? number_of(&g->captures, e->event.stream) : 0;
    const struct place *p = place_of(g, e->event.thread);
    graph = graph ? graph : g->latest;
    /* Later changes of a copy do not concern the original. */
    if (!graph || (g->graphs[graph].last && g->nodes[g->graphs[graph].last].next) ||
        !grow(&g->nodes, &g->node_count, &g->node_room, sizeof *g->nodes))
        return;
    g->nodes[g->node_count] = (struct graph_log_node){ .event = e->seq,
                                                       .name = e->event.name,
                                                       .kind = e->event.kind,
                                                       .fn = (uint16_t)event_fn(&e->event),
                                                       .layer = p ? p->layer : -1 };
    struct list *l = &g->graphs[graph];
    if (l->last)
        g->nodes[l->last].next = g->node_count;
    else
        l->first = g->node_count;
    l->last = g->node_count;
}

void graph_log_note(struct graph_log *g, const struct reader_event *e) {
    const struct event *v = &e->event;
    if (v->kind == EVENT_MARK)
        note_mark(g, v);
    if (v->status != hipSuccess)
        return;
    switch (v->kind) {
    case EVENT_CAPTURE_BEGIN:
        g->latest = new_graph(g, 0);
        set_number(&g->captures, v->stream, g->latest);
        break;
    case EVENT_CAPTURE_END:
        set_number(&g->handles, v->dst, number_of(&g->captures, v->stream));
        set_number(&g->captures, v->stream, 0);
        break;
    case EVENT_GRAPH_CREATE:
        if (v->src)
            copy_graph(g, v->dst, v->src);
        else
            set_number(&g->handles, v->dst, new_graph(g, 0));
        break;
    case EVENT_GRAPH_NODE:
        g->latest = number_of(&g->handles, v->dst);
        break;
    case EVENT_GRAPH_INSTANTIATE:
        copy_graph(g, v->dst, v->src);
        break;
    case EVENT_GRAPH_UPDATE: /* of a single node: its operation follows, and is no node */
        if (v->src)
            copy_graph(g, v->dst, v->src);
        g->latest = 0;
        break;
    default:
        if (event_is_captured(v))
            add_node(g, e);
    }
}

struct graph_log_walk graph_log_launch(const struct graph_log *g,
                                       const struct reader_event *launch) {
    const struct place *p = table_find(&g->threads, (uint64_t)launch->event.thread + 1);
    uint32_t graph = number_of(&g->handles, launch->event.dst);
    struct list l = graph ? g->graphs[graph] : (struct list){ 0 };
    return (struct graph_log_walk){ g, l.first, l.last, p ? p->step : -1 };
}

const struct graph_log_node *graph_log_next(struct graph_log_walk *w) {
    const struct graph_log_node *n = w->at ? &w->log->nodes[w->at] : NULL;
    w->at = n && w->at != w->last ? n->next : 0;
    return n;
}
