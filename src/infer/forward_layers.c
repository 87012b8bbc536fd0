/* forward_layers.c - the kernels of a pass, with a model's sizes.
 *
 * T tokens, D = dim, Q = heads * head_size, K = kv_heads * head_size, H = hidden, V = vocab. All
 * activations are F32; weights have the type of the file; the cache is F16 or Q8_0. */
#include "infer/forward_internal.h"

/* ---- the kernels with this model's sizes ----------------------------------------------------- */

static enum rc rmsnorm(forward *f, const struct kern_view *out, const struct kern_view *x,
                       const struct kern_view *weight, uint32_t rows, uint32_t dim, uint32_t run,
                       struct err *e) {
    struct kern_rmsnorm a = { .out = *out,
                              .x = *x,
                              .weight = *weight,
                              .levels = f->levels,
                              .rows = rows,
                              .dim = dim,
                              .run = run,
                              .eps = f->c->norm_eps };
    return kern_rmsnorm(f->d->kernels, f->d->stream, &a, e);
}

/* The family's norm of rows as wide as the model, also quantised with this run; bias->ptr may be
 * NULL. */
static enum rc normalise(forward *f, const struct kern_view *out, const struct kern_view *x,
                         const struct kern_view *weight, const struct kern_view *bias,
                         uint32_t rows, uint32_t run, struct err *e) {
    if (f->c->norm == CONFIG_RMS_NORM)
        return rmsnorm(f, out, x, weight, rows, f->c->dim, run, e);
    struct kern_layernorm a = { .out = *out,
                                .x = *x,
                                .weight = *weight,
                                .bias = *bias,
                                .levels = f->levels,
                                .rows = rows,
                                .dim = f->c->dim,
                                .biased = bias->ptr != NULL,
                                .run = run,
                                .eps = f->c->norm_eps };
    return kern_layernorm(f->d->kernels, f->d->stream, &a, e);
}

/* How many activations share a scale. Weights of 256 elements per block have coarser levels: there
 * 32 is exact enough. Floats among quantised matrices are multiplied with the activations as they
 * are (0); their rows may have any length. In a model of floats, activations are split into parts
 * if there are many rows. Few rows are used as they are, because unpacking the weights would cost
 * more than it gains, and so are all rows on a GPU. */
static uint32_t run_for(const forward *f, const struct kern_view *const *weights, size_t count,
                        uint32_t rows) {
    enum { SPLIT_ROWS = 32 };
    if (f->w->all_floats)
        return rows >= SPLIT_ROWS && !kern_is_gpu(f->d->kernels) ? KERN_SPLIT : 0;
    bool levels = false, small = false;
    for (size_t i = 0; i < count; i++) {
        levels |= !tensor_type_is_float(weights[i]->type);
        small |= tensor_type_find(weights[i]->type)->block_elements < 256;
    }
    return !levels ? 0 : small ? 16 : 32;
}

/* Whether the kernel that computes rows of this width can quantise them piece by piece: pieces are
 * multiples of 32. Splitting the rows of prompts is left to a kernel of its own. */
static bool can_quantise_pieces(const forward *f, uint32_t run, uint64_t width) {
    bool is_prompt = f->b->tokens != f->b->sequences;
    return run == 0 || (width % 32 == 0 && !(run == KERN_SPLIT && is_prompt));
}

/* x[rows, k] for matmuls with weights that want this run. */
static enum rc quantize(forward *f, const struct kern_view *x, uint32_t rows, uint64_t k,
                        uint32_t run, struct err *e) {
    struct kern_quantize a = {
        .levels = f->levels, .x = *x, .tokens = rows, .k = (uint32_t)k, .run = run
    };
    return run ? kern_quantize(f->d->kernels, f->d->stream, &a, e) : RC_OK;
}

/* What a projection multiplies: x[rows, k], and its levels for quantised weights; NULL: still to be
 * computed. */
struct input {
    const struct kern_view *x, *levels;
    uint32_t rows;
    uint64_t k;
};

