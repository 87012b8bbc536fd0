/* scheduler.c - one pass through the model, top to bottom.
 *
 * T tokens, D = dim, Q = heads * head_size, K = kv_heads * head_size, H = hidden, V = vocab. All
 * activations are F32; weights have the type of the file; the cache is F16 or Q8_0. */
#include "infer/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

/* Attention of few tokens to many positions is divided into ranges, so that all cores have
 * something to do: if of all tokens together there are no more parts than these, or than one token
 * can have. */
enum { PARTS = 64 };

struct scheduler {
    const struct device *d;
    const struct config *c;
    const struct weights *w;
    const struct kvcache *k;
    trace *trace;
    inject *inject;
    uint32_t max_tokens, max_wanted;

    struct kern_view ids, pos, slots; /* [T] int32 */
    struct kern_view rows;            /* [wanted] int32 */
    struct kern_view x;               /* [T, D] the residual stream */
    struct kern_view norm;            /* [T, D] input of a projection */
    struct kern_view q, attn_out;     /* [T, Q] */
    struct kern_view parts;           /* [parts, heads, part]: attention over ranges */
    struct kern_view key, value;      /* [T, K] */
    struct kern_view gate, up;        /* [T, H] */
    struct kern_view levels;          /* [T, D, Q or H] input of a projection, quantised or split */
    struct kern_view last;            /* [wanted, D] */
    struct kern_view logits;          /* [wanted, V] */

    /* the batch that is running */
    const struct scheduler_batch *b;
};

/* ---- buffers -------------------------------------------------------------------------------- */

static enum rc alloc_floats(scheduler *s, struct kern_view *v, const char *name, uint64_t rows,
                            uint64_t width, struct err *e) {
    return device_alloc(s->d, v, name, TENSOR_TYPE_F32, rows * width * sizeof(float), e);
}

static enum rc alloc_ints(scheduler *s, struct kern_view *v, const char *name, uint64_t n,
                          struct err *e) {
    return device_alloc(s->d, v, name, TENSOR_TYPE_I32, n * sizeof(int32_t), e);
}

static enum rc alloc_levels(scheduler *s, struct err *e) {
    uint64_t T = s->max_tokens > s->max_wanted ? s->max_tokens : s->max_wanted, Q, widest;
    Q = (uint64_t)s->c->heads * s->c->head_size;
    widest = s->c->dim > s->c->hidden ? s->c->dim : s->c->hidden;
    widest = Q > widest ? Q : widest;
    uint64_t slabs = (widest + KERN_SLAB - 1) / KERN_SLAB;
    uint64_t slab_bytes = s->w->all_floats ? KERN_SPLIT_BYTES : KERN_SLAB_BYTES;
    return device_alloc(s->d, &s->levels, "levels", TENSOR_TYPE_I8, T * slabs * slab_bytes, e);
}

static uint64_t parts_most(const scheduler *s) {
    uint64_t ranges = KERN_RANGES(s->k->context);
    return ranges > PARTS ? ranges : PARTS;
}

static enum rc alloc_all(scheduler *s, struct err *e) {
    const struct config *c = s->c;
    uint64_t T = s->max_tokens, W = s->max_wanted;
    uint64_t Q = (uint64_t)c->heads * c->head_size, K = (uint64_t)c->kv_heads * c->head_size;
    enum rc rc = alloc_ints(s, &s->ids, "ids", T, e);
    rc = rc ? rc : alloc_ints(s, &s->pos, "pos", T, e);
    rc = rc ? rc : alloc_ints(s, &s->slots, "slots", T, e);
    rc = rc ? rc : alloc_ints(s, &s->rows, "rows", W, e);
    rc = rc ? rc : alloc_floats(s, &s->x, "x", T, c->dim, e);
    rc = rc ? rc : alloc_floats(s, &s->norm, "norm", T, c->dim, e);
    rc = rc ? rc : alloc_floats(s, &s->q, "q", T, Q, e);
    rc = rc ? rc : alloc_floats(s, &s->attn_out, "attn_out", T, Q, e);
    rc = rc ? rc
            : alloc_floats(s, &s->parts, "attn_parts", parts_most(s) * c->heads,
                           KERN_PART(c->head_size), e);
    rc = rc ? rc : alloc_floats(s, &s->key, "k", T, K, e);
    rc = rc ? rc : alloc_floats(s, &s->value, "v", T, K, e);
    rc = rc ? rc : alloc_floats(s, &s->gate, "gate", T, c->hidden, e);
    rc = rc ? rc : alloc_floats(s, &s->up, "up", T, c->hidden, e);
    rc = rc ? rc : alloc_levels(s, e);
    rc = rc ? rc : alloc_floats(s, &s->last, "last", W, c->dim, e);
    return rc ? rc : alloc_floats(s, &s->logits, "logits", W, c->vocab, e);
}

