/* step.c - engine_step: one pass for all live sequences.
 *
 * A step first takes the one token of every sequence that is being continued, then fills the batch
 * with chunks of prompts, in the order in which sequences came. A sequence whose next block another
 * one is about to compute waits for that. Where the cache has no block left, the sequence that came
 * last gives its blocks back and reads its text again when there is room. */
#include <stdlib.h>
#include <string.h>

#include "infer/engine_internal.h"
#include "infer/sequence.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

/* More blocks for the cache, as long as it may have more. */
static enum rc grow(engine *g, struct err *e) {
    uint32_t count = g->stages.at[0].cache.blocks;
    count += count / 4 + 8;
    count = count < g->blocks ? count : g->blocks;
    enum rc rc = stages_grow(&g->stages, &g->config, count, e);
    return rc ? rc : blocks_grow(&g->pool, count, e);
}

static bool is_planned(const engine *g, const struct sequence *q) {
    for (uint32_t i = 0; i < g->planned; i++)
        if (g->plan[i].q == q)
            return true;
    return false;
}

/* The sequence that came last, has blocks and no part in the step. */
static struct sequence *find_victim(const engine *g, const struct sequence *needs) {
    struct sequence *victim = NULL;
    for (struct sequence *q = g->first; q; q = q->next)
        if (q != needs && q->block_count && !is_planned(g, q))
            victim = q;
    return victim;
}

/* BLOCKS_NONE if the sequences of this step need all there are. */
static int32_t take_block(engine *g, const struct sequence *q, enum rc *rc, struct err *e) {
    int32_t block = blocks_take(&g->pool);
    if (block < 0 && g->stages.at[0].cache.blocks < g->blocks) {
        *rc = grow(g, e);
        block = *rc ? BLOCKS_NONE : blocks_take(&g->pool);
    }
    if (block < 0 && !*rc && g->held) {
        sequence_close(&g->held, g);
        block = blocks_take(&g->pool);
    }
    while (block < 0 && !*rc) {
        struct sequence *victim = find_victim(g, q);
        if (!victim)
            break;
        sequence_give_back_blocks(victim, g);
        block = blocks_take(&g->pool);
    }
    return block;
}

/* Room for the tokens up to a count; *room is false if there is none now. */
static enum rc make_room(engine *g, struct sequence *q, uint32_t tokens, bool *room,
                         struct err *e) {
    enum rc rc = RC_OK;
    while (!rc && q->block_count < KERN_BLOCKS(tokens)) {
        int32_t block = take_block(g, q, &rc, e);
        if (block < 0)
            break;
        q->blocks[q->block_count++] = block;
    }
    *room = q->block_count >= KERN_BLOCKS(tokens);
    return rc;
}

static uint64_t parent_of(const struct sequence *q, uint32_t block) {
    return block ? q->hashes[block - 1] : 0;
}

/* Whether blocks that others computed may be used: not if all logits are wanted. */
static bool may_share(const engine *g, const struct sequence *q) {
    return !q->r.unshared && !(g->all_logits && q->r.logits);
}

/* Whether q is at the beginning of a block and has all tokens of it and at least one more. */
static bool wants_block(const engine *g, const struct sequence *q) {
    return may_share(g, q) && q->evaluated == q->block_count * KERN_BLOCK &&
           q->tokens.count - q->evaluated > KERN_BLOCK;
}

/* Takes over published blocks that hold the next tokens. */
static void share_blocks(engine *g, struct sequence *q) {
    while (wants_block(g, q)) {
        const int32_t *tokens = q->tokens.ids + q->evaluated;
        uint64_t parent = parent_of(q, q->block_count);
        int32_t block = blocks_find(&g->pool, parent, tokens);
        if (block < 0)
            return;
        q->hashes[q->block_count] = blocks_hash(parent, tokens);
        q->blocks[q->block_count++] = block;
        q->evaluated += KERN_BLOCK;
    }
}

/* Publishes the blocks that were filled since `from` tokens were evaluated. */
static void publish(engine *g, struct sequence *q, uint32_t from) {
    for (uint32_t b = from / KERN_BLOCK; b < q->evaluated / KERN_BLOCK; b++) {
        const int32_t *tokens = q->tokens.ids + (size_t)b * KERN_BLOCK;
        q->hashes[b] = blocks_hash(parent_of(q, b), tokens);
        if (!q->r.unshared)
            blocks_publish(&g->pool, q->blocks[b], parent_of(q, b), tokens);
    }
}

/* ---- what a step does ------------------------------------------------------------------------ */

static uint32_t pending(const struct sequence *q) {
    return (uint32_t)q->tokens.count - q->evaluated;
}

static bool is_continued(const struct sequence *q) {
    return q->generated && pending(q) == 1;
}

/* Whether this step computes the block that q wants next. */
static bool is_coming(const engine *g, const struct sequence *q) {
    for (uint32_t i = 0; wants_block(g, q) && i < g->planned; i++) {
        const struct sequence *other = g->plan[i].q;
        uint32_t end = q->evaluated + KERN_BLOCK;
        if (other->evaluated + g->plan[i].count >= end && other->evaluated <= q->evaluated &&
            !other->r.unshared && !memcmp(other->tokens.ids, q->tokens.ids, end * sizeof(int32_t)))
            return true;
    }
    return false;
}