/* out[rows, n] = x[rows, k] . weight[n, k] + bias; add: out += … */
static enum rc matmul(forward *f, const struct kern_view *out, const struct kern_view *weight,
                      const struct kern_view *bias, const struct input *in, uint64_t n, bool add,
                      bool packed, struct err *e) {
    struct kern_matmul a = { .out = *out,
                             .weight = *weight,
                             .x = *in->x,
                             .levels = in->levels ? *in->levels : f->levels,
                             .bias = bias ? *bias : *in->x,
                             .tokens = in->rows,
                             .n = (uint32_t)n,
                             .k = (uint32_t)in->k,
                             .biased = bias && bias->ptr,
                             .added = add,
                             .run = run_for(f, &weight, 1, in->rows),
                             .packed = packed };
    enum rc rc = in->levels ? RC_OK : quantize(f, in->x, in->rows, in->k, a.run, e);
    return rc ? rc : kern_matmul(f->d->kernels, f->d->stream, &a, e);
}

/* ---- one block ------------------------------------------------------------------------------ */

static enum rc look(forward *f, enum trace_point point, const char *part, int32_t layer,
                    const struct kern_view *view, uint64_t rows, uint64_t width, struct err *e) {
    struct trace_place at = { .step = f->b->step, .layer = layer, .sequence = -1, .part = part };
    return trace_tensor(f->trace, f->d, point, view, rows, width, &at, e);
}

/* x[rows, D] normalised into out, which may be x, and quantised with this run; part says which norm
 * it is. */
static enum rc norm_and_look(forward *f, const char *part, int32_t layer,
                             const struct kern_view *out, const struct kern_view *x,
                             const struct kern_view *weight, const struct kern_view *bias,
                             uint32_t rows, uint32_t run, struct err *e) {
    enum rc rc = look(f, TRACE_RMSNORM_IN, part, layer, x, rows, f->c->dim, e);
    rc = rc ? rc : normalise(f, out, x, weight, bias, rows, run, e);
    rc = rc ? rc : look(f, TRACE_RMSNORM_OUT, part, layer, out, rows, f->c->dim, e);
    return rc ? rc : look(f, TRACE_RMSNORM_WEIGHT, part, layer, weight, 1, f->c->dim, e);
}

/* The cache of every sequence in the batch as far as it is filled. */
static enum rc look_at_cache(forward *f, int32_t layer, struct err *e) {
    const struct forward_batch *b = f->b;
    const struct kvcache_layer *cache = &f->k->layers[layer];
    uint64_t K = (uint64_t)f->c->kv_heads * f->c->head_size;
    enum rc rc = RC_OK;
    for (uint32_t t = 0; !rc && t < b->tokens; t++) {
        if (t + 1 < b->tokens && b->seqs[t + 1] == b->seqs[t])
            continue; /* not the last of its sequence */
        struct trace_place at = { .step = b->step,
                                  .layer = layer,
                                  .sequence = b->numbers[b->seqs[t]],
                                  .part = "keys",
                                  .blocks = b->tables + (size_t)b->seqs[t] * b->table_width };
        uint32_t rows = (uint32_t)b->pos[t] + 1;
        rc = trace_tensor(f->trace, f->d, TRACE_KV_CACHE, &cache->keys, rows, K, &at, e);
        at.part = "values";
        rc =
            rc ? rc : trace_tensor(f->trace, f->d, TRACE_KV_CACHE, &cache->values, rows, K, &at, e);
    }
    return rc;
}

/* A projection that is added to x while it is computed has no buffer of its own. For a trace it is
 * computed once more, into norm, which is unused at that time. */
static enum rc look_at_product(forward *f, uint32_t layer, enum trace_point point,
                               const struct kern_view *weight, const struct kern_view *bias,
                               const struct input *in, struct err *e) {
    if (!trace_wants(f->trace, point, f->b->step, (int32_t)layer))
        return RC_OK;
    enum rc rc =
        matmul(f, &f->norm, weight, bias, in, f->c->dim, false, f->w->layers[layer].packed, e);
    return rc ? rc : look(f, point, NULL, (int32_t)layer, &f->norm, f->b->tokens, f->c->dim, e);
}

