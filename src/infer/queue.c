/* queue.c - the sequences of an engine: what a request may ask for, how sequences join and how they
 * leave. */
#include "infer/engine_internal.h"
#include "infer/sequence.h"

/* ---- what a request may ask for -------------------------------------------------------------- */

enum rc engine_check(const engine *g, const struct engine_request *r, struct err *e) {
    if (!r->prompt_count)
        return err_set(e, RC_USAGE, "the prompt is empty: there is no token to continue");
    if (r->append && g->sequences > 1)
        return err_set(e, RC_USAGE, "a conversation has one sequence, not %u", g->sequences);
    size_t at = r->append ? g->past.count : 0, room = g->context > at ? g->context - at : 0;
    if (r->prompt_count > room)
        return err_set(
            e, RC_RANGE,
            "the prompt has %zu tokens and the context room for %zu (of %u): shorten it or "
            "give a larger --ctx",
            r->prompt_count, room, g->context);
    for (size_t i = 0; i < r->prompt_count; i++)
        if (r->prompt[i] < 0 || (uint32_t)r->prompt[i] >= g->config.vocab)
            return err_set(e, RC_RANGE, "token %d of the prompt is not in the vocabulary of %u",
                           r->prompt[i], g->config.vocab);
    return sampler_check(&r->sampling, e);
}

enum rc engine_check_injections(const engine *g, const struct engine_request *r, struct err *e) {
    int64_t chunks = (int64_t)((r->prompt_count + g->chunk - 1) / g->chunk);
    return inject_check_steps(g->inject, g->step + chunks + (r->max_tokens ? r->max_tokens - 1 : 0),
                              e);
}

/* ---- joining and leaving --------------------------------------------------------------------- */

static void append(engine *g, struct sequence *q) {
    struct sequence **at = &g->first;
    while (*at)
        at = &(*at)->next;
    *at = q;
}

enum rc engine_add(engine *g, const struct engine_request *r, const struct token_list *before,
                   uint32_t copies, struct sequence **out, struct err *e) {
    struct sequence *leader = NULL, *q = NULL;
    for (uint32_t i = 0; i < copies; i++) {
        enum rc rc = sequence_open(&q, g, r, r->number + i, before, e);
        if (rc) {
            engine_drop(g, r->number, i);
            return rc;
        }
        if (i)
            q->r.logits = NULL;
        q->leader = leader;
        leader = leader ? leader : q;
        append(g, q);
    }
    *out = leader;
    return RC_OK;
}

enum rc engine_submit(engine *g, const struct engine_request *r, uint32_t *number, struct err *e) {
    struct engine_request mine = *r;
    struct sequence *q;
    enum rc rc = r->append ? err_set(e, RC_USAGE,
                                     "a submitted sequence cannot append: only a request that runs "
                                     "alone continues a conversation")
                           : engine_check(g, r, e);
    mine.number = g->next_number;
    mine.hold = false;
    rc = rc ? rc : engine_add(g, &mine, NULL, 1, &q, e);
    if (!rc)
        *number = g->next_number++;
    return rc;
}

static struct sequence *find(const engine *g, uint32_t number) {
    struct sequence *q = g->first;
    while (q && q->number != number)
        q = q->next;
    return q;
}

void engine_cancel(engine *g, uint32_t number) {
    struct sequence *q = find(g, number);
    if (q)
        q->interrupted = true;
}

/* The sequences that wait for this one no longer do. */
static void let_go_of(engine *g, const struct sequence *leader) {
    for (struct sequence *q = g->first; q; q = q->next)
        if (q->leader == leader)
            q->leader = NULL;
}

/* Calls finished() for a sequence that has ended, and removes it. */
static void end_sequence(engine *g, struct sequence **at) {
    struct sequence *q = *at;
    struct engine_finished f = { q->end, q->generated, q->evaluated, q->first_ns, &q->tokens };
    let_go_of(g, q);
    *at = q->next;
    if (q->r.finished)
        q->r.finished(q->number, &f, q->r.user);
    if (q->r.hold && !g->held)
        g->held = q;
    else
        sequence_close(&q, g);
}

void engine_sweep(engine *g) {
    for (struct sequence **at = &g->first; *at;)
        if ((*at)->done)
            end_sequence(g, at);
        else
            at = &(*at)->next;
}

void engine_drop(engine *g, uint32_t number, uint32_t count) {
    for (struct sequence **at = &g->first; *at;)
        if ((*at)->number - number < count) {
            (*at)->end = ENGINE_INTERRUPTED;
            end_sequence(g, at);
        } else {
            at = &(*at)->next;
        }
}