static void tell_progress(const struct sequence *q) {
    if (q->r.progress && !q->generated)
        q->r.progress(q->number, q->evaluated, (uint32_t)q->tokens.count, q->r.user);
}

static enum rc plan_sequence(engine *g, struct sequence *q, uint32_t *left, struct err *e) {
    bool room;
    if (!is_continued(q))
        share_blocks(g, q);
    uint32_t count = pending(q) < *left ? pending(q) : *left;
    if (!count || q->leader || is_coming(g, q))
        return RC_OK;
    enum rc rc = make_room(g, q, q->evaluated + count, &room, e);
    if (rc || !room)
        return rc;
    g->plan[g->planned++] = (struct engine_part){ .q = q, .count = count, .was = q->evaluated };
    *left -= count;
    tell_progress(q);
    return RC_OK;
}

/* The live sequences are the first ones of the queue, as many as the buffers are made for. */
static enum rc make_plan(engine *g, struct err *e) {
    enum rc rc = RC_OK;
    uint32_t left = g->chunk;
    g->planned = 0;
    for (int continued = 1; !rc && continued >= 0; continued--) {
        uint32_t live = 0;
        for (struct sequence *q = g->first; !rc && q && live < g->sequences; q = q->next) {
            live++;
            if (is_continued(q) == (continued == 1) && !is_planned(g, q))
                rc = plan_sequence(g, q, &left, e);
        }
    }
    if (!rc && !g->planned)
        rc = err_set(e, RC_RANGE, "the KV cache of %u positions has no room for a sequence",
                     g->blocks * KERN_BLOCK);
    return rc;
}

/* ---- the batch ------------------------------------------------------------------------------- */

static bool any_interrupted(void *user) {
    const engine *g = user;
    bool any = false;
    for (struct sequence *q = g->first; q; q = q->next) {
        q->interrupted = q->interrupted || (q->r.interrupted && q->r.interrupted(q->r.user));
        any |= q->interrupted;
    }
    return any;
}

static enum rc end_interrupted(engine *g, struct err *e) {
    enum rc rc = RC_OK;
    bool any = any_interrupted(g);
    for (struct sequence *q = g->first; any && !rc && q; q = q->next)
        if (!q->done && q->interrupted)
            rc = sequence_finish(q, ENGINE_INTERRUPTED, e);
    return rc;
}

/* Which of a part's tokens want logits: all, the last, or none. */
static void want_rows(const engine *g, struct engine_part *p) {
    bool ends = p->count == pending(p->q);
    p->wanted = g->all_logits && p->q->r.logits ? p->count : ends;
}

/* The width that all sequences of the batch need, rounded up, so that it rarely changes: decode
 * graphs depend on it. */
static uint32_t table_width(const engine *g) {
    enum { MULTIPLE = KERN_RANGE / KERN_BLOCK };
    uint32_t width = 0, most = (uint32_t)KERN_BLOCKS(g->context);
    for (uint32_t i = 0; i < g->planned; i++)
        if (g->plan[i].q->block_count > width)
            width = g->plan[i].q->block_count;
    width = (width + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    return width < most ? width : most;
}

static bool has_followers(const struct sequence *leader) {
    for (const struct sequence *q = leader->next; q; q = q->next)
        if (q->leader == leader)
            return true;
    return false;
}

/* Whether the host needs no logits of the batch: the device draws all its tokens then. */
static bool may_draw(const engine *g) {
    bool may = g->draws, gpu = kern_is_gpu(g->stages.at[0].device.kernels);
    for (uint32_t i = 0; may && i < g->planned; i++) {
        const struct engine_part *p = &g->plan[i];
        may = !p->wanted || (!p->q->r.logits && sampler_suits_device(p->q->sampler, gpu) &&
                             (p->q->generated || !has_followers(p->q)));
    }
    return may;
}

/* How each row of logits is drawn from, if the device does it. */
static void describe_draws(const engine *g, struct forward_batch *b, int32_t *settings) {
    if (!may_draw(g))
        return;
    for (uint32_t i = 0; i < g->planned; i++)
        if (g->plan[i].wanted)
            sampler_settings(g->plan[i].q->sampler,
                             settings + (size_t)g->plan[i].row * KERN_SETTINGS);
    b->settings = settings;
}

static struct forward_batch make_batch(engine *g) {
    int32_t *ids = g->numbers, *pos = ids + g->chunk, *seqs = pos + g->chunk;
    int32_t *rows = seqs + g->chunk, *numbers = rows + g->chunk;
    int32_t *settings = numbers + g->sequences, *tables = settings + g->sequences * KERN_SETTINGS;
    struct forward_batch b = { .ids = ids,
                               .pos = pos,
                               .seqs = seqs,
                               .tables = tables,
                               .numbers = numbers,
                               .sequences = g->planned,
                               .rows = rows,
                               .step = g->step,
                               .user = g };
    b.table_width = table_width(g);
    for (uint32_t i = 0; i < g->planned; i++) {
        struct engine_part *p = &g->plan[i];
        numbers[i] = (int32_t)p->q->number;
        memset(tables + (size_t)i * b.table_width, 0, b.table_width * sizeof *tables);
        memcpy(tables + (size_t)i * b.table_width, p->q->blocks,
               p->q->block_count * sizeof *tables);
        b.interrupted = p->q->r.interrupted ? any_interrupted : b.interrupted;
        want_rows(g, p);
        p->row = b.wanted;
        for (uint32_t t = 0; t < p->count; t++, b.tokens++) {
            ids[b.tokens] = p->q->tokens.ids[p->q->evaluated + t];
            pos[b.tokens] = (int32_t)(p->q->evaluated + t);
            seqs[b.tokens] = (int32_t)i;
            if (p->count - t <= p->wanted)
                rows[b.wanted++] = (int32_t)b.tokens;
        }
    }
    describe_draws(g, &b, settings);
    return b;
}

/* After the first pass, some of the weights left in the file are packed before each one. */
static enum rc run_batch(engine *g, struct err *e) {
    struct forward_batch b = make_batch(g);
    const struct weights_pause pause = { any_interrupted, g };
    g->step++;
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && b.step && i < g->stages.count; i++)
        rc = weights_repack_more(&g->stages.at[i].weights, &g->stages.at[i].device, g->file, &pause,
                                 e);
    g->has_drawn = b.settings != NULL;
    return rc ? rc : stages_run(&g->stages, &b, g->logits, g->drawn, e);
}