/* The norm before the next block, if the kernel of the norm after a block also computes it; run 0
 * and no weight: it does not. */
struct ahead {
    const struct kern_view *weight;
    uint32_t run;
};

/* Whether the kernel of a norm after a block also computes the norm that follows. */
static bool norms_ahead(const forward *f) {
    return f->fuses && !f->inject && !f->trace && f->c->norm == CONFIG_RMS_NORM;
}

/* x += y[T, k] . weight + bias, a block's last projection; through the norm after the block in
 * families that have one. */
static enum rc add_block(forward *f, uint32_t layer, enum trace_point point,
                         const struct kern_view *weight, const struct kern_view *bias,
                         const struct kern_view *norm, const struct ahead *ahead,
                         const struct input *y, struct err *e) {
    const struct config *c = f->c;
    bool packed = f->w->layers[layer].packed;
    enum rc rc = look_at_product(f, layer, point, weight, bias, y, e);
    if (rc || !norm->ptr)
        return rc ? rc : matmul(f, &f->x, weight, bias, y, c->dim, true, packed, e);
    struct kern_rmsnorm_add a = { .out = f->x,
                                  .x = f->norm,
                                  .weight = *norm,
                                  .next = f->norm,
                                  .next_weight = ahead->weight ? *ahead->weight : *norm,
                                  .levels = f->levels,
                                  .rows = y->rows,
                                  .dim = c->dim,
                                  .normed = ahead->weight != NULL,
                                  .run = ahead->run,
                                  .eps = c->norm_eps };
    rc = matmul(f, &f->norm, weight, bias, y, c->dim, false, packed, e);
    return rc ? rc : kern_rmsnorm_add(f->d->kernels, f->d->stream, &a, e);
}

/* The run that a layer's projections to q, k and v want. */
static uint32_t qkv_run(const forward *f, uint32_t layer) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    const struct kern_view *weights[] = { &w[CONFIG_TENSOR_ATTN_Q], &w[CONFIG_TENSOR_ATTN_K],
                                          &w[CONFIG_TENSOR_ATTN_V] };
    return run_for(f, weights, 3, f->b->tokens);
}

/* The run that a layer's projections into the hidden size want. */
static uint32_t gate_up_run(const forward *f, uint32_t layer) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    const struct kern_view *weights[] = { &w[CONFIG_TENSOR_FFN_UP], &w[CONFIG_TENSOR_FFN_GATE] };
    return run_for(f, weights, weights[1]->ptr ? 2 : 1, f->b->tokens);
}

/* q, k, v = norm . Wq, Wk, Wv */
static enum rc project_qkv(forward *f, uint32_t layer, struct err *e) {
    const struct config *c = f->c;
    const struct kern_view *w = f->w->layers[layer].tensor;
    struct kern_matmul_qkv a = { .q = f->q,
                                 .k = f->key,
                                 .v = f->value,
                                 .q_weight = w[CONFIG_TENSOR_ATTN_Q],
                                 .k_weight = w[CONFIG_TENSOR_ATTN_K],
                                 .v_weight = w[CONFIG_TENSOR_ATTN_V],
                                 .x = f->norm,
                                 .levels = f->levels,
                                 .q_bias = w[CONFIG_TENSOR_ATTN_Q_BIAS],
                                 .k_bias = w[CONFIG_TENSOR_ATTN_K_BIAS],
                                 .v_bias = w[CONFIG_TENSOR_ATTN_V_BIAS],
                                 .tokens = f->b->tokens,
                                 .q_n = c->heads * c->head_size,
                                 .kv_n = c->kv_heads * c->head_size,
                                 .dim = c->dim,
                                 .q_biased = w[CONFIG_TENSOR_ATTN_Q_BIAS].ptr != NULL,
                                 .k_biased = w[CONFIG_TENSOR_ATTN_K_BIAS].ptr != NULL,
                                 .v_biased = w[CONFIG_TENSOR_ATTN_V_BIAS].ptr != NULL,
                                 .run = qkv_run(f, layer),
                                 .packed = f->w->layers[layer].packed };
    return kern_matmul_qkv(f->d->kernels, f->d->stream, &a, e);
}

