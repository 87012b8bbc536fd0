#include "infer/sequence.h"

#include <stdlib.h>

#include "base/clock.h"
#include "infer/engine_internal.h"

enum rc sequence_open(struct sequence **out, const engine *g, const struct engine_request *r,
                      uint32_t number, const struct token_list *before, struct err *e) {
    struct sequence *q = calloc(1, sizeof *q);
    size_t room = KERN_BLOCKS(g->context);
    if (!q)
        return err_set(e, RC_MEMORY, "out of memory");
    *q = (struct sequence){ .r = *r, .number = number };
    q->r.sampling.seed += number - r->number;
    q->blocks = malloc(room * sizeof *q->blocks);
    q->hashes = malloc(room * sizeof *q->hashes);
    q->stopper = (struct stopper){ r->stops, r->stop_count, { 0 } };
    tokenizer_decoder_init(&q->decoder, g->tokenizer, false, false);
    enum rc rc = q->blocks && q->hashes ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    rc = rc ? rc : sampler_open(&q->sampler, &q->r.sampling, g->config.vocab, e);
    for (size_t i = 0; !rc && before && i < before->count; i++)
        rc = token_list_add(&q->tokens, before->ids[i], e);
    for (size_t i = 0; !rc && i < r->prompt_count; i++)
        rc = token_list_add(&q->tokens, r->prompt[i], e);
    if (rc)
        sequence_close(&q, NULL);
    else
        *out = q;
    return rc;
}

/* The last block first, so that the first ones, which others are likely to share, are reused last.
 */
void sequence_give_back_blocks(struct sequence *q, engine *g) {
    while (q->block_count)
        blocks_give_back(&g->pool, q->blocks[--q->block_count]);
    q->evaluated = 0;
}

void sequence_close(struct sequence **q, engine *g) {
    if (!*q)
        return;
    if (g)
        sequence_give_back_blocks(*q, g);
    sampler_close(&(*q)->sampler);
    stopper_close(&(*q)->stopper);
    token_list_close(&(*q)->tokens);
    free((*q)->blocks);
    free((*q)->hashes);
    free(*q);
    *q = NULL;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void give_out(struct sequence *q, size_t len) {
    if (len && q->r.text)
        q->r.text(q->number, q->stopper.held.data, len, q->r.user);
    stopper_drop(&q->stopper, len);
}

/* The text that a token adds, or what is left of it at the end (id negative). */
static enum rc put_text(struct sequence *q, int32_t id, struct err *e) {
    struct token_text text = { 0 };
    size_t ready = 0;
    bool found = false;
    enum rc rc = id >= 0 ? tokenizer_decoder_push(&q->decoder, id, &text, e)
                         : tokenizer_decoder_flush(&q->decoder, &text, e);
    rc = rc ? rc : stopper_push(&q->stopper, text.data, text.len, &ready, &found, e);
    token_text_close(&text);
    if (rc)
        return rc;
    give_out(q, id < 0 && !found ? q->stopper.held.len : ready);
    if (found) {
        q->done = true;
        q->end = ENGINE_STOP;
        q->stopper.held.len = 0;
    }
    return RC_OK;
}

enum rc sequence_finish(struct sequence *q, enum engine_end end, struct err *e) {
    q->done = true;
    q->end = end;
    return put_text(q, -1, e);
}

/* ---- tokens --------------------------------------------------------------------------------- */

enum rc sequence_advance(struct sequence *q, const engine *g, const struct sequence_next *from,
                         struct err *e) {
    int32_t next;
    if (q->generated == q->r.max_tokens)
        return sequence_finish(q, ENGINE_LENGTH, e);
    enum rc rc = from->logits ? sampler_pick(q->sampler, from->logits, q->tokens.ids,
                                             q->tokens.count, &next, e)
                              : sampler_take(q->sampler, from->token, &next, e);
    if (rc)
        return rc;
    if (!q->first_ns)
        q->first_ns = clock_now_ns();
    if (!q->r.ignore_end && tokenizer_is_eog(g->tokenizer, next))
        return sequence_finish(q, ENGINE_EOS, e);
    q->generated++;
    rc = token_list_add(&q->tokens, next, e);
    rc = rc ? rc : put_text(q, next, e);
    if (!rc && !q->done && q->generated == q->r.max_tokens)
        rc = sequence_finish(q, ENGINE_LENGTH, e);
    if (!rc && !q->done && q->tokens.count > g->context)
        rc = sequence_finish(q, ENGINE_FULL, e);
    return rc;
}
