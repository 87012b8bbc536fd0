/* graph.c - captures and graphs.
 *
 * A graph is a list of nodes with the nodes they depend on; a node is the event of the captured
 * operation, read again when it runs. A captured operation depends on the last one of its stream,
 * and hipStreamWaitEvent on an event of the capture adds what the event stood for; nodes added by
 * hand name what they depend on.
 *
 * A launch is one unit of its stream: its roots come after all that the stream was given before,
 * and what the stream is given next comes after all of its nodes. Between nodes only dependencies
 * count. To keep branches unordered, the graph is cut into chains, each a lane of its own: the
 * first is the stream's, further ones are kept with the stream for its next launch. */
#include <stdlib.h>
#include <string.h>

#include "verdict/effort.h"
#include "verdict/replay.h"

struct node {
    uint64_t handle; /* 0: captured, and never handed out */
    uint64_t seq;    /* the operation's event; EVENT_NO_SEQ: it does nothing to memory */
    uint32_t dep_first, dep_count;
    uint64_t gone; /* event that gave its host memory back; EVENT_NO_SEQ: none */
    bool changed;  /* given other parameters later, which the recording does not have */
};

struct graph {
    struct node *nodes;
    uint32_t count, room;
    uint32_t *deps; /* numbers of nodes */
    uint32_t dep_count, dep_room;
    bool opaque; /* has nodes of which nothing is known */
    /* Of executable ones: */
    uint64_t from;   /* the graph they were made of */
    uint32_t *order; /* nodes, each after all it depends on */
    uint32_t *chain; /* by node */
    uint32_t chains;
    struct vclock *clocks; /* by node */
    struct vclock last;    /* when its last launch is over */
};

struct capture {
    struct graph *graph;  /* NULL once it has ended */
    struct capture *next; /* of all */
};

/* ---- building -------------------------------------------------------------------------------- */

static void free_graph(struct graph *g) {
    if (!g)
        return;
    for (uint32_t i = 0; g->clocks && i < g->count; i++)
        vclock_free(&g->clocks[i]);
    vclock_free(&g->last);
    (void)effort_bytes(0, g->room * sizeof *g->nodes + g->dep_room * sizeof *g->deps);
    free(g->clocks);
    free(g->order);
    free(g->chain);
    free(g->nodes);
    free(g->deps);
    free(g);
}

static bool grow(void *array, uint32_t *room, uint32_t count, size_t size) {
    void **at = array;
    if (count < *room)
        return true;
    uint32_t more = *room ? 2 * *room : 8;
    if (!effort_bytes(more * size, *room * size))
        return false;
    void *p = realloc(*at, more * size);
    if (!p)
        return false;
    *at = p;
    *room = more;
    return true;
}

static bool list_add(struct node_list *l, uint32_t node) {
    if (!effort_steps(l->count))
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i] == node)
            return true;
    if (!grow(&l->at, &l->room, l->count, sizeof *l->at))
        return false;
    l->at[l->count++] = node;
    return true;
}

static bool list_copy(struct node_list *to, const struct node_list *from) {
    to->count = 0;
    if (!effort_steps(from->count))
        return false;
    for (; to->count < from->count; to->count++) { /* none is there twice */
        if (!grow(&to->at, &to->room, to->count, sizeof *to->at))
            return false;
        to->at[to->count] = from->at[to->count];
    }
    return true;
}

static bool add_dep(struct graph *g, uint32_t on) {
    if (!grow(&g->deps, &g->dep_room, g->dep_count, sizeof *g->deps))
        return false;
    g->deps[g->dep_count++] = on;
    g->nodes[g->count - 1].dep_count++;
    return true;
}

/* A new node, the last one, with no dependencies yet. */
static struct node *add_node(struct graph *g, uint64_t handle, uint64_t seq) {
    if (!grow(&g->nodes, &g->room, g->count, sizeof *g->nodes))
        return NULL;
    struct node *n = &g->nodes[g->count++];
    *n = (struct node){
        .handle = handle, .seq = seq, .dep_first = g->dep_count, .gone = EVENT_NO_SEQ
    };
    return n;
}