/* How a layer rotates its heads. */
struct rotation {
    const struct kern_view *freqs, *turns;
    float magnitude;
};

static struct rotation rotation_of(const forward *f, bool local) {
    bool own = local && f->w->rope_local_freqs.ptr;
    return own ? (struct rotation){ &f->w->rope_local_freqs, &f->local_turns, 1 }
               : (struct rotation){ &f->w->rope_freqs, &f->turns, (float)f->c->rope_magnitude };
}

/* The heads of q and k normalised where the model does that, then rotated. */
static enum rc turn_heads(forward *f, uint32_t layer, struct err *e) {
    const struct config *c = f->c;
    const struct kern_view *w = f->w->layers[layer].tensor;
    uint32_t T = f->b->tokens;
    enum rc rc = RC_OK;
    if (w[CONFIG_TENSOR_ATTN_Q_NORM].ptr)
        rc = rmsnorm(f, &f->q, &f->q, &w[CONFIG_TENSOR_ATTN_Q_NORM], T * c->heads, c->head_size, 0,
                     e);
    if (!rc && w[CONFIG_TENSOR_ATTN_K_NORM].ptr)
        rc = rmsnorm(f, &f->key, &f->key, &w[CONFIG_TENSOR_ATTN_K_NORM], T * c->kv_heads,
                     c->head_size, 0, e);
    if (rc)
        return rc;
    const struct rotation r = rotation_of(f, config_is_local(c, layer));
    struct kern_rope rope = { .q = f->q,
                              .k = f->key,
                              .pos = f->pos,
                              .freqs = *r.freqs,
                              .tokens = T,
                              .heads = c->heads,
                              .kv_heads = c->kv_heads,
                              .head_size = c->head_size,
                              .rope_dims = c->rope_dims,
                              .halves = c->rope_style == CONFIG_ROPE_HALVES,
                              .magnitude = r.magnitude };
    return kern_rope(f->d->kernels, f->d->stream, &rope, e);
}

uint32_t forward_ranges(const forward *f) {
    uint64_t longest = 0, ranges;
    for (uint32_t t = 0; t < f->b->tokens; t++)
        longest = (uint64_t)f->b->pos[t] >= longest ? (uint64_t)f->b->pos[t] + 1 : longest;
    ranges = KERN_RANGES(longest);
    return ranges && ranges * f->b->tokens <= forward_parts_most(&f->shape) ? (uint32_t)ranges : 1;
}

/* attn_out = softmax(q . keys) values, over this token and all before it in its sequence */
static enum rc attend(forward *f, uint32_t layer, struct err *e) {
    const struct config *c = f->c;
    const struct kvcache_layer *cache = &f->k->layers[layer];
    uint32_t rows = f->k->blocks * KERN_BLOCK;
    struct kern_kv_store store = { .keys = cache->keys,
                                   .values = cache->values,
                                   .k = f->key,
                                   .v = f->value,
                                   .pos = f->pos,
                                   .seqs = f->seqs,
                                   .tables = f->tables,
                                   .tokens = f->b->tokens,
                                   .width = c->kv_heads * c->head_size,
                                   .rows = rows,
                                   .sequences = f->b->sequences,
                                   .table_width = f->b->table_width };
    enum rc rc = kern_kv_store(f->d->kernels, f->d->stream, &store, e);
    if (rc)
        return rc;
    /* With quantised weights results must not depend on the batch; with floats they are as exact as
     * possible. */
    bool fresh = f->w->all_floats && f->b->tokens > 1;
    uint32_t ranges = forward_ranges(f);
    struct kern_attention a = { .out = f->attn_out,
                                .parts = f->parts,
                                .q = f->q,
                                .k = f->key,
                                .v = f->value,
                                .keys = cache->keys,
                                .values = cache->values,
                                .pos = f->pos,
                                .seqs = f->seqs,
                                .tables = f->tables,
                                .tokens = f->b->tokens,
                                .heads = c->heads,
                                .kv_heads = c->kv_heads,
                                .head_size = c->head_size,
                                .rows = rows,
                                .sequences = f->b->sequences,
                                .table_width = f->b->table_width,
                                .window = config_is_local(c, layer) ? c->sliding_window : 0,
                                .ranges = ranges,
                                .fresh = fresh,
                                .scale = c->attention_scale,
                                .cap = c->attention_cap };
    rc = kern_attention(f->d->kernels, f->d->stream, &a, e);
    if (rc || ranges == 1)
        return rc;
    struct kern_attention_merge merge = { .out = f->attn_out,
                                          .parts = f->parts,
                                          .tokens = f->b->tokens,
                                          .heads = c->heads,
                                          .head_size = c->head_size,
                                          .ranges = ranges };
    return kern_attention_merge(f->d->kernels, f->d->stream, &merge, e);
}