/* ---- results --------------------------------------------------------------------------------- */

/* Gives a sequence what its leader has read, and a copy of the block that is not full. */
static enum rc follow(engine *g, struct sequence *q, const struct sequence *leader,
                      const struct sequence_next *next, struct err *e) {
    uint32_t full = leader->evaluated / KERN_BLOCK;
    bool room;
    q->leader = NULL;
    if (q->block_count)
        return RC_OK; /* it has started reading by itself */
    for (; q->block_count < full; q->block_count++) {
        q->blocks[q->block_count] = leader->blocks[q->block_count];
        q->hashes[q->block_count] = leader->hashes[q->block_count];
        blocks_share(&g->pool, q->blocks[q->block_count]);
    }
    q->evaluated = full * KERN_BLOCK;
    enum rc rc = make_room(g, q, leader->evaluated, &room, e);
    if (rc || !room)
        return rc; /* it reads the rest itself, later */
    if (leader->evaluated % KERN_BLOCK)
        rc = stages_copy_block(&g->stages, (uint32_t)leader->blocks[full],
                               (uint32_t)q->blocks[full], e);
    q->evaluated = leader->evaluated;
    return rc ? rc : sequence_advance(q, g, next, e);
}

/* Hands out the logits of a part and, when all its tokens have been read, draws the next. */
static enum rc use_logits(engine *g, const struct engine_part *p, struct err *e) {
    struct sequence *q = p->q;
    const size_t vocab = g->config.vocab;
    const float *logits = g->logits + (size_t)p->row * vocab;
    enum rc rc = RC_OK;
    for (uint32_t i = 0; !rc && q->r.logits && i < p->wanted; i++) {
        uint32_t at = q->evaluated - p->wanted + i;
        rc = q->r.logits(at, q->tokens.ids[at], logits + i * vocab, q->r.user, e);
    }
    if (rc || pending(q))
        return rc;
    const struct sequence_next next = { g->has_drawn ? NULL : logits + (p->wanted - 1) * vocab,
                                        g->has_drawn ? g->drawn[p->row] : -1 };
    bool prompt = !q->generated;
    rc = sequence_advance(q, g, &next, e);
    for (struct sequence *s = q->next; !rc && prompt && s; s = s->next)
        if (s->leader == q)
            rc = follow(g, s, q, &next, e);
    return rc;
}

static enum rc take_results(engine *g, const struct engine_part *p, struct err *e) {
    struct sequence *q = p->q;
    q->evaluated += p->count;
    publish(g, q, p->was);
    tell_progress(q);
    enum rc rc = use_logits(g, p, e);
    if (rc && !pending(q)) /* nothing was drawn: the next step reads these tokens again */
        q->evaluated = p->was;
    return rc;
}

enum rc engine_step(engine *g, bool *more, struct err *e) {
    enum rc rc = end_interrupted(g, e);
    engine_sweep(g);
    if (!rc && g->first) {
        rc = make_plan(g, e);
        rc = rc ? rc : run_batch(g, e);
        if (rc == RC_BUSY) /* the batch was abandoned: the other sequences repeat it */
            rc = end_interrupted(g, e);
        else
            for (uint32_t i = 0; !rc && i < g->planned; i++)
                rc = take_results(g, &g->plan[i], e);
        g->planned = 0;
        engine_sweep(g);
    }
    *more = g->first != NULL;
    return rc;
}
