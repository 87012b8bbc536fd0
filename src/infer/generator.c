/* generator.c - engine_generate: prompt in, tokens out, one or several sequences side by side. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "infer/engine_internal.h"
#include "infer/stopper.h"

/* One continuation. */
struct sequence {
    sampler *sampler;
    struct tokenizer_decoder decoder;
    struct stopper stopper;
    struct token_list tokens; /* prompt and what came */
    int32_t next;             /* drawn, not yet evaluated */
    uint32_t generated;
    bool done;
    enum engine_end end;
};

struct run {
    engine *g;
    const struct engine_request *r;
    struct engine_result *out;
    struct sequence *sequences;
    uint32_t prompt_end; /* position behind the prompt */
    uint64_t start_ns, first_ns;
    bool interrupted; /* by r->interrupted: what is under way returns RC_BUSY */
};

static bool is_interrupted(void *user) {
    struct run *run = user;
    run->interrupted |= run->r->interrupted && run->r->interrupted(run->r->user);
    return run->interrupted;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void give_out(struct run *run, uint32_t i, size_t len) {
    struct stopper *s = &run->sequences[i].stopper;
    if (len && run->r->text)
        run->r->text(i, s->held.data, len, run->r->user);
    stopper_drop(s, len);
}

/* The text that a token adds, or what is left of it at the end (id negative). */
static enum rc put_text(struct run *run, uint32_t i, int32_t id, struct err *e) {
    struct sequence *q = &run->sequences[i];
    struct token_text text = { 0 };
    size_t ready = 0;
    bool found = false;
    enum rc rc = id >= 0 ? tokenizer_decoder_push(&q->decoder, id, &text, e)
                         : tokenizer_decoder_flush(&q->decoder, &text, e);
    rc = rc ? rc : stopper_push(&q->stopper, text.data, text.len, &ready, &found, e);
    token_text_close(&text);
    if (rc)
        return rc;
    give_out(run, i, id < 0 && !found ? q->stopper.held.len : ready);
    if (found) {
        q->done = true;
        q->end = ENGINE_STOP;
        q->stopper.held.len = 0;
    }
    return RC_OK;
}

static enum rc finish_sequence(struct run *run, uint32_t i, enum engine_end end, struct err *e) {
    struct sequence *q = &run->sequences[i];
    q->done = true;
    q->end = end;
    return put_text(run, i, -1, e);
}

/* ---- tokens --------------------------------------------------------------------------------- */

/* Draws the next token of a sequence and decides whether it goes on. */
static enum rc advance(struct run *run, uint32_t i, const float *logits, struct err *e) {
    struct sequence *q = &run->sequences[i];
    const engine *g = run->g;
    if (q->generated == run->r->max_tokens)
        return finish_sequence(run, i, ENGINE_LENGTH, e);
    enum rc rc = sampler_pick(q->sampler, logits, q->tokens.ids, q->tokens.count, &q->next, e);
    if (rc)
        return rc;
    if (i == 0 && !run->first_ns)
        run->first_ns = clock_now_ns();
    if (!run->r->ignore_end && tokenizer_is_eog(g->tokenizer, q->next))
        return finish_sequence(run, i, ENGINE_EOS, e);
    q->generated++;
    run->out->generated++;
    rc = token_list_add(&q->tokens, q->next, e);
    rc = rc ? rc : put_text(run, i, q->next, e);
    if (!rc && !q->done && q->generated == run->r->max_tokens)
        rc = finish_sequence(run, i, ENGINE_LENGTH, e);
    return rc;
}

static enum rc tell_logits(const struct run *run, uint32_t position, int32_t token,
                           const float *logits, struct err *e) {
    return run->r->logits ? run->r->logits(position, token, logits, run->r->user, e) : RC_OK;
}

/* ---- one pass ------------------------------------------------------------------------------- */

/* Behind the first pass some of what the engine left in the file is packed before each. */
static enum rc forward(struct run *run, const struct scheduler_batch *b, struct err *e) {
    engine *g = run->g;
    const struct weights_pause pause = { is_interrupted, run };
    enum rc rc = b->step ? weights_repack_more(&g->weights, &g->device, g->file, &pause, e) : RC_OK;
    return rc ? rc : scheduler_forward(g->scheduler, b, g->logits, e);
}

/* ---- the prompt ----------------------------------------------------------------------------- */

/* One chunk of the prompt into sequence 0. Logits of all its tokens, or of its last if it ends the
 * prompt. */
static enum rc prefill_chunk(struct run *run, const int32_t *ids, uint32_t count, bool ends,
                             struct err *e) {
    engine *g = run->g;
    int32_t *numbers = malloc(3 * (size_t)count * sizeof *numbers);
    if (!numbers)
        return err_set(e, RC_MEMORY, "out of memory");
    int32_t *pos = numbers, *slots = pos + count, *rows = slots + count;
    for (uint32_t i = 0; i < count; i++) {
        pos[i] = slots[i] = (int32_t)(g->position + i);
        rows[i] = (int32_t)i;
    }
    uint32_t wanted = g->all_logits ? count : ends;
    struct scheduler_batch b = { .tokens = count,
                                 .ids = ids,
                                 .pos = pos,
                                 .slots = slots,
                                 .wanted = wanted,
                                 .rows = g->all_logits ? rows : rows + count - 1,
                                 .step = g->step++,
                                 .interrupted = run->r->interrupted ? is_interrupted : NULL,
                                 .user = run };
    enum rc rc = forward(run, &b, e);
    for (uint32_t i = 0; !rc && i < wanted; i++) {
        uint32_t at = g->all_logits ? i : count - 1;
        rc =
            tell_logits(run, g->position + at, ids[at], g->logits + (size_t)i * g->config.vocab, e);
    }
    free(numbers);
    if (!rc && g->all_logits && ends) /* advance() looks at the first row */
        memmove(g->logits, g->logits + (size_t)(count - 1) * g->config.vocab,
                g->config.vocab * sizeof *g->logits);
    g->position += rc ? 0 : count;
    return rc;
}

/* What sequence 0 holds and has not evaluated yet: the prompt, and before it, in a conversation,
 * the last token of an answer that ended without being looked at. */
static enum rc prefill(struct run *run, struct err *e) {
    engine *g = run->g;
    const struct token_list *tokens = &run->sequences[0].tokens;
    enum rc rc = RC_OK;
    while (!rc && g->position < tokens->count) {
        size_t left = tokens->count - g->position;
        uint32_t count = left < g->chunk ? (uint32_t)left : g->chunk;
        if (is_interrupted(run))
            return RC_BUSY;
        rc = prefill_chunk(run, tokens->ids + g->position, count, count == left, e);
    }
    for (uint32_t i = 1; !rc && i < g->sequences; i++)
        rc = kvcache_share(&g->cache, &g->device, 0, i, g->position, e);
    run->prompt_end = g->position;
    return rc;
}

/* ---- the continuations ----------------------------------------------------------------------- */

static enum rc context_is_full(const engine *g, struct err *e) {
    return err_set(e, RC_RANGE,
                   "the context is full: %u positions. greta does not drop the beginning of a text "
                   "to go on; give it a larger --ctx or fewer tokens",
                   g->context);
}

/* Evaluates the drawn tokens of all sequences that go on, and draws the next ones. */
static enum rc decode_step(struct run *run, struct err *e) {
    engine *g = run->g;
    uint32_t n = 0;
    int32_t ids[g->sequences], pos[g->sequences], slots[g->sequences], rows[g->sequences];
    uint32_t who[g->sequences];
    for (uint32_t i = 0; i < g->sequences; i++) {
        const struct sequence *q = &run->sequences[i];
        if (q->done)
            continue;
        uint32_t at = run->prompt_end + q->generated - 1;
        if (at >= g->context)
            return context_is_full(g, e);
        who[n] = i;
        ids[n] = q->next;
        pos[n] = (int32_t)at;
        slots[n] = (int32_t)(i * g->context + at);
        rows[n] = (int32_t)n;
        n++;
    }
    struct scheduler_batch b = { n, ids, pos, slots, n, rows, g->step++, NULL, NULL };
    enum rc rc = forward(run, &b, e);
    for (uint32_t j = 0; !rc && j < n; j++) {
        const float *logits = g->logits + (size_t)j * g->config.vocab;
        if (who[j] == 0) {
            g->position = (uint32_t)pos[j] + 1;
            rc = tell_logits(run, (uint32_t)pos[j], ids[j], logits, e);
        }
        rc = rc ? rc : advance(run, who[j], logits, e);
    }
    return rc;
}

static bool all_done(const struct run *run) {
    for (uint32_t i = 0; i < run->g->sequences; i++)
        if (!run->sequences[i].done)
            return false;
    return true;
}

static enum rc interrupt(struct run *run, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < run->g->sequences; i++)
        if (!run->sequences[i].done)
            rc = finish_sequence(run, i, ENGINE_INTERRUPTED, e);
    return rc;
}