static uint32_t output_run(const forward *f, uint32_t layer) {
    const struct kern_view *output = &f->w->layers[layer].tensor[CONFIG_TENSOR_ATTN_OUTPUT];
    return run_for(f, &output, 1, f->b->tokens);
}

/* Whether every token continues a sequence of its own, and no trace wants values that fused kernels
 * do not write to memory. */
static bool is_step(const forward *f) {
    return f->fuses && !f->inject && !f->trace && f->b->tokens == f->b->sequences;
}

static bool attends_at_once(const forward *f, uint32_t layer) {
    const struct config *c = f->c;
    const struct kern_view *w = f->w->layers[layer].tensor;
    bool both_or_none = !w[CONFIG_TENSOR_ATTN_Q_NORM].ptr == !w[CONFIG_TENSOR_ATTN_K_NORM].ptr;
    return is_step(f) && both_or_none &&
           can_quantise_pieces(f, output_run(f, layer), c->heads / c->kv_heads * c->head_size);
}

enum rc forward_turns(forward *f, struct err *e) {
    enum rc rc = RC_OK;
    for (int local = 0; is_step(f) && !rc && local < (f->w->rope_local_freqs.ptr ? 2 : 1);
         local++) {
        const struct rotation r = rotation_of(f, local);
        struct kern_rope_turns a = { .turns = *r.turns,
                                     .pos = f->pos,
                                     .freqs = *r.freqs,
                                     .tokens = f->b->tokens,
                                     .rope_dims = f->c->rope_dims,
                                     .magnitude = r.magnitude };
        rc = kern_rope_turns(f->d->kernels, f->d->stream, &a, e);
    }
    return rc;
}

/* turn_heads(), attend(), and the levels of attn_out, in one launch */
static enum rc attend_at_once(forward *f, uint32_t layer, struct err *e) {
    const struct config *c = f->c;
    const struct kern_view *w = f->w->layers[layer].tensor;
    const struct kvcache_layer *cache = &f->k->layers[layer];
    struct kern_attention_step a = { .out = f->attn_out,
                                     .parts = f->parts,
                                     .levels = f->levels,
                                     .counts = f->counts,
                                     .q = f->q,
                                     .k = f->key,
                                     .v = f->value,
                                     .q_norm = w[CONFIG_TENSOR_ATTN_Q_NORM],
                                     .k_norm = w[CONFIG_TENSOR_ATTN_K_NORM],
                                     .turns = *rotation_of(f, config_is_local(c, layer)).turns,
                                     .keys = cache->keys,
                                     .values = cache->values,
                                     .pos = f->pos,
                                     .seqs = f->seqs,
                                     .tables = f->tables,
                                     .tokens = f->b->tokens,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_size = c->head_size,
                                     .rope_dims = c->rope_dims,
                                     .halves = c->rope_style == CONFIG_ROPE_HALVES,
                                     .normed = w[CONFIG_TENSOR_ATTN_Q_NORM].ptr != NULL,
                                     .rows = f->k->blocks * KERN_BLOCK,
                                     .sequences = f->b->sequences,
                                     .table_width = f->b->table_width,
                                     .window = config_is_local(c, layer) ? c->sliding_window : 0,
                                     .ranges = forward_ranges(f),
                                     .fresh = f->w->all_floats && f->b->tokens > 1,
                                     .run = output_run(f, layer),
                                     .scale = c->attention_scale,
                                     .cap = c->attention_cap,
                                     .eps = c->norm_eps };
    return kern_attention_step(f->d->kernels, f->d->stream, &a, e);
}

