#include "support/reference.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/quant/quant.h"

struct model {
    const gguf *g;
    char arch[32];
    uint32_t count;   /* tokens */
    uint32_t context; /* of the run */
    uint32_t dim, layers, heads, kv_heads, head_size, hidden, vocab;
    double eps;
    bool gemma; /* of any generation */

    /* RoPE; of local layers only the base and its frequencies */
    uint32_t rope_dims, original_context;
    double base, local_base, factor, magnitude;
    char scaling[16];
};

static void *need(void *p) {
    if (!p) {
        fputs("reference: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static double *room(uint64_t n) {
    return need(calloc(n, sizeof(double)));
}

/* ---- metadata -------------------------------------------------------------------------------- */

static bool is_arch(const struct model *m, const char *name) {
    return strcmp(m->arch, name) == 0;
}

static const struct gguf_key *find_key(const struct model *m, const char *tail) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->arch, tail);
    return gguf_find_key(m->g, key);
}

/* A number of any type, or the first of an array. */
static double number(const struct model *m, const char *tail, double otherwise) {
    const struct gguf_key *k = find_key(m, tail);
    if (!k)
        return otherwise;
    switch (k->value.type) {
    case GGUF_F32:
    case GGUF_F64:
        return k->value.f;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        return (double)k->value.i;
    case GGUF_ARRAY:
        return gguf_array_f64(&k->value.array, 0);
    default:
        return (double)k->value.u;
    }
}

static uint32_t whole(const struct model *m, const char *tail, uint32_t otherwise) {
    return (uint32_t)number(m, tail, otherwise);
}

static void copy_text(const struct gguf_key *k, char *out, size_t size) {
    if (k && k->value.type == GGUF_STRING)
        snprintf(out, size, "%.*s", (int)k->value.string.len, k->value.string.data);
}

static void read_rope(struct model *m) {
    m->rope_dims = whole(m, "rope.dimension_count", m->head_size);
    m->base = number(m, "rope.freq_base", 10000);
    m->local_base = number(m, "rope.freq_base_swa", is_arch(m, "gemma3") ? 10000 : 0);
    m->factor = number(m, "rope.scaling.factor", 1);
    m->magnitude = number(m, "rope.scaling.attn_factor", 1);
    m->original_context =
        whole(m, "rope.scaling.original_context_length", whole(m, "context_length", 0));
    copy_text(find_key(m, "rope.scaling.type"), m->scaling, sizeof m->scaling);
    if (strcmp(m->scaling, "yarn") == 0 && m->factor > 1)
        m->magnitude *= 1 + 0.1 * log(m->factor);
}

static bool read_model(struct model *m) {
    static const char *const known[] = { "llama",  "qwen2",  "qwen3", "gemma",
                                         "gemma2", "gemma3", "phi3",  "starcoder2" };
    bool found = false;
    copy_text(gguf_find_key(m->g, "general.architecture"), m->arch, sizeof m->arch);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found |= is_arch(m, known[i]);
    if (!found) {
        fprintf(stderr, "reference: architecture '%s'\n", m->arch);
        return false;
    }
    m->gemma = is_arch(m, "gemma") || is_arch(m, "gemma2") || is_arch(m, "gemma3");
    m->dim = whole(m, "embedding_length", 0);
    m->layers = whole(m, "block_count", 0);
    m->heads = whole(m, "attention.head_count", 0);
    m->kv_heads = whole(m, "attention.head_count_kv", m->heads);
    m->head_size = whole(m, "attention.key_length", m->dim / m->heads);
    m->hidden = whole(m, "feed_forward_length", 0);
    m->vocab = (uint32_t)gguf_find_tensor(m->g, "token_embd.weight")->ne[1];
    m->eps = number(m,
                    is_arch(m, "starcoder2") ? "attention.layer_norm_epsilon"
                                             : "attention.layer_norm_rms_epsilon",
                    0);
    read_rope(m);
    return true;
}

/* Gemma alternates: of every 2 (or 6) layers the last attends to all positions, the others to a
 * window. */
static bool is_local(const struct model *m, uint32_t layer) {
    uint32_t period = is_arch(m, "gemma2") ? 2 : is_arch(m, "gemma3") ? 6 : 0;
    period = whole(m, "attention.sliding_window_pattern", period);
    return period == 0 || layer % period < period - 1;
}

