#include "support/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"
#include "model/quant/quant.h"

struct model {
    const gguf *g;
    struct config c;
    uint32_t count; /* tokens */
};

static void *need(void *p) {
    if (!p) {
        fputs("reference: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* A tensor as doubles, [ne1, ne0]; NULL if the model has none. The caller frees. */
static double *fetch(const struct model *m, enum config_tensor id, uint32_t layer) {
    const struct gguf_tensor *t = config_find_tensor(m->g, id, layer);
    if (!t)
        return NULL;
    float *floats = need(malloc(t->elements * sizeof *floats));
    double *out = need(malloc(t->elements * sizeof *out));
    if (quant_decode_row(t->type, t->data, floats, t->elements, NULL))
        exit(1);
    for (uint64_t i = 0; i < t->elements; i++)
        out[i] = (double)floats[i];
    free(floats);
    return out;
}

/* out[rows, n] = x[rows, k] . w[n, k] + b */
static void multiply(const struct model *m, double *out, const double *x, enum config_tensor weight,
                     enum config_tensor bias, uint32_t layer, uint64_t rows, uint64_t n,
                     uint64_t k) {
    double *w = fetch(m, weight, layer);
    double *b = bias == CONFIG_TENSOR_COUNT ? NULL : fetch(m, bias, layer);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t i = 0; i < n; i++) {
            double sum = b ? b[i] : 0;
            for (uint64_t j = 0; j < k; j++)
                sum += x[r * k + j] * w[i * k + j];
            out[r * n + i] = sum;
        }
    free(w);
    free(b);
}

static void normalise(double *out, const double *x, const double *weight, uint64_t rows,
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

/* ---- rotary positions ------------------------------------------------------------------------ */

/* The pair index at which a rotation makes `turns` turns over the original context. */
static double yarn_index(const struct config *c, double turns) {
    return c->rope_dims * log(c->rope_original_context / (turns * 2 * M_PI)) /
           (2 * log(c->rope_base));
}

static double frequency(const struct config *c, uint32_t pair, double factor) {
    double base = pow(c->rope_base, -2.0 * pair / c->rope_dims) / factor;
    if (c->rope_scaling == CONFIG_ROPE_LINEAR)
        return base / c->rope_factor;
    if (c->rope_scaling != CONFIG_ROPE_YARN)
        return base;
    double low = fmax(0, floor(yarn_index(c, c->yarn_beta_fast)));
    double high = fmin(c->rope_dims - 1, ceil(yarn_index(c, c->yarn_beta_slow)));
    double ramp = fmin(1, fmax(0, (pair - low) / fmax(0.001, high - low)));
    double keep = (1 - ramp) * c->yarn_mix;
    return base / c->rope_factor * (1 - keep) + base * keep;
}

static void turn_heads(const struct model *m, double *x, uint32_t heads) {
    const struct config *c = &m->c;
    double *factors = c->rope_freqs ? fetch(m, CONFIG_TENSOR_ROPE_FREQS, 0) : NULL;
    uint32_t pairs = c->rope_dims / 2;
    for (uint32_t t = 0; t < m->count; t++)
        for (uint32_t h = 0; h < heads; h++)
            for (uint32_t i = 0; i < pairs; i++) {
                double *head = x + ((uint64_t)t * heads + h) * c->head_size;
                double angle = t * frequency(c, i, factors ? factors[i] : 1);
                bool halves = c->rope_style == CONFIG_ROPE_HALVES;
                double *a = head + (halves ? i : 2 * i),
                       *b = head + (halves ? i + pairs : 2 * i + 1);
                double cosine = cos(angle) * c->rope_magnitude;
                double sine = sin(angle) * c->rope_magnitude;
                double u = *a, v = *b;
                *a = u * cosine - v * sine;
                *b = u * sine + v * cosine;
            }
    free(factors);
}

/* ---- a block --------------------------------------------------------------------------------- */

static void attend(const struct model *m, double *out, const double *q, const double *k,
                   const double *v) {
    const struct config *c = &m->c;
    uint32_t group = c->heads / c->kv_heads;
    double *score = need(malloc(m->count * sizeof *score));
    for (uint32_t t = 0; t < m->count; t++)
        for (uint32_t h = 0; h < c->heads; h++) {
            const double *query = q + ((uint64_t)t * c->heads + h) * c->head_size;
            double *to = out + ((uint64_t)t * c->heads + h) * c->head_size;
            uint32_t from =
                c->sliding_window && t + 1 > c->sliding_window ? t + 1 - c->sliding_window : 0;
            double best = -INFINITY, total = 0;
            for (uint32_t s = from; s <= t; s++) {
                const double *key = k + ((uint64_t)s * c->kv_heads + h / group) * c->head_size;
                score[s] = 0;
                for (uint32_t i = 0; i < c->head_size; i++)
                    score[s] += query[i] * key[i];
                score[s] *= (double)c->attention_scale;
                best = fmax(best, score[s]);
            }
            memset(to, 0, c->head_size * sizeof *to);
            for (uint32_t s = from; s <= t; s++) {
                const double *value = v + ((uint64_t)s * c->kv_heads + h / group) * c->head_size;
                double weight = exp(score[s] - best);
                total += weight;
                for (uint32_t i = 0; i < c->head_size; i++)
                    to[i] += weight * value[i];
            }
            for (uint32_t i = 0; i < c->head_size; i++)
                to[i] /= total;
        }
    free(score);
}

static void normalise_heads(const struct model *m, double *x, enum config_tensor id, uint32_t layer,
                            uint32_t heads) {
    double *weight = fetch(m, id, layer);
    if (weight)
        normalise(x, x, weight, (uint64_t)m->count * heads, m->c.head_size, (double)m->c.rms_eps);
    free(weight);
}

static void add_attention(const struct model *m, double *x, double *norm, uint32_t layer) {
    const struct config *c = &m->c;
    uint64_t T = m->count, Q = (uint64_t)c->heads * c->head_size;
    uint64_t K = (uint64_t)c->kv_heads * c->head_size;
    double *weight = fetch(m, CONFIG_TENSOR_ATTN_NORM, layer);
    double *q = need(malloc(T * Q * sizeof *q)), *k = need(malloc(T * K * sizeof *k));
    double *v = need(malloc(T * K * sizeof *v)), *mixed = need(malloc(T * Q * sizeof *mixed));
    normalise(norm, x, weight, T, c->dim, (double)c->rms_eps);
    multiply(m, q, norm, CONFIG_TENSOR_ATTN_Q, CONFIG_TENSOR_ATTN_Q_BIAS, layer, T, Q, c->dim);
    multiply(m, k, norm, CONFIG_TENSOR_ATTN_K, CONFIG_TENSOR_ATTN_K_BIAS, layer, T, K, c->dim);
    multiply(m, v, norm, CONFIG_TENSOR_ATTN_V, CONFIG_TENSOR_ATTN_V_BIAS, layer, T, K, c->dim);
    normalise_heads(m, q, CONFIG_TENSOR_ATTN_Q_NORM, layer, c->heads);
    normalise_heads(m, k, CONFIG_TENSOR_ATTN_K_NORM, layer, c->kv_heads);
    turn_heads(m, q, c->heads);
    turn_heads(m, k, c->kv_heads);
    attend(m, mixed, q, k, v);
    multiply(m, norm, mixed, CONFIG_TENSOR_ATTN_OUTPUT, CONFIG_TENSOR_ATTN_OUTPUT_BIAS, layer, T,
             c->dim, Q);
    for (uint64_t i = 0; i < T * c->dim; i++)
        x[i] += norm[i];
    free(weight);
    free(q);
    free(k);
    free(v);
    free(mixed);
}

static void add_feed_forward(const struct model *m, double *x, double *norm, uint32_t layer) {
    const struct config *c = &m->c;
    uint64_t T = m->count, H = c->hidden;
    double *weight = fetch(m, CONFIG_TENSOR_FFN_NORM, layer);
    double *gate = need(malloc(T * H * sizeof *gate)), *up = need(malloc(T * H * sizeof *up));
    normalise(norm, x, weight, T, c->dim, (double)c->rms_eps);
    multiply(m, gate, norm, CONFIG_TENSOR_FFN_GATE, CONFIG_TENSOR_COUNT, layer, T, H, c->dim);
    multiply(m, up, norm, CONFIG_TENSOR_FFN_UP, CONFIG_TENSOR_COUNT, layer, T, H, c->dim);
    for (uint64_t i = 0; i < T * H; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    multiply(m, norm, gate, CONFIG_TENSOR_FFN_DOWN, CONFIG_TENSOR_COUNT, layer, T, c->dim, H);
    for (uint64_t i = 0; i < T * c->dim; i++)
        x[i] += norm[i];
    free(weight);
    free(gate);
    free(up);
}

/* ---- the model ------------------------------------------------------------------------------- */

double *reference_logits(const gguf *g, const int32_t *tokens, uint32_t count) {
    struct model m = { .g = g, .count = count };
    struct err e;
    if (config_read(g, &m.c, &e)) {
        fprintf(stderr, "reference: %s\n", e.msg);
        return NULL;
    }
    uint64_t T = count, D = m.c.dim;
    double *embedding = fetch(&m, CONFIG_TENSOR_TOKEN_EMBD, 0);
    double *x = need(malloc(T * D * sizeof *x)), *norm = need(malloc(T * D * sizeof *norm));
    double *logits = need(malloc(T * m.c.vocab * sizeof *logits));
    for (uint64_t t = 0; t < T; t++)
        memcpy(x + t * D, embedding + (uint64_t)tokens[t] * D, D * sizeof *x);
    for (uint32_t layer = 0; layer < m.c.layers; layer++) {
        add_attention(&m, x, norm, layer);
        add_feed_forward(&m, x, norm, layer);
    }
    double *weight = fetch(&m, CONFIG_TENSOR_OUTPUT_NORM, 0);
    normalise(norm, x, weight, T, D, (double)m.c.rms_eps);
    multiply(&m, logits, norm, m.c.tied ? CONFIG_TENSOR_TOKEN_EMBD : CONFIG_TENSOR_OUTPUT,
             CONFIG_TENSOR_COUNT, 0, T, m.c.vocab, D);
    free(embedding);
    free(weight);
    free(x);
    free(norm);
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