enum rc scheduler_open(scheduler **out, const struct device *d, const struct config *c,
                       const struct weights *w, const struct kvcache *k, uint32_t max_tokens,
                       uint32_t max_wanted, trace *t, struct err *e) {
    scheduler *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, RC_MEMORY, "out of memory");
    *s = (struct scheduler){ .d = d, .c = c, .w = w, .k = k, .trace = t };
    s->max_tokens = max_tokens;
    s->max_wanted = max_wanted;
    enum rc rc = alloc_all(s, e);
    if (rc)
        scheduler_close(&s);
    else
        *out = s;
    return rc;
}

size_t scheduler_buffers(scheduler *s, struct kern_view *out[SCHEDULER_BUFFERS_MAX]) {
    struct kern_view *all[] = {
        &s->ids, &s->pos,   &s->slots, &s->rows, &s->x,    &s->norm,   &s->q,      &s->attn_out,
        &s->key, &s->value, &s->gate,  &s->up,   &s->last, &s->logits, &s->levels, &s->parts,
    };
    _Static_assert(sizeof all <= SCHEDULER_BUFFERS_MAX * sizeof *all, "room for all");
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

void scheduler_set_inject(scheduler *s, inject *i) {
    s->inject = i;
}

void scheduler_close(scheduler **s) {
    if (!*s)
        return;
    struct kern_view *all[SCHEDULER_BUFFERS_MAX];
    size_t count = scheduler_buffers(*s, all);
    for (size_t i = 0; i < count; i++)
        device_free((*s)->d, all[i]);
    free(*s);
    *s = NULL;
}

/* ---- the kernels with this model's sizes ----------------------------------------------------- */

static enum rc rmsnorm(scheduler *s, const struct kern_view *out, const struct kern_view *x,
                       const struct kern_view *weight, uint32_t rows, uint32_t dim, struct err *e) {
    struct kern_rmsnorm a = { *out, *x, *weight, rows, dim, s->c->rms_eps };
    return kern_rmsnorm(s->d->kernels, s->d->stream, &a, e);
}

/* How many activations share a scale. Weights of 256 elements a block have coarser levels: there 32
 * is exact enough. Many rows for a model of floats are split, few are used as they are (0): so few
 * do not pay for unpacking weights into parts. */
static uint32_t run_for(const scheduler *s, const struct kern_view *const *weights, size_t count,
                        uint32_t rows) {
    enum { SPLIT_ROWS = 32 };
    if (s->w->all_floats)
        return rows >= SPLIT_ROWS ? KERN_SPLIT : 0;
    for (size_t i = 0; i < count; i++)
        if (tensor_type_find(weights[i]->type)->block_elements < 256)
            return 16;
    return 32;
}

/* x[rows, k] for matmuls with these weights. */
static enum rc quantize(scheduler *s, const struct kern_view *x, uint32_t rows, uint64_t k,
                        const struct kern_view *const *weights, size_t count, struct err *e) {
    struct kern_quantize a = { s->levels, *x, rows, (uint32_t)k, run_for(s, weights, count, rows) };
    return a.run ? kern_quantize(s->d->kernels, s->d->stream, &a, e) : RC_OK;
}

/* out[T, n] = x[T, k] . weight[n, k] + bias; add: out += … */
static enum rc matmul(scheduler *s, const struct kern_view *out, const struct kern_view *weight,
                      const struct kern_view *bias, const struct kern_view *x, uint32_t rows,
                      uint64_t n, uint64_t k, bool add, bool packed, struct err *e) {
    struct kern_matmul a = { *out,
                             *weight,
                             *x,
                             s->levels,
                             bias ? *bias : *x,
                             rows,
                             (uint32_t)n,
                             (uint32_t)k,
                             bias && bias->ptr,
                             add,
                             run_for(s, &weight, 1, rows),
                             packed };
    enum rc rc = quantize(s, x, rows, k, &weight, 1, e);
    return rc ? rc : kern_matmul(s->d->kernels, s->d->stream, &a, e);
}

static enum rc upload_batch(scheduler *s, struct err *e) {
    const struct scheduler_batch *b = s->b;
    struct {
        const struct kern_view *to;
        const int32_t *from;
        uint32_t count;
    } in[] = { { &s->ids, b->ids, b->tokens },
               { &s->pos, b->pos, b->tokens },
               { &s->slots, b->slots, b->tokens },
               { &s->rows, b->rows, b->wanted } };
    struct gcore_d2h_item items[4];
    for (size_t i = 0; i < 4; i++)
        items[i] = (struct gcore_d2h_item){
            .to = in[i].to->ptr,
            .from = in[i].from,
            .kind = hipMemcpyHostToDevice,
            .meta = { in[i].to->name, b->step, -1, 0, in[i].count * sizeof(int32_t),
                      in[i].to->bytes },
        };
    struct gcore_d2h_result r;
    if (gcore_d2h_batch(items, 4, s->d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("H2D", &r, e);
}

/* ---- one block ------------------------------------------------------------------------------ */

enum { NO_LAYER = -1 };

static enum rc look(scheduler *s, enum trace_point point, const char *part, int32_t layer,
                    const struct kern_view *view, uint64_t rows, uint64_t width, struct err *e) {
    struct trace_place at = { s->b->step, layer, -1, part, 0 };
    return trace_tensor(s->trace, s->d, point, view, rows, width, &at, e);
}

/* x[rows, D] normalised into out, which may be x; part says which norm it is. */
static enum rc norm_and_look(scheduler *s, const char *part, int32_t layer,
                             const struct kern_view *out, const struct kern_view *x,
                             const struct kern_view *weight, uint32_t rows, struct err *e) {
    enum rc rc = look(s, TRACE_RMSNORM_IN, part, layer, x, rows, s->c->dim, e);
    rc = rc ? rc : rmsnorm(s, out, x, weight, rows, s->c->dim, e);
    rc = rc ? rc : look(s, TRACE_RMSNORM_OUT, part, layer, out, rows, s->c->dim, e);
    return rc ? rc : look(s, TRACE_RMSNORM_WEIGHT, part, layer, weight, 1, s->c->dim, e);
}

/* The cache of every sequence in the batch as far as it is filled. */
static enum rc look_at_cache(scheduler *s, int32_t layer, struct err *e) {
    const struct scheduler_batch *b = s->b;
    const struct kvcache_layer *cache = &s->k->layers[layer];
    uint64_t K = (uint64_t)s->c->kv_heads * s->c->head_size;
    enum rc rc = RC_OK;
    for (uint32_t t = 0; !rc && t < b->tokens; t++) {
        if (t + 1 < b->tokens && b->slots[t + 1] == b->slots[t] + 1)
            continue; /* not the last of its sequence */
        uint32_t first = (uint32_t)(b->slots[t] - b->pos[t]), rows = (uint32_t)b->pos[t] + 1;
        struct trace_place at = { b->step, layer, (int32_t)(first / s->k->context), "keys", first };
        rc = trace_tensor(s->trace, s->d, TRACE_KV_CACHE, &cache->keys, rows, K, &at, e);
        at.part = "values";
        rc =
            rc ? rc : trace_tensor(s->trace, s->d, TRACE_KV_CACHE, &cache->values, rows, K, &at, e);
    }
    return rc;
}

/* A projection that is added to x as it is computed has no buffer of its own. To be looked at it is
 * computed once more, into norm, which is free at that time. */
static enum rc look_at_product(scheduler *s, uint32_t layer, enum trace_point point,
                               enum config_tensor weight, enum config_tensor bias,
                               const struct kern_view *x, uint64_t k, struct err *e) {
    const struct kern_view *w = s->w->layers[layer].tensor;
    if (!trace_wants(s->trace, point, s->b->step, (int32_t)layer))
        return RC_OK;
    enum rc rc = matmul(s, &s->norm, &w[weight], bias == CONFIG_TENSOR_COUNT ? NULL : &w[bias], x,
                        s->b->tokens, s->c->dim, k, false, s->w->layers[layer].packed, e);
    return rc ? rc : look(s, point, NULL, (int32_t)layer, &s->norm, s->b->tokens, s->c->dim, e);
}

/* q, k, v = norm . Wq, Wk, Wv; heads normalised where the model does that, then rotated */
static enum rc project_qkv(scheduler *s, uint32_t layer, struct err *e) {
    const struct config *c = s->c;
    const struct kern_view *w = s->w->layers[layer].tensor;
    uint32_t T = s->b->tokens;
    uint64_t Q = (uint64_t)c->heads * c->head_size, K = (uint64_t)c->kv_heads * c->head_size;
    struct kern_matmul_qkv a = { s->q,
                                 s->key,
                                 s->value,
                                 w[CONFIG_TENSOR_ATTN_Q],
                                 w[CONFIG_TENSOR_ATTN_K],
                                 w[CONFIG_TENSOR_ATTN_V],
                                 s->norm,
                                 s->levels,
                                 w[CONFIG_TENSOR_ATTN_Q_BIAS],
                                 w[CONFIG_TENSOR_ATTN_K_BIAS],
                                 w[CONFIG_TENSOR_ATTN_V_BIAS],
                                 T,
                                 (uint32_t)Q,
                                 (uint32_t)K,
                                 c->dim,
                                 w[CONFIG_TENSOR_ATTN_Q_BIAS].ptr != NULL,
                                 w[CONFIG_TENSOR_ATTN_K_BIAS].ptr != NULL,
                                 w[CONFIG_TENSOR_ATTN_V_BIAS].ptr != NULL,
                                 0,
                                 s->w->layers[layer].packed };
    const struct kern_view *weights[] = { &a.q_weight, &a.k_weight, &a.v_weight };
    a.run = run_for(s, weights, 3, T);
    enum rc rc = quantize(s, &s->norm, T, c->dim, weights, 3, e);
    rc = rc ? rc : kern_matmul_qkv(s->d->kernels, s->d->stream, &a, e);
    if (!rc && w[CONFIG_TENSOR_ATTN_Q_NORM].ptr)
        rc = rmsnorm(s, &s->q, &s->q, &w[CONFIG_TENSOR_ATTN_Q_NORM], T * c->heads, c->head_size, e);
    if (!rc && w[CONFIG_TENSOR_ATTN_K_NORM].ptr)
        rc = rmsnorm(s, &s->key, &s->key, &w[CONFIG_TENSOR_ATTN_K_NORM], T * c->kv_heads,
                     c->head_size, e);
    if (rc)
        return rc;
    struct kern_rope rope = { s->q,
                              s->key,
                              s->pos,
                              s->w->rope_freqs,
                              T,
                              c->heads,
                              c->kv_heads,
                              c->head_size,
                              c->rope_dims,
                              c->rope_style == CONFIG_ROPE_HALVES,
                              (float)c->rope_magnitude };
    return kern_rope(s->d->kernels, s->d->stream, &rope, e);
}

/* Into how many ranges the contexts of this batch are divided: 1 if they are not. */
static uint32_t ranges_for(const scheduler *s) {
    uint64_t longest = 0, ranges;
    for (uint32_t t = 0; t < s->b->tokens; t++)
        longest = (uint64_t)s->b->pos[t] >= longest ? (uint64_t)s->b->pos[t] + 1 : longest;
    ranges = KERN_RANGES(longest);
    return ranges && ranges * s->b->tokens <= parts_most(s) ? (uint32_t)ranges : 1;
}

/* attn_out = softmax(q . keys) values, over this token and all before it in its sequence */
static enum rc attend(scheduler *s, uint32_t layer, struct err *e) {
    const struct config *c = s->c;
    const struct kvcache_layer *cache = &s->k->layers[layer];
    uint32_t rows = s->k->sequences * s->k->context;
    struct kern_kv_store store = { cache->keys,
                                   cache->values,
                                   s->key,
                                   s->value,
                                   s->slots,
                                   s->b->tokens,
                                   c->kv_heads * c->head_size,
                                   rows };
    enum rc rc = kern_kv_store(s->d->kernels, s->d->stream, &store, e);
    if (rc)
        return rc;
    /* Quantised weights want the same bits for any batch, floats the nearest to exact. */
    bool fresh = s->w->all_floats && s->b->tokens > 1;
    uint32_t ranges = ranges_for(s);
    struct kern_attention a = { s->attn_out,   s->parts, s->q,
                                s->key,        s->value, cache->keys,
                                cache->values, s->pos,   s->slots,
                                s->b->tokens,  c->heads, c->kv_heads,
                                c->head_size,  rows,     c->sliding_window,
                                ranges,        fresh,    c->attention_scale };
    rc = kern_attention(s->d->kernels, s->d->stream, &a, e);
    if (rc || ranges == 1)
        return rc;
    struct kern_attention_merge merge = { s->attn_out, s->parts,     s->b->tokens,
                                          c->heads,    c->head_size, ranges };
    return kern_attention_merge(s->d->kernels, s->d->stream, &merge, e);
}

/* x += attention(norm(x)) . Wo */
static enum rc attention_half(scheduler *s, uint32_t layer, struct err *e) {
    const struct config *c = s->c;
    const struct kern_view *w = s->w->layers[layer].tensor;
    uint32_t T = s->b->tokens;
    uint64_t Q = (uint64_t)c->heads * c->head_size, K = (uint64_t)c->kv_heads * c->head_size;
    int32_t l = (int32_t)layer;
    enum rc rc =
        norm_and_look(s, "attn_norm", l, &s->norm, &s->x, &w[CONFIG_TENSOR_ATTN_NORM], T, e);
    rc = rc ? rc : project_qkv(s, layer, e);
    rc = rc ? rc : look(s, TRACE_Q, NULL, l, &s->q, T, Q, e);
    rc = rc ? rc : look(s, TRACE_K, NULL, l, &s->key, T, K, e);
    rc = rc ? rc : look(s, TRACE_V, NULL, l, &s->value, T, K, e);
    rc = rc ? rc : attend(s, layer, e);
    rc = rc ? rc : look_at_cache(s, l, e);
    rc = rc ? rc : look(s, TRACE_ATTN_OUT, NULL, l, &s->attn_out, T, Q, e);
    rc = rc ? rc
            : look_at_product(s, layer, TRACE_WO_OUT, CONFIG_TENSOR_ATTN_OUTPUT,
                              CONFIG_TENSOR_ATTN_OUTPUT_BIAS, &s->attn_out, Q, e);
    return rc ? rc
              : matmul(s, &s->x, &w[CONFIG_TENSOR_ATTN_OUTPUT], &w[CONFIG_TENSOR_ATTN_OUTPUT_BIAS],
                       &s->attn_out, T, c->dim, Q, true, s->w->layers[layer].packed, e);
}

/* x += (silu(norm(x) . Wgate) * (norm(x) . Wup)) . Wdown */
static enum rc feed_forward_half(scheduler *s, uint32_t layer, struct err *e) {
    const struct config *c = s->c;
    const struct kern_view *w = s->w->layers[layer].tensor;
    uint32_t T = s->b->tokens;
    enum rc rc = norm_and_look(s, "ffn_norm", (int32_t)layer, &s->norm, &s->x,
                               &w[CONFIG_TENSOR_FFN_NORM], T, e);
    struct kern_matmul_gate_up a = { s->gate,
                                     s->up,
                                     w[CONFIG_TENSOR_FFN_GATE],
                                     w[CONFIG_TENSOR_FFN_UP],
                                     s->norm,
                                     s->levels,
                                     T,
                                     c->hidden,
                                     c->dim,
                                     0,
                                     s->w->layers[layer].packed };
    const struct kern_view *weights[] = { &a.gate_weight, &a.up_weight };
    a.run = run_for(s, weights, 2, T);
    rc = rc ? rc : quantize(s, &s->norm, T, c->dim, weights, 2, e);
    rc = rc ? rc : kern_matmul_gate_up(s->d->kernels, s->d->stream, &a, e);
    if (rc)
        return rc;
    struct kern_swiglu swiglu = { s->gate, s->gate, s->up, T, c->hidden };
    rc = kern_swiglu(s->d->kernels, s->d->stream, &swiglu, e);
    rc = rc ? rc
            : look_at_product(s, layer, TRACE_MLP, CONFIG_TENSOR_FFN_DOWN, CONFIG_TENSOR_COUNT,
                              &s->gate, c->hidden, e);
    return rc ? rc
              : matmul(s, &s->x, &w[CONFIG_TENSOR_FFN_DOWN], NULL, &s->gate, T, c->dim, c->hidden,
                       true, s->w->layers[layer].packed, e);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static enum rc embed(scheduler *s, struct err *e) {
    struct kern_embed a = { s->x,        s->w->tensor[CONFIG_TENSOR_TOKEN_EMBD],
                            s->ids,      s->b->tokens,
                            s->c->dim,   s->c->vocab,
                            s->w->packed };
    return kern_embed(s->d->kernels, s->d->stream, &a, e);
}

static enum rc project_logits(scheduler *s, struct err *e) {
    const struct config *c = s->c;
    uint32_t W = s->b->wanted;
    struct kern_take_rows take = { s->last, s->x, s->rows, W, s->b->tokens, c->dim };
    enum rc rc = kern_take_rows(s->d->kernels, s->d->stream, &take, e);
    rc = rc ? rc
            : norm_and_look(s, "output_norm", NO_LAYER, &s->last, &s->last,
                            &s->w->tensor[CONFIG_TENSOR_OUTPUT_NORM], W, e);
    rc = rc ? rc
            : matmul(s, &s->logits, &s->w->output, NULL, &s->last, W, c->vocab, c->dim, false,
                     s->w->packed, e);
    return rc ? rc : look(s, TRACE_LOGITS, NULL, NO_LAYER, &s->logits, W, c->vocab, e);
}

/* Launches are queued in no time and take long to run. A batch that would keep the user waiting
 * after Ctrl-C does not run ahead by more than a layer. */
static enum rc pause_between_layers(const scheduler *s, struct err *e) {
    enum { LARGE = 32 };
    const struct scheduler_batch *b = s->b;
    if (b->tokens < LARGE || !b->interrupted)
        return RC_OK;
    enum rc rc = device_wait(s->d, "hipStreamSynchronize", e);
    if (!rc && b->interrupted(b->user))
        rc = err_set(e, RC_BUSY, "interrupted");
    return rc;
}

enum rc scheduler_forward(scheduler *s, const struct scheduler_batch *b, float *logits,
                          struct err *e) {
    if (b->tokens > s->max_tokens || b->wanted > s->max_wanted)
        return err_set(e, RC_RANGE,
                       "a batch of %u tokens (%u wanted) exceeds the buffers for %u (%u)",
                       b->tokens, b->wanted, s->max_tokens, s->max_wanted);
    s->b = b;
    gcore_mark("step", (uint64_t)b->step, b->tokens, b->wanted);
    enum rc rc = upload_batch(s, e);
    rc = rc ? rc : embed(s, e);
    for (uint32_t layer = 0; !rc && layer < s->c->layers; layer++) {
        gcore_mark("layer", layer, (uint64_t)b->step, 0);
        rc = inject_point(s->inject, INJECT_BEFORE, layer, b, e);
        rc = rc ? rc : attention_half(s, layer, e);
        rc = rc ? rc : feed_forward_half(s, layer, e);
        rc = rc ? rc : inject_point(s->inject, INJECT_AFTER, layer, b, e);
        rc = rc ? rc : pause_between_layers(s, e);
    }
    gcore_mark("layer", (uint64_t)NO_LAYER, (uint64_t)b->step, 0);
    if (!rc && b->wanted) {
        rc = project_logits(s, e);
        rc =
            rc ? rc
               : device_download(s->d, logits, &s->logits,
                                 (uint64_t)b->wanted * s->c->vocab * sizeof(float), b->step, -1, e);
    } else if (!rc) {
        rc = device_wait(s->d, "hipStreamSynchronize", e);
    }
    s->b = NULL;
    return rc;
}
