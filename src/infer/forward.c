/* forward.c - one pass through the model, or through those of its layers that a device has, top to
 * bottom: from the numbers that describe a batch to logits or tokens. */
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

#include "base/env.h"
#include "infer/forward_internal.h"

/* ---- opening -------------------------------------------------------------------------------- */

static enum rc clear_counts(const forward *f, struct err *e) {
    void *zeros = calloc(1, f->counts.bytes + 1);
    if (!zeros)
        return err_set(e, RC_MEMORY, "out of memory");
    enum rc rc = device_upload(f->d, &f->counts, zeros, f->counts.bytes, -1, -1, e);
    free(zeros);
    return rc;
}

enum rc forward_open(forward **out, const struct device *d, const struct forward_shape *shape,
                     const struct weights *w, const struct kvcache *k, trace *t, struct err *e) {
    forward *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(e, RC_MEMORY, "out of memory");
    *f = (struct forward){ .d = d, .c = shape->config, .w = w, .k = k, .trace = t };
    f->shape = *shape;
    f->fuses = env_flag(ENV_GRETA_FUSE);
    graphs_open(&f->graphs);
    enum rc rc = RC_OK;
    for (int id = 0; !rc && id < FORWARD_BUFFERS; id++) {
        const struct forward_buffer *b = forward_buffer_at((enum forward_buffer_id)id);
        rc = device_alloc(d, &f->buffer[id], b->name, b->type,
                          forward_buffer_bytes(shape, (enum forward_buffer_id)id), e);
    }
    for (int id = 0; !rc && id < UPLOADS; id++) {
        f->held[id].numbers = malloc(f->buffer[id].bytes + 1);
        rc = f->held[id].numbers ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    }
    rc = rc ? rc : clear_counts(f, e);
    if (rc)
        forward_close(&f);
    else
        *out = f;
    return rc;
}

struct kern_view *forward_views(forward *f) {
    return f->buffer;
}

uint32_t forward_dim(const forward *f) {
    return f->c->dim;
}

void forward_set_inject(forward *f, inject *i) {
    f->inject = i;
}

void forward_close(forward **f) {
    if (!*f)
        return;
    graphs_close(&(*f)->graphs, (*f)->d);
    for (int id = 0; id < FORWARD_BUFFERS; id++)
        device_free((*f)->d, &(*f)->buffer[id]);
    for (int id = 0; id < UPLOADS; id++)
        free((*f)->held[id].numbers);
    free(*f);
    *f = NULL;
}

/* ---- the numbers of a batch ------------------------------------------------------------------ */

/* Whether the device holds these numbers already. An injected fault may have changed what it holds.
 */
static bool is_held(const forward *f, enum forward_buffer_id id, const int32_t *from,
                    uint32_t count) {
    return !count || (!f->inject && count <= f->held[id].count &&
                      !memcmp(f->held[id].numbers, from, count * sizeof *from));
}

/* Uploads those numbers of the batch that the device does not hold. If every sequence continues
 * with the token that the device drew (forward_advances()), these are only new blocks of the cache,
 * at every KERN_BLOCKth position, and the random numbers of sequences that are not greedy. */
static enum rc upload_batch(forward *f, struct err *e) {
    const struct forward_batch *b = f->b;
    bool draws = b->settings && forward_ends(f);
    const struct {
        const int32_t *from;
        uint32_t count;
    } in[UPLOADS] = { [FORWARD_ids] = { b->ids, b->tokens },
                      [FORWARD_pos] = { b->pos, b->tokens },
                      [FORWARD_seqs] = { b->seqs, b->tokens },
                      [FORWARD_tables] = { b->tables, b->sequences * b->table_width },
                      [FORWARD_rows] = { b->rows, forward_ends(f) ? b->wanted : 0 },
                      [FORWARD_settings] = { b->settings, draws ? b->wanted * KERN_SETTINGS : 0 } };
    struct gcore_d2h_item items[UPLOADS];
    size_t count = 0;
    for (int id = 0; id < UPLOADS; id++) {
        const struct kern_view *to = &f->buffer[id];
        if (is_held(f, (enum forward_buffer_id)id, in[id].from, in[id].count))
            continue;
        f->held[id].count = 0;
        items[count++] = (struct gcore_d2h_item){
            .to = to->ptr,
            .from = in[id].from,
            .kind = hipMemcpyHostToDevice,
            .meta = { to->name, b->step, -1, 0, in[id].count * sizeof(int32_t), to->bytes },
        };
    }
    struct gcore_d2h_result r;
    if (count && gcore_d2h_batch(items, count, f->d->stream, &r) != GCORE_D2H_OK)
        return device_copy_failed("H2D", &r, e);
    for (int id = 0; id < UPLOADS; id++)
        if (!f->held[id].count && in[id].count) {
            memcpy(f->held[id].numbers, in[id].from, in[id].count * sizeof(int32_t));
            f->held[id].count = in[id].count;
        }
    return RC_OK;
}