static enum rc decode(struct run *run, struct err *e) {
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && i < run->g->sequences; i++)
        rc = advance(run, i, run->g->logits, e);
    while (!rc && !all_done(run)) {
        if (is_interrupted(run))
            return RC_BUSY;
        rc = decode_step(run, e);
    }
    return rc;
}

/* ---- the request ---------------------------------------------------------------------------- */

enum rc engine_check(const engine *g, const struct engine_request *r, struct err *e) {
    if (!r->prompt_count)
        return err_set(e, RC_USAGE, "the prompt is empty: there is no token to go on from");
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

static enum rc open_sequence(struct run *run, uint32_t i, struct err *e) {
    struct sequence *q = &run->sequences[i];
    const engine *g = run->g;
    struct sampler_options options = run->r->sampling;
    options.seed += i;
    q->stopper = (struct stopper){ run->r->stops, run->r->stop_count, { 0 } };
    tokenizer_decoder_init(&q->decoder, g->tokenizer, false, false);
    enum rc rc = sampler_open(&q->sampler, &options, g->config.vocab, e);
    for (size_t j = 0; !rc && run->r->append && j < g->past.count; j++)
        rc = token_list_add(&q->tokens, g->past.ids[j], e);
    for (size_t j = 0; !rc && j < run->r->prompt_count; j++)
        rc = token_list_add(&q->tokens, run->r->prompt[j], e);
    return rc;
}

/* What a later request with `append` goes on from: all tokens, but for the one that completed a
 * stop text. */
static enum rc remember(engine *g, const struct sequence *q, struct err *e) {
    size_t count = q->end == ENGINE_STOP ? g->position : q->tokens.count;
    g->past.count = 0;
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < count; i++)
        rc = token_list_add(&g->past, q->tokens.ids[i], e);
    return rc;
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

enum rc engine_generate(engine *g, const struct engine_request *r, struct engine_result *out,
                        struct err *e) {
    struct run run = { .g = g, .r = r, .out = out, .start_ns = clock_now_ns() };
    *out = (struct engine_result){ 0 };
    enum rc rc = engine_check(g, r, e);
    if (rc)
        return rc;
    if (!r->append)
        g->position = 0;
    run.sequences = calloc(g->sequences, sizeof *run.sequences);
    if (!run.sequences)
        rc = err_set(e, RC_MEMORY, "out of memory");
    for (uint32_t i = 0; !rc && i < g->sequences; i++)
        rc = open_sequence(&run, i, e);
    rc = rc ? rc : prefill(&run, e);
    rc = rc ? rc : decode(&run, e);
    if (rc == RC_BUSY && run.interrupted)
        rc = interrupt(&run, e);
    if (run.sequences) {
        enum rc kept = remember(g, &run.sequences[0], rc ? NULL : e);
        rc = rc ? rc : kept;
        out->end = run.sequences[0].end;
        out->tokens = run.sequences[0].tokens;
        run.sequences[0].tokens = (struct token_list){ 0 };
    }
    for (uint32_t i = 0; run.sequences && i < g->sequences; i++) {
        sampler_close(&run.sequences[i].sampler);
        stopper_close(&run.sequences[i].stopper);
        token_list_close(&run.sequences[i].tokens);
    }
    free(run.sequences);
    measure(&run);
    return rc;
}