static struct node *find_node(struct graph *g, uint64_t handle, uint32_t *number) {
    (void)effort_steps(g->count);
    for (uint32_t i = 0; i < g->count; i++)
        if (handle && g->nodes[i].handle == handle) {
            *number = i;
            return &g->nodes[i];
        }
    return NULL;
}

static struct graph *copy_graph(const struct graph *from) {
    uint64_t bytes = from->count * sizeof *from->nodes + from->dep_count * sizeof *from->deps;
    struct graph *g =
        effort_steps(bytes / 8) && effort_bytes(bytes, 0) ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return NULL;
    g->opaque = from->opaque;
    g->nodes = malloc((from->count + 1) * sizeof *g->nodes);
    g->deps = malloc((from->dep_count + 1) * sizeof *g->deps);
    if (!g->nodes || !g->deps) {
        free_graph(g);
        return NULL;
    }
    if (from->count)
        memcpy(g->nodes, from->nodes, from->count * sizeof *g->nodes);
    if (from->dep_count)
        memcpy(g->deps, from->deps, from->dep_count * sizeof *g->deps);
    g->count = g->room = from->count;
    g->dep_count = g->dep_room = from->dep_count;
    return g;
}

/* Enters a graph under a handle, in place of the one that had it. */
static void set_graph(struct replay *r, struct table *t, uint64_t handle, struct graph *g) {
    if (!g) {
        r->no_memory = true;
        return;
    }
    free_graph(table_remove(t, handle));
    if (!table_set(t, handle, g)) {
        free_graph(g);
        r->no_memory = true;
    }
}

/* ---- captures -------------------------------------------------------------------------------- */

static void begin_capture(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct stream *s = before_stream(r, e->event.stream, t);
    struct capture *c = arena_alloc(&r->arena, sizeof *c);
    if (!s || !c || !(c->graph = calloc(1, sizeof *c->graph))) {
        r->no_memory = true;
        return;
    }
    c->next = r->captures;
    r->captures = c;
    s->capture = c;
    s->frontier.count = 0;
}

static void end_capture(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct stream *s = before_stream(r, e->event.stream, t);
    struct capture *c = s ? s->capture : NULL;
    if (!c)
        return;
    (void)effort_steps(s->space->stream_count);
    for (size_t i = 0; i < s->space->stream_count; i++)
        if (s->space->streams[i]->capture == c)
            s->space->streams[i]->capture = NULL;
    if (e->event.status == hipSuccess && e->event.dst)
        set_graph(r, &s->space->graphs, e->event.dst, c->graph);
    else
        free_graph(c->graph);
    c->graph = NULL;
}

bool graph_on_record(struct replay *r, struct stream *s, struct event_state *ev) {
    if (!s->capture || !s->capture->graph)
        return false;
    ev->capture = s->capture;
    if (!list_copy(&ev->nodes, &s->frontier))
        r->no_memory = true;
    return true;
}

bool graph_on_wait(struct replay *r, struct stream *s, struct event_state *ev) {
    if (!ev->capture || !ev->capture->graph)
        return false; /* an event from outside: HIP refuses that in a capture */
    if (s->capture != ev->capture) {
        s->capture = ev->capture;
        s->frontier.count = 0;
    }
    for (uint32_t i = 0; i < ev->nodes.count; i++)
        if (!list_add(&s->frontier, ev->nodes.at[i]))
            r->no_memory = true;
    return true;
}

static void capture_op(struct replay *r, struct stream *s, uint64_t seq) {
    struct graph *g = s->capture ? s->capture->graph : NULL;
    if (!g)
        return;
    bool ok = add_node(g, 0, seq) != NULL;
    for (uint32_t i = 0; ok && i < s->frontier.count; i++)
        ok = add_dep(g, s->frontier.at[i]);
    s->frontier.count = 0;
    if (!ok || !list_add(&s->frontier, g->count - 1))
        r->no_memory = true;
}