enum rc forward_begin(forward *f, const struct forward_batch *b, struct err *e) {
    if (b->tokens > f->shape.tokens || b->wanted > f->shape.wanted ||
        (b->settings && b->wanted > f->shape.sequences) || b->sequences > f->shape.sequences ||
        b->table_width > KERN_BLOCKS(f->shape.context))
        return err_set(e, RC_RANGE,
                       "a batch of %u tokens (%u wanted) exceeds the buffers for %u (%u)",
                       b->tokens, b->wanted, f->shape.tokens, f->shape.wanted);
    f->b = b;
    if (forward_begins(f))
        gcore_mark("step", (uint64_t)b->step, b->tokens, b->wanted);
    enum rc rc = device_use(f->d, e);
    return rc ? rc : upload_batch(f, e);
}

/* Notes the ids and positions that the device holds after a pass that drew these tokens; NULL: the
 * pass failed, so they are unknown. */
static void note_advance(forward *f, const int32_t *tokens) {
    if (!forward_advances(f))
        return;
    if (!tokens)
        f->held[FORWARD_ids].count = f->held[FORWARD_pos].count = 0;
    for (uint32_t i = 0; tokens && i < f->b->tokens; i++) {
        f->held[FORWARD_ids].numbers[i] = tokens[i];
        f->held[FORWARD_pos].numbers[i]++;
    }
}

/* ---- the pass ------------------------------------------------------------------------------- */

static enum rc embed(forward *f, struct err *e) {
    struct kern_embed a = { .out = f->x,
                            .table = f->w->tensor[CONFIG_TENSOR_TOKEN_EMBD],
                            .ids = f->ids,
                            .tokens = f->b->tokens,
                            .dim = f->c->dim,
                            .vocab = f->c->vocab,
                            .packed = f->w->packed,
                            .scale = f->c->embedding_scale };
    return kern_embed(f->d->kernels, f->d->stream, &a, e);
}

/* Launches are queued much faster than they run. For a large batch the host stays at most one layer
 * ahead of the device, so that Ctrl-C takes effect soon. */
static bool pauses(const struct forward_batch *b) {
    enum { LARGE = 32 };
    return b->tokens >= LARGE && b->interrupted;
}

static enum rc pause_between_layers(const forward *f, struct err *e) {
    const struct forward_batch *b = f->b;
    if (!pauses(b))
        return RC_OK;
    enum rc rc = device_wait(f->d, "hipStreamSynchronize", e);
    if (!rc && b->interrupted(b->user))
        rc = err_set(e, RC_BUSY, "interrupted");
    return rc;
}

/* Everything that is queued on the device for a batch: from its tokens, or x of the device before,
 * to x, logits, or the tokens drawn from them. */
static enum rc queue_pass(void *user, struct err *e) {
    forward *f = user;
    const struct forward_batch *b = f->b;
    enum rc rc = forward_begins(f) ? embed(f, e) : RC_OK;
    rc = rc ? rc : forward_turns(f, e);
    for (uint32_t layer = f->shape.first; !rc && layer < f->shape.last; layer++) {
        gcore_mark("layer", layer, (uint64_t)b->step, 0);
        rc = inject_point(f->inject, INJECT_BEFORE, layer, b, e);
        rc = rc ? rc : forward_layer(f, layer, e);
        rc = rc ? rc : inject_point(f->inject, INJECT_AFTER, layer, b, e);
        rc = rc ? rc : pause_between_layers(f, e);
    }
    gcore_mark("layer", (uint64_t)NO_LAYER, (uint64_t)b->step, 0);
    if (rc || !b->wanted || !forward_ends(f))
        return rc;
    rc = forward_logits(f, e);
    return !rc && b->settings ? forward_draw(f, e) : rc;
}

/* Every sequence is continued by one token, and the host has nothing to do between the kernels. */
static bool is_graph(const forward *f) {
    const struct forward_batch *b = f->b;
    return b->tokens == b->sequences && b->wanted == b->tokens && !f->trace && !f->inject &&
           !pauses(b);
}

static enum rc queue(forward *f, struct err *e) {
    enum rc rc = device_use(f->d, e);
    if (rc || !is_graph(f))
        return rc ? rc : queue_pass(f, e);
    struct graphs_key key = { .tokens = f->b->tokens,
                              .table_width = f->b->table_width,
                              .ranges = forward_ranges(f),
                              .cache = f->k->version,
                              .weights = f->w->version,
                              .drawn = f->b->settings != NULL };
    return graphs_run(&f->graphs, f->d, &key, queue_pass, f, e);
}

enum rc forward_queue(forward *f, struct err *e) {
    enum rc rc = queue(f, e);
    if (rc)
        note_advance(f, NULL);
    return rc;
}

/* One small copy per step where the device draws. */
enum rc forward_finish(forward *f, float *logits, int32_t *tokens, struct err *e) {
    const struct forward_batch *b = f->b;
    if (!b->wanted)
        return device_wait(f->d, "hipStreamSynchronize", e);
    if (b->settings) {
        enum rc rc =
            device_download(f->d, tokens, &f->drawn, b->wanted * sizeof *tokens, b->step, -1, e);
        note_advance(f, rc ? NULL : tokens);
        return rc;
    }
    return device_download(f->d, logits, &f->logits,
                           (uint64_t)b->wanted * f->c->vocab * sizeof *logits, b->step, -1, e);
}