static uint32_t window_of(const struct model *m, uint32_t layer) {
    uint32_t window = whole(m, "attention.sliding_window", is_arch(m, "gemma2") ? 4096 : 0);
    return is_local(m, layer) ? window : 0;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A tensor as doubles, [ne1, ne0]; NULL if the file has none. The caller frees. */
static double *fetch(const struct model *m, const char *name, ...) {
    char text[128];
    va_list ap;
    va_start(ap, name);
    vsnprintf(text, sizeof text, name, ap);
    va_end(ap);
    const struct gguf_tensor *t = gguf_find_tensor(m->g, text);
    if (!t)
        return NULL;
    float *floats = need(malloc(t->elements * sizeof *floats));
    double *out = room(t->elements);
    if (quant_decode_row(t->type, t->data, floats, t->elements, NULL))
        exit(1);
    for (uint64_t i = 0; i < t->elements; i++)
        out[i] = (double)floats[i];
    free(floats);
    return out;
}

/* out[rows, n] = x[rows, k] . w[n, k] + b, where b may be NULL */
static void multiply(double *out, const double *x, const double *w, const double *b, uint64_t rows,
                     uint64_t n, uint64_t k) {
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t i = 0; i < n; i++) {
            double sum = b ? b[i] : 0;
            for (uint64_t j = 0; j < k; j++)
                sum += x[r * k + j] * w[i * k + j];
            out[r * n + i] = sum;
        }
}

/* The same with the tensors of a layer called blk.N.NAME.weight and, if there is one, .bias. */
static void project(const struct model *m, double *out, const double *x, uint32_t layer,
                    const char *name, uint64_t n, uint64_t k) {
    double *w = fetch(m, "blk.%u.%s.weight", layer, name);
    double *b = fetch(m, "blk.%u.%s.bias", layer, name);
    multiply(out, x, w, b, m->count, n, k);
    free(w);
    free(b);
}

/* ---- norms and activations ------------------------------------------------------------------- */

static void rms_norm(double *out, const double *x, const double *weight, uint64_t rows,
                     uint64_t dim, double eps) {
    for (uint64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (uint64_t i = 0; i < dim; i++)
            squares += x[r * dim + i] * x[r * dim + i];
        double scale = 1 / sqrt(squares / (double)dim + eps);
        for (uint64_t i = 0; i < dim; i++)
            out[r * dim + i] = x[r * dim + i] * scale * weight[i];
    }
}

static void layer_norm(double *out, const double *x, const double *weight, const double *bias,
                       uint64_t rows, uint64_t dim, double eps) {
    for (uint64_t r = 0; r < rows; r++, x += dim, out += dim) {
        double mean = 0, variance = 0;
        for (uint64_t i = 0; i < dim; i++)
            mean += x[i] / (double)dim;
        for (uint64_t i = 0; i < dim; i++)
            variance += (x[i] - mean) * (x[i] - mean) / (double)dim;
        for (uint64_t i = 0; i < dim; i++)
            out[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i];
    }
}

/* A norm over rows of the model's width; prefix "blk.3.attn_norm", without ".weight". */
static void normalise(const struct model *m, double *out, const double *x, const char *prefix) {
    double *weight = fetch(m, "%s.weight", prefix), *bias = fetch(m, "%s.bias", prefix);
    if (is_arch(m, "starcoder2"))
        layer_norm(out, x, weight, bias, m->count, m->dim, m->eps);
    else
        rms_norm(out, x, weight, m->count, m->dim, m->eps);
    free(weight);
    free(bias);
}

static void normalise_in_layer(const struct model *m, double *out, const double *x, uint32_t layer,
                               const char *name) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "blk.%u.%s", layer, name);
    normalise(m, out, x, prefix);
}

static double activation(const struct model *m, double x) {
    if (m->gemma || is_arch(m, "starcoder2"))
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return x / (1 + exp(-x));
}

static void cap_softly(double *x, uint64_t n, double cap) {
    for (uint64_t i = 0; cap > 0 && i < n; i++)
        x[i] = cap * tanh(x[i] / cap);
}

/* ---- rotary positions ------------------------------------------------------------------------ */

/* The pair index at which a rotation makes `turns` turns over the original context. */
static double yarn_index(const struct model *m, double turns) {
    return m->rope_dims * log(m->original_context / (turns * 2 * M_PI)) / (2 * log(m->base));
}

static double frequency(const struct model *m, uint32_t pair, double divisor) {
    double plain = pow(m->base, -2.0 * pair / m->rope_dims) / divisor;
    if (strcmp(m->scaling, "linear") == 0)
        return plain / m->factor;
    if (strcmp(m->scaling, "yarn") != 0)
        return plain;
    double fast = number(m, "rope.scaling.yarn_beta_fast", 32);
    double slow = number(m, "rope.scaling.yarn_beta_slow", 1);
    double low = fmax(0, floor(yarn_index(m, fast)));
    double high = fmin(m->rope_dims - 1, ceil(yarn_index(m, slow)));
    double ramp = fmin(1, fmax(0, (pair - low) / fmax(0.001, high - low)));
    return plain / m->factor * ramp + plain * (1 - ramp);
}