/* turn_heads() and attend(), one kernel after the other */
static enum rc attend_in_steps(forward *f, uint32_t layer, struct err *e) {
    uint32_t T = f->b->tokens, size = f->c->head_size;
    int32_t l = (int32_t)layer;
    enum rc rc = turn_heads(f, layer, e);
    rc = rc ? rc : look(f, TRACE_Q, NULL, l, &f->q, T, (uint64_t)f->c->heads * size, e);
    rc = rc ? rc : look(f, TRACE_K, NULL, l, &f->key, T, (uint64_t)f->c->kv_heads * size, e);
    rc = rc ? rc : look(f, TRACE_V, NULL, l, &f->value, T, (uint64_t)f->c->kv_heads * size, e);
    rc = rc ? rc : attend(f, layer, e);
    return rc ? rc : look_at_cache(f, l, e);
}

/* The norm before a layer's attention, unless the norm after the layer before has done it. */
static enum rc norm_before_attention(forward *f, uint32_t layer, struct err *e) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    if (norms_ahead(f) && layer > f->shape.first &&
        f->w->layers[layer - 1].tensor[CONFIG_TENSOR_FFN_POST_NORM].ptr)
        return RC_OK;
    return norm_and_look(f, "attn_norm", (int32_t)layer, &f->norm, &f->x,
                         &w[CONFIG_TENSOR_ATTN_NORM], &w[CONFIG_TENSOR_ATTN_NORM_BIAS],
                         f->b->tokens, qkv_run(f, layer), e);
}

/* x += attention(norm(x)) . Wo */
static enum rc attention_half(forward *f, uint32_t layer, struct err *e) {
    const struct config *c = f->c;
    const struct kern_view *w = f->w->layers[layer].tensor;
    uint32_t T = f->b->tokens;
    uint64_t Q = (uint64_t)c->heads * c->head_size;
    bool fused = attends_at_once(f, layer);
    int32_t l = (int32_t)layer;
    enum rc rc = norm_before_attention(f, layer, e);
    rc = rc ? rc : project_qkv(f, layer, e);
    rc = rc ? rc : fused ? attend_at_once(f, layer, e) : attend_in_steps(f, layer, e);
    rc = rc ? rc : look(f, TRACE_ATTN_OUT, NULL, l, &f->attn_out, T, Q, e);
    const struct input y = {
        .x = &f->attn_out, .levels = fused ? &f->levels : NULL, .rows = T, .k = Q
    };
    struct ahead ahead = { 0 };
    if (norms_ahead(f))
        ahead = (struct ahead){ &w[CONFIG_TENSOR_FFN_NORM], gate_up_run(f, layer) };
    return rc ? rc
              : add_block(f, layer, TRACE_WO_OUT, &w[CONFIG_TENSOR_ATTN_OUTPUT],
                          &w[CONFIG_TENSOR_ATTN_OUTPUT_BIAS], &w[CONFIG_TENSOR_ATTN_POST_NORM],
                          &ahead, &y, e);
}

static uint32_t down_run(const forward *f, uint32_t layer) {
    const struct kern_view *down = &f->w->layers[layer].tensor[CONFIG_TENSOR_FFN_DOWN];
    return run_for(f, &down, 1, f->b->tokens);
}

static bool activates_at_once(const forward *f, uint32_t layer) {
    return f->fuses && !f->inject && can_quantise_pieces(f, down_run(f, layer), f->c->hidden);
}