void graph_set_node(struct thread *t, uint64_t seq) {
    if (!t->node_graph || t->node >= t->node_graph->count)
        return;
    struct node *n = &t->node_graph->nodes[t->node];
    n->seq = seq;
    n->gone = EVENT_NO_SEQ;
    n->changed = false;
    t->node_graph = NULL;
}

void graph_add_op(struct replay *r, const struct op *op, struct thread *t) {
    if (op->stream) {
        struct stream *s = before_stream(r, op->stream, t);
        if (s)
            capture_op(r, s, op->seq);
    } else {
        graph_set_node(t, op->seq);
    }
}

/* ---- nodes added by hand --------------------------------------------------------------------- */

static void on_node(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct graph *g = table_find(&t->space->graphs, e->event.dst);
    t->node_graph = NULL;
    if (!g)
        return;
    enum hip_fn fn = r->fn[event_fn(&e->event)];
    t->node_opaque = g->opaque;
    if (fn == HIP_FN_hipGraphAddChildGraphNode)
        g->opaque = true; /* until the event after it has said of what */
    bool ok = add_node(g, e->event.src, EVENT_NO_SEQ) != NULL;
    uint64_t told = 0;
    for (unsigned i = 0; i < e->extras; i++) {
        const struct event_extra *x = &e->extra[i];
        for (unsigned k = 0; event_extra_type(x) == EXTRA_NODES && k < event_extra_words(x); k++) {
            uint32_t on;
            if (ok && find_node(g, x->word[k], &on))
                ok = add_dep(g, on);
            told++;
        }
    }
    if (told < e->event.len)
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_GRAPH_DEPS);
    if (!ok) {
        r->no_memory = true;
        return;
    }
    t->node_graph = g;
    t->node = g->count - 1;
}

/* Dependencies of a node lie together: a new one moves them to the end. */
static void on_edge(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct graph *g = table_find(&t->space->graphs, e->event.dst);
    uint32_t from, to;
    if (!g || !find_node(g, e->event.src, &from) || !find_node(g, e->event.len, &to))
        return;
    struct node *n = &g->nodes[to];
    uint32_t first = g->dep_count;
    (void)effort_steps(n->dep_count);
    for (uint32_t i = 0; i <= n->dep_count; i++) {
        uint32_t on = i < n->dep_count ? g->deps[n->dep_first + i] : from;
        if (!grow(&g->deps, &g->dep_room, g->dep_count, sizeof *g->deps)) {
            r->no_memory = true;
            return;
        }
        g->deps[g->dep_count++] = on;
    }
    n->dep_first = first;
    n->dep_count++;
}

/* ---- executable graphs ----------------------------------------------------------------------- */

/* Puts the nodes into an order that respects dependencies; false if these form a cycle, or without
 * memory. */
static bool order_nodes(struct graph *g) {
    g->order = malloc((g->count + 1) * sizeof *g->order);
    bool *placed = calloc(g->count + 1, sizeof *placed);
    uint32_t done = 0;
    for (bool again = true; g->order && placed && again && done < g->count;) {
        again = false;
        for (uint32_t i = 0; i < g->count && effort_steps(1); i++) {
            bool ready = !placed[i];
            for (uint32_t k = 0; ready && effort_steps(1) && k < g->nodes[i].dep_count; k++)
                ready = placed[g->deps[g->nodes[i].dep_first + k]];
            if (ready) {
                g->order[done++] = i;
                placed[i] = again = true;
            }
        }
    }
    free(placed);
    return g->order && done == g->count;
}