/* What the frequencies are divided by, if the file has such a table. */
static double *fetch_divisors(const struct model *m) {
    double *table = fetch(m, "rope_freqs.weight");
    if (table)
        return table;
    return fetch(m, m->context > m->original_context ? "rope_factors_long.weight"
                                                     : "rope_factors_short.weight");
}

static void turn_heads(const struct model *m, double *x, uint32_t heads, uint32_t layer) {
    bool own = window_of(m, layer) && m->local_base > 0; /* a base of its own, and no stretching */
    bool neighbours = is_arch(m, "llama");
    double *divisors = fetch_divisors(m);
    double magnitude = own ? 1 : m->magnitude;
    uint32_t pairs = m->rope_dims / 2;
    for (uint32_t t = 0; t < m->count; t++)
        for (uint32_t h = 0; h < heads; h++)
            for (uint32_t i = 0; i < pairs; i++) {
                double *head = x + ((uint64_t)t * heads + h) * m->head_size;
                double turn = own ? pow(m->local_base, -2.0 * i / m->rope_dims)
                                  : frequency(m, i, divisors ? divisors[i] : 1);
                double *a = head + (neighbours ? 2 * i : i);
                double *b = head + (neighbours ? 2 * i + 1 : i + pairs);
                double cosine = cos(t * turn) * magnitude, sine = sin(t * turn) * magnitude;
                double u = *a, v = *b;
                *a = u * cosine - v * sine;
                *b = u * sine + v * cosine;
            }
    free(divisors);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Gemma's 27B models, recognised by their number of layers, divide by the root of dim / heads. */
static double attention_scale(const struct model *m) {
    bool wide =
        (is_arch(m, "gemma2") && m->layers == 46) || (is_arch(m, "gemma3") && m->layers == 62);
    uint32_t width = wide ? m->dim / m->heads : m->head_size;
    return number(m, "attention.scale", 1 / sqrt(width));
}

/* One head of one token over the positions from `from` to its own. */
static void attend_head(const struct model *m, double *out, const double *query, const double *k,
                        const double *v, uint32_t kv_head, uint32_t from, uint32_t token,
                        double *score) {
    uint64_t row = (uint64_t)m->kv_heads * m->head_size, at = (uint64_t)kv_head * m->head_size;
    double best = -INFINITY, total = 0, scale = attention_scale(m);
    for (uint32_t s = from; s <= token; s++) {
        score[s] = 0;
        for (uint32_t i = 0; i < m->head_size; i++)
            score[s] += query[i] * k[s * row + at + i] * scale;
    }
    cap_softly(score + from, token - from + 1,
               number(m, "attn_logit_softcapping", is_arch(m, "gemma2") ? 50 : 0));
    for (uint32_t s = from; s <= token; s++)
        best = fmax(best, score[s]);
    for (uint32_t s = from; s <= token; s++) {
        double weight = exp(score[s] - best);
        total += weight;
        for (uint32_t i = 0; i < m->head_size; i++)
            out[i] += weight * v[s * row + at + i];
    }
    for (uint32_t i = 0; i < m->head_size; i++)
        out[i] /= total;
}

static void attend(const struct model *m, double *out, const double *q, const double *k,
                   const double *v, uint32_t layer) {
    uint32_t group = m->heads / m->kv_heads, window = window_of(m, layer);
    double *score = room(m->count);
    for (uint32_t t = 0; t < m->count; t++)
        for (uint32_t h = 0; h < m->heads; h++) {
            uint64_t at = ((uint64_t)t * m->heads + h) * m->head_size;
            uint32_t from = window && t + 1 > window ? t + 1 - window : 0;
            attend_head(m, out + at, q + at, k, v, h / group, from, t, score);
        }
    free(score);
}

/* Phi-3 has one matrix for all three, rows of queries first. */
static void project_qkv(const struct model *m, double *q, double *k, double *v, const double *x,
                        uint32_t layer) {
    uint64_t Q = (uint64_t)m->heads * m->head_size, K = (uint64_t)m->kv_heads * m->head_size;
    double *fused = is_arch(m, "phi3") ? fetch(m, "blk.%u.attn_qkv.weight", layer) : NULL;
    if (fused) {
        multiply(q, x, fused, NULL, m->count, Q, m->dim);
        multiply(k, x, fused + Q * m->dim, NULL, m->count, K, m->dim);
        multiply(v, x, fused + (Q + K) * m->dim, NULL, m->count, K, m->dim);
    } else {
        project(m, q, x, layer, "attn_q", Q, m->dim);
        project(m, k, x, layer, "attn_k", K, m->dim);
        project(m, v, x, layer, "attn_v", K, m->dim);
    }
    free(fused);
}

static void normalise_heads(const struct model *m, double *x, const char *name, uint32_t layer,
                            uint32_t heads) {
    double *weight = fetch(m, "blk.%u.%s.weight", layer, name);
    if (weight)
        rms_norm(x, x, weight, (uint64_t)m->count * heads, m->head_size, m->eps);
    free(weight);
}

/* x += y, which Gemma normalises first from its second generation on. */
static void add_block(const struct model *m, double *x, double *y, uint32_t layer,
                      const char *post_norm) {
    if (m->gemma && !is_arch(m, "gemma"))
        normalise_in_layer(m, y, y, layer, post_norm);
    for (uint64_t i = 0; i < (uint64_t)m->count * m->dim; i++)
        x[i] += y[i];
}

static void add_attention(const struct model *m, double *x, uint32_t layer) {
    uint64_t T = m->count, Q = (uint64_t)m->heads * m->head_size;
    uint64_t K = (uint64_t)m->kv_heads * m->head_size;
    double *norm = room(T * m->dim), *mixed = room(T * Q);
    double *q = room(T * Q), *k = room(T * K), *v = room(T * K);
    normalise_in_layer(m, norm, x, layer, "attn_norm");
    project_qkv(m, q, k, v, norm, layer);
    normalise_heads(m, q, "attn_q_norm", layer, m->heads);
    normalise_heads(m, k, "attn_k_norm", layer, m->kv_heads);
    turn_heads(m, q, m->heads, layer);
    turn_heads(m, k, m->kv_heads, layer);
    attend(m, mixed, q, k, v, layer);
    project(m, norm, mixed, layer, "attn_output", m->dim, Q);
    add_block(m, x, norm, layer, "post_attention_norm");
    free(norm);
    free(mixed);
    free(q);
    free(k);
    free(v);
}

/* ---- feed-forward ---------------------------------------------------------------------------- */

/* In Phi-3's "up" the rows of the gate come before its own; StarCoder 2 has no gate. */
static void add_feed_forward(const struct model *m, double *x, uint32_t layer) {
    uint64_t T = m->count, H = m->hidden;
    double *norm = room(T * m->dim), *gate = room(T * H), *up = room(T * H);
    double *fused = is_arch(m, "phi3") ? fetch(m, "blk.%u.ffn_up.weight", layer) : NULL;
    normalise_in_layer(m, norm, x, layer, "ffn_norm");
    if (fused) {
        multiply(gate, norm, fused, NULL, T, H, m->dim);
        multiply(up, norm, fused + H * m->dim, NULL, T, H, m->dim);
    } else {
        project(m, up, norm, layer, "ffn_up", H, m->dim);
        if (!is_arch(m, "starcoder2"))
            project(m, gate, norm, layer, "ffn_gate", H, m->dim);
    }
    for (uint64_t i = 0; i < T * H; i++)
        up[i] = is_arch(m, "starcoder2") ? activation(m, up[i]) : activation(m, gate[i]) * up[i];
    project(m, norm, up, layer, "ffn_down", m->dim, H);
    add_block(m, x, norm, layer, "post_ffw_norm");
    free(fused);
    free(norm);
    free(gate);
    free(up);
}

/* ---- the model ------------------------------------------------------------------------------- */

double *reference_logits(const gguf *g, const int32_t *tokens, uint32_t count, uint32_t context) {
    struct model m = { .g = g, .count = count, .context = context ? context : count };
    if (!read_model(&m))
        return NULL;
    uint64_t T = count, D = m.dim;
    double *embedding = fetch(&m, "token_embd.weight"), *output = fetch(&m, "output.weight");
    double *x = room(T * D), *logits = room(T * m.vocab);
    for (uint64_t i = 0; i < T * D; i++)
        x[i] = embedding[(uint64_t)tokens[i / D] * D + i % D] * (m.gemma ? sqrt(m.dim) : 1);
    for (uint32_t layer = 0; layer < m.layers; layer++) {
        add_attention(&m, x, layer);
        add_feed_forward(&m, x, layer);
    }
    normalise(&m, x, x, "output_norm");
    multiply(logits, x, output ? output : embedding, NULL, T, m.vocab, D);
    cap_softly(logits, T * m.vocab,
               number(&m, "final_logit_softcapping", is_arch(&m, "gemma2") ? 30 : 0));
    free(embedding);
    free(output);
    free(x);
    return logits;
}

double reference_distance(const double *reference, const float *logits, uint64_t count) {
    double sum = 0, squares = 0, difference = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += reference[i];
        squares += reference[i] * reference[i];
        difference += fabs(reference[i] - (double)logits[i]);
    }
    double mean = sum / (double)count;
    return difference / (double)count / sqrt(squares / (double)count - mean * mean);
}