/* gate = norm . Wgate, up = norm . Wup; both are Wup in families that have no gate */
static struct kern_matmul_gate_up gate_up(const forward *f, uint32_t layer) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    bool gated = w[CONFIG_TENSOR_FFN_GATE].ptr;
    return (struct kern_matmul_gate_up){
        .gate = f->gate,
        .up = f->up,
        .gate_weight = w[gated ? CONFIG_TENSOR_FFN_GATE : CONFIG_TENSOR_FFN_UP],
        .up_weight = w[CONFIG_TENSOR_FFN_UP],
        .x = f->norm,
        .levels = f->levels,
        .tokens = f->b->tokens,
        .hidden = f->c->hidden,
        .dim = f->c->dim,
        .gelu = f->c->activation == CONFIG_GELU,
        .ungated = !gated,
        .run = gate_up_run(f, layer),
        .packed = f->w->layers[layer].packed,
    };
}

/* gate = activation(norm . Wgate) * (norm . Wup), or activation(norm . Wup + bias) in families that
 * have no gate */
static enum rc activate(forward *f, uint32_t layer, struct err *e) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    const struct input in = { &f->norm, &f->levels, f->b->tokens, f->c->dim };
    const struct kern_matmul_gate_up both = gate_up(f, layer);
    struct kern_swiglu swiglu = { .out = f->gate,
                                  .gate = f->gate,
                                  .up = both.ungated ? f->gate : f->up,
                                  .tokens = both.tokens,
                                  .hidden = both.hidden,
                                  .gelu = both.gelu,
                                  .ungated = both.ungated };
    enum rc rc = both.ungated
                     ? matmul(f, &f->gate, &w[CONFIG_TENSOR_FFN_UP], &w[CONFIG_TENSOR_FFN_UP_BIAS],
                              &in, both.hidden, false, both.packed, e)
                     : kern_matmul_gate_up(f->d->kernels, f->d->stream, &both, e);
    return rc ? rc : kern_swiglu(f->d->kernels, f->d->stream, &swiglu, e);
}

/* The same in one launch, and quantised for Wdown: for more tokens than activate_fused() can do. */
static enum rc activate_tiles(forward *f, uint32_t layer, struct err *e) {
    struct kern_matmul_gate_up a = gate_up(f, layer);
    a.out_levels = f->hidden_levels;
    a.counts = f->counts;
    a.bias = f->w->layers[layer].tensor[CONFIG_TENSOR_FFN_UP_BIAS];
    a.activated = true;
    a.biased = a.ungated && a.bias.ptr;
    a.out_run = down_run(f, layer);
    return kern_matmul_gate_up(f->d->kernels, f->d->stream, &a, e);
}

/* The same for as many tokens as one launch of matmul_activate takes. */
static enum rc activate_fused(forward *f, uint32_t layer, struct err *e) {
    if (f->b->tokens > kern_tokens_most(f->d->kernels))
        return activate_tiles(f, layer, e);
    const struct kern_matmul_gate_up both = gate_up(f, layer);
    const struct kern_view *bias = &f->w->layers[layer].tensor[CONFIG_TENSOR_FFN_UP_BIAS];
    struct kern_matmul_activate a = { .out = f->gate,
                                      .out_levels = f->hidden_levels,
                                      .gate_weight = both.gate_weight,
                                      .up_weight = both.up_weight,
                                      .x = both.x,
                                      .levels = both.levels,
                                      .bias = *bias,
                                      .tokens = both.tokens,
                                      .hidden = both.hidden,
                                      .dim = both.dim,
                                      .biased = both.ungated && bias->ptr,
                                      .gelu = both.gelu,
                                      .ungated = both.ungated,
                                      .run = both.run,
                                      .out_run = down_run(f, layer),
                                      .packed = both.packed };
    return kern_matmul_activate(f->d->kernels, f->d->stream, &a, e);
}

