/* generator.c - engine_generate: one prompt, one or several continuations, on top of engine_step.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "infer/engine_internal.h"
#include "infer/sequence.h"

/* ---- the conversation ------------------------------------------------------------------------ */

/* Keeps what a later request with `append` continues: all tokens except the one that completed a
 * stop text. */
static enum rc remember(engine *g, const struct token_list *tokens, size_t count, struct err *e) {
    enum rc rc = RC_OK;
    g->past.count = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = token_list_add(&g->past, tokens->ids[i], e);
    return rc;
}

/* Hands the blocks of the conversation so far to its next sequence, except a last one that q would
 * continue filling but that is published, so others may use it: q reads its tokens again. */
static void take_over(engine *g, struct sequence *q) {
    struct sequence *held = g->held;
    size_t most = held->evaluated < g->past.count ? held->evaluated : g->past.count;
    most = most < q->tokens.count ? most : q->tokens.count - 1; /* the last gives the logits */
    uint32_t full = (uint32_t)(most / KERN_BLOCK), count = (uint32_t)KERN_BLOCKS(most);
    if (count > full && g->pool.all[held->blocks[full]].published)
        most = (size_t)full * KERN_BLOCK, count = full;
    for (uint32_t i = 0; i < count; i++) {
        q->blocks[i] = held->blocks[i];
        q->hashes[i] = i < full ? held->hashes[i] : 0;
        blocks_share(&g->pool, q->blocks[i]);
    }
    q->block_count = count;
    q->evaluated = (uint32_t)most;
}

/* ---- the request ---------------------------------------------------------------------------- */

struct run {
    engine *g;
    const struct engine_request *r;
    struct engine_result *out;
    uint64_t start_ns, first_ns;
    enum rc rc; /* first failure in a callback */
    struct err *e;
};

static void put_text(uint32_t sequence, const char *text, size_t len, void *user) {
    const struct run *run = user;
    run->r->text(sequence, text, len, run->r->user);
}

static enum rc put_logits(uint32_t position, int32_t token, const float *logits, void *user,
                          struct err *e) {
    const struct run *run = user;
    return run->r->logits(position, token, logits, run->r->user, e);
}

static void put_progress(uint32_t sequence, uint32_t done, uint32_t total, void *user) {
    const struct run *run = user;
    run->r->progress(sequence, done, total, run->r->user);
}

static bool is_interrupted(void *user) {
    const struct run *run = user;
    return run->r->interrupted(run->r->user);
}

static enum rc context_is_full(const engine *g, struct err *e) {
    return err_set(e, RC_RANGE,
                   "the context is full: %u positions. greta does not drop the beginning of a text "
                   "to go on; give it a larger --ctx or fewer tokens",
                   g->context);
}

static void take_result(uint32_t sequence, const struct engine_finished *f, void *user) {
    struct run *run = user;
    struct engine_result *out = run->out;
    out->generated += f->generated;
    if (run->r->finished)
        run->r->finished(sequence, f, run->r->user);
    if (!run->rc && f->end == ENGINE_FULL)
        run->rc = context_is_full(run->g, run->e);
    if (sequence)
        return;
    out->end = f->end;
    run->first_ns = f->first_ns;
    out->tokens = *f->tokens;
    *f->tokens = (struct token_list){ 0 };
    size_t keep = f->end == ENGINE_STOP ? f->evaluated : out->tokens.count;
    enum rc rc = remember(run->g, &out->tokens, keep, run->rc ? NULL : run->e);
    run->rc = run->rc ? run->rc : rc;
}

static void measure(const struct run *run) {
    struct engine_result *out = run->out;
    uint64_t end = clock_now_ns();
    out->total_ms = (double)(end - run->start_ns) / 1e6;
    out->first_token_ms = run->first_ns ? (double)(run->first_ns - run->start_ns) / 1e6 : 0;
    bool more = out->generated > run->g->sequences; /* each has a first token */
    uint64_t tokens = more ? out->generated - run->g->sequences : out->generated;
    uint64_t took = end - (more ? run->first_ns : run->start_ns);
    out->tokens_per_second = took ? (double)tokens * 1e9 / (double)took : 0;
}

static enum rc run_steps(struct run *run, struct err *e) {
    engine *g = run->g;
    struct engine_request mine = *run->r;
    struct sequence *first = NULL;
    mine.number = 0;
    mine.hold = true;
    mine.text = run->r->text ? put_text : NULL;
    mine.logits = run->r->logits ? put_logits : NULL;
    mine.interrupted = run->r->interrupted ? is_interrupted : NULL;
    mine.progress = run->r->progress ? put_progress : NULL;
    mine.finished = take_result;
    mine.user = run;
    enum rc rc = engine_add(g, &mine, run->r->append ? &g->past : NULL, g->sequences, &first, e);
    if (!rc && run->r->append && g->held)
        take_over(g, first);
    sequence_close(&g->held, g);
    bool more = !rc;
    while (!rc && !run->rc && more)
        rc = engine_step(g, &more, e);
    engine_drop(g, 0, g->sequences);
    return rc ? rc : run->rc;
}

enum rc engine_generate(engine *g, const struct engine_request *r, struct engine_result *out,
                        struct err *e) {
    struct run run = { .g = g, .r = r, .out = out, .start_ns = clock_now_ns(), .e = e };
    *out = (struct engine_result){ 0 };
    enum rc rc = engine_check(g, r, e);
    if (!rc && g->first)
        rc = err_set(e, RC_USAGE,
                     "submitted sequences have not ended yet: run them to their end first");
    if (rc)
        return rc;
    rc = run_steps(&run, e);
    measure(&run);
    return rc;
}