/* A node continues a chain that ends in a node it depends on, or starts one. */
static bool cut_chains(struct graph *g) {
    uint32_t *tail = malloc((g->count + 1) * sizeof *tail);
    g->chain = malloc((g->count + 1) * sizeof *g->chain);
    g->clocks = calloc(g->count + 1, sizeof *g->clocks);
    g->chains = 0;
    for (uint32_t i = 0; tail && g->chain && g->clocks && i < g->count; i++) {
        uint32_t node = g->order[i], chain = UINT32_MAX;
        (void)effort_steps(g->nodes[node].dep_count);
        for (uint32_t k = 0; k < g->nodes[node].dep_count && chain == UINT32_MAX; k++) {
            uint32_t on = g->deps[g->nodes[node].dep_first + k];
            if (tail[g->chain[on]] == on)
                chain = g->chain[on];
        }
        if (chain == UINT32_MAX)
            chain = g->chains++;
        g->chain[node] = chain;
        tail[chain] = node;
    }
    bool ok = tail && g->chain && g->clocks;
    free(tail);
    return ok;
}

static void instantiate(struct replay *r, uint64_t exec, uint64_t handle, struct thread *t) {
    const struct graph *from = table_find(&t->space->graphs, handle);
    struct graph *g = from ? copy_graph(from) : calloc(1, sizeof *g);
    if (g && !from)
        g->opaque = true; /* made before the recording began */
    if (g && (!order_nodes(g) || !cut_chains(g)))
        g->opaque = true;
    if (g)
        g->from = handle;
    set_graph(r, &t->space->execs, exec, g);
}

/* What kind of operation the function gives parameters to; 0: one that is not followed. */
static unsigned kind_set_by(enum hip_fn fn) {
    switch (fn) {
    case HIP_FN_hipGraphKernelNodeSetParams:
    case HIP_FN_hipGraphExecKernelNodeSetParams:
        return EVENT_LAUNCH;
    case HIP_FN_hipGraphMemsetNodeSetParams:
    case HIP_FN_hipGraphExecMemsetNodeSetParams:
        return EVENT_SET;
    case HIP_FN_hipGraphMemcpyNodeSetParams:
    case HIP_FN_hipGraphExecMemcpyNodeSetParams:
    case HIP_FN_hipGraphMemcpyNodeSetParams1D:
    case HIP_FN_hipGraphExecMemcpyNodeSetParams1D:
    case HIP_FN_hipGraphExecMemcpyNodeSetParamsFromSymbol:
    case HIP_FN_hipGraphExecMemcpyNodeSetParamsToSymbol:
        return EVENT_COPY;
    case HIP_FN_hipGraphHostNodeSetParams:
    case HIP_FN_hipGraphExecHostNodeSetParams:
        return EVENT_HOST_FN;
    default:
        return 0;
    }
}

static bool is_node_of(struct replay *r, const struct node *n, unsigned kind) {
    struct reader_event *e = r->other;
    if (n->seq == EVENT_NO_SEQ || !reader_event(r->r, n->seq, e))
        return false;
    return e->event.kind == kind || (kind == EVENT_COPY && e->event.kind == EVENT_COPY2D);
}

/* The node that gets other parameters. The handle of a captured node may not be in the recording:
 * if only one node is of the right kind it is that one, otherwise each of them may have changed. */
static bool find_changed(struct replay *r, struct graph *g, uint64_t handle, unsigned kind,
                         uint32_t *number) {
    uint32_t candidates = 0;
    if (find_node(g, handle, number))
        return true;
    (void)effort_steps(UINT64_C(32) * g->count);
    for (uint32_t i = 0; i < g->count; i++)
        if (!g->nodes[i].handle && (!kind || is_node_of(r, &g->nodes[i], kind))) {
            *number = i;
            candidates++;
        }
    for (uint32_t i = 0; candidates > 1 && i < g->count; i++)
        g->nodes[i].changed |= !g->nodes[i].handle && (!kind || is_node_of(r, &g->nodes[i], kind));
    g->opaque |= !candidates;
    return candidates == 1;
}

/* Parameters of a node of a graph that is not executable. */
static struct graph *find_owner(const struct space *s, uint64_t handle, uint32_t *number) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(&s->graphs, &at)) && effort_steps(8);)
        if (find_node(e->value, handle, number))
            return e->value;
    return NULL;
}