/* x += activate(norm(x)) . Wdown */
static enum rc feed_forward_half(forward *f, uint32_t layer, struct err *e) {
    const struct kern_view *w = f->w->layers[layer].tensor;
    bool fused = activates_at_once(f, layer);
    const struct input y = { .x = &f->gate,
                             .levels = fused ? &f->hidden_levels : NULL,
                             .rows = f->b->tokens,
                             .k = f->c->hidden };
    struct ahead ahead = { 0 };
    if (norms_ahead(f) && layer + 1 < f->shape.last)
        ahead = (struct ahead){ &f->w->layers[layer + 1].tensor[CONFIG_TENSOR_ATTN_NORM],
                                qkv_run(f, layer + 1) };
    enum rc rc = RC_OK;
    if (!norms_ahead(f) || !w[CONFIG_TENSOR_ATTN_POST_NORM].ptr)
        rc = norm_and_look(f, "ffn_norm", (int32_t)layer, &f->norm, &f->x,
                           &w[CONFIG_TENSOR_FFN_NORM], &w[CONFIG_TENSOR_FFN_NORM_BIAS], y.rows,
                           gate_up_run(f, layer), e);
    rc = rc ? rc : fused ? activate_fused(f, layer, e) : activate(f, layer, e);
    return rc ? rc
              : add_block(f, layer, TRACE_MLP, &w[CONFIG_TENSOR_FFN_DOWN],
                          &w[CONFIG_TENSOR_FFN_DOWN_BIAS], &w[CONFIG_TENSOR_FFN_POST_NORM], &ahead,
                          &y, e);
}

/* ---- the pass as a whole --------------------------------------------------------------------- */

enum rc forward_layer(forward *f, uint32_t layer, struct err *e) {
    enum rc rc = attention_half(f, layer, e);
    return rc ? rc : feed_forward_half(f, layer, e);
}

enum rc forward_logits(forward *f, struct err *e) {
    const struct config *c = f->c;
    const struct kern_view *output = &f->w->output;
    uint32_t W = f->b->wanted;
    struct kern_take_rows take = {
        .out = f->last, .x = f->x, .ids = f->rows, .count = W, .tokens = f->b->tokens, .dim = c->dim
    };
    enum rc rc = kern_take_rows(f->d->kernels, f->d->stream, &take, e);
    rc = rc ? rc
            : norm_and_look(f, "output_norm", NO_LAYER, &f->last, &f->last,
                            &f->w->tensor[CONFIG_TENSOR_OUTPUT_NORM],
                            &f->w->tensor[CONFIG_TENSOR_OUTPUT_NORM_BIAS], W,
                            run_for(f, &output, 1, W), e);
    const struct input in = { &f->last, &f->levels, W, c->dim };
    rc = rc ? rc : matmul(f, &f->logits, output, NULL, &in, c->vocab, false, f->w->packed, e);
    struct kern_soft_cap cap = { .x = f->logits, .rows = W, .dim = c->vocab, .cap = c->logit_cap };
    if (!rc && c->logit_cap != 0)
        rc = kern_soft_cap(f->d->kernels, f->d->stream, &cap, e);
    return rc ? rc : look(f, TRACE_LOGITS, NULL, NO_LAYER, &f->logits, W, c->vocab, e);
}

enum rc forward_draw(forward *f, struct err *e) {
    struct kern_shortlist list = { .lists = f->lists,
                                   .logits = f->logits,
                                   .settings = f->settings,
                                   .rows = f->b->wanted,
                                   .vocab = f->c->vocab };
    struct kern_sample sample = { .tokens = f->drawn,
                                  .logits = f->logits,
                                  .lists = f->lists,
                                  .settings = f->settings,
                                  .ids = f->ids,
                                  .pos = f->pos,
                                  .rows = f->b->wanted,
                                  .vocab = f->c->vocab,
                                  .advance = forward_advances(f) };
    enum rc rc = RC_OK;
    if (f->c->vocab > KERN_CHOICES)
        rc = kern_shortlist(f->d->kernels, f->d->stream, &list, e);
    return rc ? rc : kern_sample(f->d->kernels, f->d->stream, &sample, e);
}
