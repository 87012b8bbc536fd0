#include "infer/graphs.h"

#include <string.h>

#include "base/env.h"

void graphs_open(struct graphs *g) {
    *g = (struct graphs){ .on = env_flag(ENV_GRETA_HIP_GRAPH) };
}

static void forget(struct graphs_entry *n, const struct device *d) {
    if (n->exec)
        (void)d->hip->hipGraphExecDestroy(n->exec);
    *n = (struct graphs_entry){ 0 };
}

void graphs_close(struct graphs *g, const struct device *d) {
    for (int i = 0; i < GRAPHS_KEPT; i++)
        forget(&g->entry[i], d);
}

/* A graph over buffers that have moved is never looked up again: versions only grow. */
static bool is_outdated(const struct graphs_key *k, const struct graphs_key *now) {
    return k->cache != now->cache || k->weights != now->weights;
}

static struct graphs_entry *find(struct graphs *g, const struct graphs_key *key) {
    for (int i = 0; i < GRAPHS_KEPT; i++)
        if (g->entry[i].used && !memcmp(&g->entry[i].key, key, sizeof *key))
            return &g->entry[i];
    return NULL;
}

/* A free entry, else the least recently used one. */
static struct graphs_entry *make(struct graphs *g, const struct device *d,
                                 const struct graphs_key *key) {
    struct graphs_entry *oldest = &g->entry[0];
    for (int i = 0; i < GRAPHS_KEPT; i++) {
        struct graphs_entry *n = &g->entry[i];
        if (n->used && is_outdated(&n->key, key))
            forget(n, d);
        if (n->used < oldest->used)
            oldest = n;
    }
    forget(oldest, d);
    oldest->key = *key;
    return oldest;
}

/* Captures a pass. *exec stays NULL if the runtime refuses to capture; nothing has run then. */
static enum rc capture(const struct device *d, hipGraphExec_t *exec, graphs_pass pass, void *user,
                       struct err *e) {
    hipGraph_t graph = NULL;
    if (d->hip->hipStreamBeginCapture(d->stream, hipStreamCaptureModeThreadLocal) != hipSuccess)
        return RC_OK;
    enum rc rc = pass(user, e);
    hipError_t r = d->hip->hipStreamEndCapture(d->stream, &graph);
    if (!rc && r == hipSuccess &&
        d->hip->hipGraphInstantiate(exec, graph, NULL, NULL, 0) != hipSuccess)
        *exec = NULL;
    if (r == hipSuccess && graph)
        (void)d->hip->hipGraphDestroy(graph);
    return rc;
}

static enum rc launch(const struct device *d, hipGraphExec_t exec, struct err *e) {
    hipError_t r = d->hip->hipGraphLaunch(exec, d->stream);
    return r == hipSuccess
               ? RC_OK
               : err_set(e, RC_DEVICE, "hipGraphLaunch failed: %s", d->hip->hipGetErrorString(r));
}

enum rc graphs_run(struct graphs *g, const struct device *d, const struct graphs_key *key,
                   graphs_pass pass, void *user, struct err *e) {
    if (!g->on)
        return pass(user, e);
    struct graphs_entry *n = find(g, key);
    bool again = n != NULL;
    n = n ? n : make(g, d, key);
    n->used = ++g->uses;
    if (again && !n->exec) {
        enum rc rc = capture(d, &n->exec, pass, user, e);
        if (rc)
            return rc;
        g->on = n->exec != NULL;
    }
    return n->exec ? launch(d, n->exec, e) : pass(user, e);
}