static void on_update(struct replay *r, const struct reader_event *e, struct thread *t) {
    unsigned kind = kind_set_by(r->fn[event_fn(&e->event)]);
    uint32_t number = 0;
    t->node_graph = NULL;
    if (e->event.src) {
        instantiate(r, e->event.dst, e->event.src, t);
        return;
    }
    struct graph *g = e->event.dst ? table_find(&t->space->execs, e->event.dst)
                                   : find_owner(t->space, e->event.len, &number);
    if (!g && !e->event.dst)
        r->order_doubt = sentence_plain(SENTENCE_DOUBT_GRAPH_CHANGED);
    if (!g || (e->event.dst && !find_changed(r, g, e->event.len, kind, &number)))
        return;
    g->nodes[number].changed = true;
    if (kind) { /* the operation comes next */
        t->node_graph = g;
        t->node = number;
    }
}

/* The program was told the handle of a node, which may have been captured. */
static void on_handle(const struct reader_event *e, struct thread *t) {
    struct graph *g = table_find(&t->space->graphs, e->event.dst);
    size_t at = 0;
    if (g && e->event.len < g->count && !g->nodes[e->event.len].handle)
        g->nodes[e->event.len].handle = e->event.src;
    for (const struct table_entry *x; (x = table_next(&t->space->execs, &at)) && effort_steps(8);) {
        struct graph *exec = x->value;
        if (exec->from == e->event.dst && e->event.len < exec->count &&
            !exec->nodes[e->event.len].handle)
            exec->nodes[e->event.len].handle = e->event.src;
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool chain_lane(struct replay *r, struct stream *s, struct thread *t, uint32_t chain,
                       uint32_t *lane) {
    if (chain == 0) {
        *lane = s->lane;
        return true;
    }
    while (s->chain_count < chain) {
        uint32_t *lanes = realloc(s->chain_lanes, (s->chain_count + 1) * sizeof *lanes);
        if (!lanes)
            return replay_no_memory(r);
        s->chain_lanes = lanes;
        if (!before_new_lane(r, t, &lanes[s->chain_count]))
            return false;
        s->chain_count++;
    }
    *lane = s->chain_lanes[chain - 1];
    return true;
}

/* A captured copy is replayed after its host memory was given back. */
static void add_gone(struct replay *r, const struct node *n, const struct op *op,
                     struct thread *t) {
    struct found f = {
        .hypothesis = HYPOTHESIS_HOST_BUFFER_LIFETIME,
        .culprit = op->seq,
        .other = n->gone,
        .messenger = EVENT_NO_SEQ,
        .order = op->launch,
        .argument = -1,
        .process = t->space->process,
    };
    findings_evidence(&f, op->launch);
    f.said = SAY(&r->words, REPLAY_OF_RELEASED, A_SENTENCE(findings_event(r, op->seq)),
                 A_SENTENCE(findings_event(r, op->launch)));
    findings_add(r, &f);
}

static void mark_gone(struct table *graphs, uint64_t op, uint64_t seq) {
    size_t at = 0;
    for (const struct table_entry *e; (e = table_next(graphs, &at));) {
        struct graph *g = e->value;
        (void)effort_steps(8 + g->count);
        for (uint32_t i = 0; i < g->count; i++)
            if (g->nodes[i].seq == op)
                g->nodes[i].gone = seq;
    }
}

void graph_on_host_free(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct reader_event *op = r->other;
    if (e->event.src == EVENT_NO_SEQ || !reader_event(r->r, e->event.src, op) ||
        !event_is_captured(&op->event))
        return;
    mark_gone(&t->space->graphs, e->event.src, e->seq);
    mark_gone(&t->space->execs, e->event.src, e->seq);
}

/* One node of a launch; clock holds what is before it, and gets the node itself. */
static void run_node(struct replay *r, const struct node *n, const struct reader_event *launch,
                     struct thread *t, uint32_t lane, struct vclock *clock) {
    struct reader_event *e = r->other;
    struct op *op = r->op;
    (void)effort_steps(300); /* as long as it takes about */
    if (n->seq != EVENT_NO_SEQ && reader_event(r->r, n->seq, e)) {
        if (e->event.kind == EVENT_HOST_FN) {
            host_fn_queued(r, t->space, n->seq, lane, clock);
        } else if (event_state_on_node(r, e, n->changed, t->space, clock)) {
            ; /* it orders, and touches nothing */
        } else if (op_read(r, e, op)) {
            op->launch = launch->seq;
            op->t_ns = launch->event.t_ns;
            op->thread = launch->event.thread;
            op->stream = launch->event.stream;
            op->status = launch->event.status;
            if (n->changed) {
                op->known = op->exact = false;
                op->count = 0;
            }
            bounds_check(r, op, t); /* what the program passed, not what the kernel did */
            (void)reader_event(r->r, n->seq, e); /* a finding may have read others there */
            if (!n->changed)
                touched_apply(r, e, op, n->handle);
            struct stream *s = before_stream(r, op->stream, t);
            if (s && op->what == SHADOW_LAUNCH)
                launches_on_run(r, e, op, t, s);
            if (op->what == SHADOW_LAUNCH)
                replay_count_work(r, op);
            replay_count_host_memory(r, op, t->space);
            replay_note_host_use(r, op, t->space);
            if (n->gone != EVENT_NO_SEQ && !n->changed)
                add_gone(r, n, op, t);
            handover_on_op(r, op, t);
            peers_check(r, op, t, s);
            races_check(r, op, t, lane, before_number(r, lane), clock);
        }
    }
    before_done(r, clock, lane, launch->seq);
}

static void run_graph(struct replay *r, struct graph *g, const struct reader_event *e,
                      struct thread *t, struct stream *s) {
    struct vclock start = { 0 };
    bool ok = vclock_join(&s->clock, &g->last) && vclock_copy(&start, &s->clock);
    for (uint32_t i = 0; ok && i < g->count; i++) {
        uint32_t node = g->order[i], lane;
        struct vclock *clock = &g->clocks[node];
        ok = chain_lane(r, s, t, g->chain[node], &lane) && vclock_copy(clock, &start);
        for (uint32_t k = 0; ok && k < g->nodes[node].dep_count; k++)
            ok = vclock_join(clock, &g->clocks[g->deps[g->nodes[node].dep_first + k]]);
        ok = ok && !effort_is_spent();
        if (ok)
            run_node(r, &g->nodes[node], e, t, lane, clock);
    }
    for (uint32_t i = 0; ok && i < g->count; i++)
        ok = vclock_join(&s->clock, &g->clocks[i]);
    ok = ok && vclock_copy(&g->last, &s->clock);
    vclock_free(&start);
    if (!ok)
        r->no_memory = true;
}

/* A graph launched into a stream that is being captured becomes part of that capture. */
static void capture_graph(struct replay *r, struct stream *s, const struct graph *child) {
    struct graph *g = s->capture ? s->capture->graph : NULL;
    if (!g)
        return;
    uint32_t base = g->count;
    struct node_list leaves = { 0 };
    bool ok = true;
    enum { NODES_MAX = 1 << 20, DEPS_MAX = 1 << 24 };
    g->opaque |= child->opaque || (uint64_t)base + child->count > NODES_MAX ||
                 (uint64_t)child->count * (s->frontier.count + 1) > DEPS_MAX;
    if (g->opaque)
        return;
    for (uint32_t i = 0; ok && i < child->count; i++) {
        const struct node *n = &child->nodes[i];
        ok = add_node(g, 0, n->seq) && list_add(&leaves, base + i);
        for (uint32_t k = 0; ok && k < n->dep_count; k++)
            ok = add_dep(g, base + child->deps[n->dep_first + k]);
        for (uint32_t k = 0; ok && !n->dep_count && k < s->frontier.count; k++)
            ok = add_dep(g, s->frontier.at[k]);
    }
    /* Without knowing which nodes are last, the next operation depends on all of them. */
    if (ok && leaves.count)
        ok = list_copy(&s->frontier, &leaves);
    free(leaves.at);
    if (!ok)
        r->no_memory = true;
}

/* A graph becomes a node of another: its nodes come after what that node depends on, and the node
 * itself, which does nothing, after all of them. */
static void add_child(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct graph *g = t->node_graph;
    const struct graph *child = table_find(&t->space->graphs, e->event.src);
    enum { NODES_MAX = 1 << 20, DEPS_MAX = 1 << 24 };
    t->node_graph = NULL;
    if (!g || !child || child == g || child->opaque || t->node >= g->count)
        return;
    uint32_t base = g->count, had = g->nodes[t->node].dep_count;
    if ((uint64_t)base + child->count > NODES_MAX || (uint64_t)child->count * (had + 1) > DEPS_MAX)
        return;
    bool ok = true;
    for (uint32_t i = 0; ok && i < child->count; i++) {
        const struct node *n = &child->nodes[i];
        ok = add_node(g, 0, n->seq) != NULL;
        for (uint32_t k = 0; ok && k < n->dep_count; k++)
            ok = add_dep(g, base + child->deps[n->dep_first + k]);
        for (uint32_t k = 0; ok && !n->dep_count && k < had; k++)
            ok = add_dep(g, g->deps[g->nodes[t->node].dep_first + k]);
    }
    uint32_t first = g->dep_count;
    for (uint32_t i = 0; ok && i < had + child->count; i++) {
        ok = grow(&g->deps, &g->dep_room, g->dep_count, sizeof *g->deps);
        if (ok)
            g->deps[g->dep_count++] =
                i < had ? g->deps[g->nodes[t->node].dep_first + i] : base + (i - had);
    }
    if (!ok) {
        r->no_memory = true;
        return;
    }
    g->nodes[t->node].dep_first = first;
    g->nodes[t->node].dep_count = had + child->count;
    g->opaque = t->node_opaque;
}

static void on_launch(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct graph *g = table_find(&t->space->execs, e->event.dst);
    if (event_is_captured(&e->event) && !e->event.stream) {
        add_child(r, e, t);
        return;
    }
    struct stream *s = before_stream(r, e->event.stream, t);
    if (!s || e->event.status != hipSuccess)
        return;
    if (event_is_captured(&e->event)) {
        if (g)
            capture_graph(r, s, g);
        return;
    }
    r->seen.graph_launches++;
    before_enter(r, s, t);
    if (g && !g->opaque) {
        run_graph(r, g, e, t, s);
    } else {
        r->unfollowed = hip_fn_name(HIP_FN_hipGraphLaunch);
        races_unknown(r, e->seq, t, s->lane, before_number(r, s->lane), &s->clock);
        before_done(r, &s->clock, s->lane, e->seq);
    }
    before_changed(r, s);
}

static uint64_t nearer(uint64_t best, uint64_t address, uint64_t pointer) {
    uint64_t far = address > pointer ? address - pointer : pointer - address;
    return pointer && far < best ? far : best;
}

/* How far an address is from what the operation was given. */
static uint64_t distance_from(const struct reader_event *e, uint64_t address) {
    struct event_arg args[EVENT_ARGS_PER_SLOT];
    struct event_access accesses[EVENT_ACCESSES_PER_SLOT];
    uint64_t best = UINT64_MAX;
    if (e->event.kind != EVENT_LAUNCH)
        return nearer(nearer(best, address, e->event.dst), address, e->event.src);
    for (unsigned i = 0; i < e->extras; i++) {
        const struct event_extra *x = &e->extra[i];
        if (event_extra_type(x) == EXTRA_ARGS)
            for (unsigned k = 0, n = event_args_of(x, args); k < n; k++)
                best =
                    args[k].flags & EVENT_ARG_NUMBER ? best : nearer(best, address, args[k].value);
        if (event_extra_type(x) == EXTRA_ACCESS)
            for (unsigned k = 0, n = event_accesses_of(x, accesses); k < n; k++)
                best = nearer(best, address, accesses[k].address);
    }
    return best;
}

/* Does the node run an operation of that name? *e is then its event. */
static bool is_named(struct replay *r, const struct node *n, uint32_t name,
                     struct reader_event *e) {
    return n->seq != EVENT_NO_SEQ && reader_event(r->r, n->seq, e) &&
           (e->event.name == name ||
            !strcmp(reader_function(r->r, event_fn(&e->event)), reader_string(r->r, name)));
}

uint64_t graph_find_op(struct replay *r, struct space *s, const struct reader_event *said,
                       uint64_t launch, uint64_t address) {
    struct reader_event *e = r->other;
    uint64_t found = EVENT_NO_SEQ, best = UINT64_MAX;
    const struct event_extra *x = reader_extra(said, EXTRA_NODE);
    uint64_t told = x ? x->word[0] : EVENT_NO_SEQ;
    uint64_t handle = x && event_extra_words(x) > 1 ? x->word[1] : 0;
    if (!reader_event(r->r, launch, e) || e->event.kind != EVENT_GRAPH_LAUNCH)
        return EVENT_NO_SEQ;
    const struct graph *g = table_find(&s->execs, e->event.dst);
    for (uint32_t i = 0; g && i < g->count && effort_steps(32); i++) {
        const struct node *n = &g->nodes[i];
        if (n->seq != EVENT_NO_SEQ && (n->seq == told || (handle && n->handle == handle)))
            return n->seq;
        if (is_named(r, n, said->event.name, e) &&
            (found == EVENT_NO_SEQ || distance_from(e, address) < best)) {
            found = n->seq;
            best = distance_from(e, address);
        }
    }
    return found;
}

/* ---- events of the recording ----------------------------------------------------------------- */

void graph_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    bool ok = e->event.status == hipSuccess;
    switch (e->event.kind) {
    case EVENT_CAPTURE_BEGIN:
        if (ok)
            begin_capture(r, e, t);
        break;
    case EVENT_CAPTURE_END:
        end_capture(r, e, t);
        break;
    case EVENT_GRAPH_CREATE: {
        const struct graph *from = e->event.src ? table_find(&s->graphs, e->event.src) : NULL;
        if (ok)
            set_graph(r, &s->graphs, e->event.dst,
                      from ? copy_graph(from) : calloc(1, sizeof(struct graph)));
        break;
    }
    case EVENT_GRAPH_NODE:
        if (ok)
            on_node(r, e, t);
        break;
    case EVENT_GRAPH_EDGE:
        if (ok)
            on_edge(r, e, t);
        break;
    case EVENT_GRAPH_INSTANTIATE:
        if (ok)
            instantiate(r, e->event.dst, e->event.src, t);
        break;
    case EVENT_GRAPH_UPDATE:
        if (ok)
            on_update(r, e, t);
        break;
    case EVENT_GRAPH_HANDLE:
        if (ok)
            on_handle(e, t);
        break;
    case EVENT_GRAPH_LAUNCH:
        on_launch(r, e, t);
        break;
    case EVENT_GRAPH_DESTROY:
        if (ok && e->event.dst)
            free_graph(table_remove(&s->graphs, e->event.dst));
        if (ok && e->event.src)
            free_graph(table_remove(&s->execs, e->event.src));
        break;
    default:
        break;
    }
}

void graph_free(struct replay *r) {
    for (struct capture *c = r->captures; c; c = c->next)
        free_graph(c->graph);
    r->captures = NULL;
}

void graph_free_space(struct space *s) {
    size_t at = 0;
    const struct table_entry *e;
    while ((e = table_next(&s->graphs, &at)))
        free_graph(e->value);
    for (at = 0; (e = table_next(&s->execs, &at));)
        free_graph(e->value);
    table_clear(&s->graphs);
    table_clear(&s->execs);
}
