/* kernels.c - the kernels of kernel.def on the CPU, written once over the inner loops of ops.h.
 *
 * A block's result does not depend on how the blocks are divided among cores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "model/quant.h"

#define FLOATS(view) ((float *)(view).ptr)
#define INTS(view)   ((const int32_t *)(view).ptr)

enum { BLOCK_MAX = 256 }; /* elements of a block, of any type */

/* This thread's room for decoded weights, or a head; grows to the largest there is. */
static _Thread_local float *scratch;
static _Thread_local size_t scratch_room;

static float *need_scratch(size_t floats) {
    if (scratch_room < floats) {
        free(scratch);
        scratch = malloc(floats * sizeof *scratch);
        scratch_room = scratch ? floats : 0;
    }
    if (!scratch)
        abort(); /* a kernel has nobody to tell */
    return scratch;
}

void cpu_rmsnorm(const struct greta_soft_work *work, const struct kern_rmsnorm *a) {
    const float *weight = FLOATS(a->weight);
    for (uint64_t r = work->first; r < work->last; r++) {
        const float *x = FLOATS(a->x) + r * a->dim;
        float *out = FLOATS(a->out) + r * a->dim;
        double sum = 0;
        for (uint32_t i = 0; i < a->dim; i++)
            sum += (double)x[i] * x[i];
        float scale = (float)(1 / sqrt(sum / a->dim + (double)a->eps));
        for (uint32_t i = 0; i < a->dim; i++)
            out[i] = x[i] * scale * weight[i];
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* Turns one pair of elements, at i and j, in each of the heads. */
static void rotate(float *x, uint32_t heads, uint32_t head_size, uint32_t i, uint32_t j,
                   float cosine, float sine) {
    for (uint32_t h = 0; h < heads; h++, x += head_size) {
        float a = x[i], b = x[j];
        x[i] = a * cosine - b * sine;
        x[j] = a * sine + b * cosine;
    }
}

void cpu_rope(const struct greta_soft_work *work, const struct kern_rope *a) {
    for (uint64_t t = work->first; t < work->last; t++) {
        int32_t pos = INTS(a->pos)[t];
        float *q = FLOATS(a->q) + t * a->heads * a->head_size;
        float *k = FLOATS(a->k) + t * a->kv_heads * a->head_size;
        for (uint32_t pair = 0; pair < a->rope_dims / 2; pair++) {
            double angle = (double)pos * FLOATS(a->freqs)[pair];
            float cosine = (float)cos(angle) * a->magnitude;
            float sine = (float)sin(angle) * a->magnitude;
            uint32_t i = a->halves ? pair : 2 * pair;
            uint32_t j = a->halves ? pair + a->rope_dims / 2 : 2 * pair + 1;
            rotate(q, a->heads, a->head_size, i, j, cosine, sine);
            rotate(k, a->kv_heads, a->head_size, i, j, cosine, sine);
        }
    }
}

void cpu_kv_store(const struct greta_soft_work *work, const struct kern_kv_store *a) {
    enum tensor_type type = (enum tensor_type)a->keys.type;
    size_t row = tensor_type_row_bytes(type, a->width);
    quant_encode_fn encode = quant_encoder(type);
    for (uint64_t t = work->first; t < work->last; t++) {
        size_t at = (size_t)INTS(a->slots)[t] * row;
        encode(FLOATS(a->k) + t * a->width, (char *)a->keys.ptr + at, a->width, QUANT_FAST);
        encode(FLOATS(a->v) + t * a->width, (char *)a->values.ptr + at, a->width, QUANT_FAST);
    }
}

/* Where the keys and values of one token's positions are, nearest last: rows [from, fresh) of the
 * cache, then the batch itself from token `token` on. */
struct past {
    uint64_t from, fresh, to; /* cache rows; fresh <= to = the token's own row + 1 */
    uint64_t token;           /* of row `fresh` */
};

static struct past find_past(const struct kern_attention *a, uint64_t t) {
    const int32_t *slots = INTS(a->slots);
    uint64_t pos = (uint64_t)INTS(a->pos)[t], slot = (uint64_t)slots[t];
    uint64_t seen = a->window && pos + 1 > a->window ? a->window : pos + 1;
    uint64_t here = 1; /* positions of this sequence that end with t in this batch */
    while (here <= t && here < seen && slots[t - here] == slots[t] - (int32_t)here)
        here++;
    return (struct past){ slot + 1 - seen, slot + 1 - here, slot + 1, t + 1 - here };
}

/* One head's key or value at a row: in place if it is in the batch, or F16 in the cache (*f16),
 * else decoded. */
static const void *row_of(const struct kern_attention *a, const struct past *p, uint64_t row,
                          uint32_t head, const struct kern_view *cache,
                          const struct kern_view *batch, bool *f16) {
    size_t width = (size_t)a->kv_heads * a->head_size, at = (size_t)head * a->head_size;
    enum tensor_type type = (enum tensor_type)cache->type;
    *f16 = false;
    if (row >= p->fresh)
        return FLOATS(*batch) + (p->token + row - p->fresh) * width + at;
    const char *bytes = (const char *)cache->ptr + row * tensor_type_row_bytes(type, width);
    *f16 = type == TENSOR_TYPE_F16;
    if (*f16)
        return (const uint16_t *)(const void *)bytes + at;
    float *decoded = need_scratch((size_t)a->head_size + BLOCK_MAX);
    ops()->decode(type, bytes + tensor_type_row_bytes(type, at), decoded, a->head_size);
    return decoded;
}

static float key_dot(const struct kern_attention *a, const struct past *p, const float *q,
                     uint64_t row, uint32_t head) {
    bool f16;
    const void *key = row_of(a, p, row, head, &a->keys, &a->k, &f16);
    return f16 ? ops()->dot_f16(q, key, a->head_size) : ops()->dot(q, key, a->head_size);
}

static void add_value(const struct kern_attention *a, const struct past *p, float *out,
                      float weight, uint64_t row, uint32_t head) {
    bool f16;
    const void *value = row_of(a, p, row, head, &a->values, &a->v, &f16);
    if (f16)
        ops()->axpy_f16(out, weight, value, a->head_size);
    else
        ops()->axpy(out, weight, value, a->head_size);
}

enum { TILE = 64 }; /* rows whose scores are held at once */

/* One query head over all of its past: softmax with a running maximum, so that no row of scores is
 * ever stored whole. */
static void attend(const struct kern_attention *a, const struct past *p, const float *q, float *out,
                   uint32_t kv_head) {
    float score[TILE], highest = -INFINITY, total = 0;
    memset(out, 0, a->head_size * sizeof *out);
    for (uint64_t tile = p->from; tile < p->to; tile += TILE) {
        uint64_t count = p->to - tile < TILE ? p->to - tile : TILE;
        float top = highest;
        for (uint64_t i = 0; i < count; i++) {
            score[i] = a->scale * key_dot(a, p, q, tile + i, kv_head);
            top = score[i] > top ? score[i] : top;
        }
        float shrink = highest == -INFINITY ? 0 : expf(highest - top);
        total *= shrink;
        for (uint32_t i = 0; i < a->head_size; i++)
            out[i] *= shrink;
        for (uint64_t i = 0; i < count; i++) {
            float weight = expf(score[i] - top);
            total += weight;
            add_value(a, p, out, weight, tile + i, kv_head);
        }
        highest = top;
    }
    for (uint32_t i = 0; i < a->head_size; i++)
        out[i] /= total;
}

void cpu_attention(const struct greta_soft_work *work, const struct kern_attention *a) {
    uint32_t group = a->heads / a->kv_heads;
    for (uint64_t b = work->first; b < work->last; b++) {
        uint64_t t = b / a->kv_heads;
        uint32_t kv_head = (uint32_t)(b % a->kv_heads);
        struct past past = find_past(a, t);
        for (uint32_t i = 0; i < group; i++) {
            size_t at = (t * a->heads + kv_head * group + i) * a->head_size;
            attend(a, &past, FLOATS(a->q) + at, FLOATS(a->out) + at, kv_head);
        }
    }
}

/* ---- the rest ------------------------------------------------------------------------------- */

void cpu_swiglu(const struct greta_soft_work *work, const struct kern_swiglu *a) {
    for (uint64_t i = work->first * a->hidden; i < work->last * a->hidden; i++) {
        float gate = FLOATS(a->gate)[i];
        FLOATS(a->out)[i] = gate / (1 + expf(-gate)) * FLOATS(a->up)[i];
    }
}

void cpu_take_rows(const struct greta_soft_work *work, const struct kern_take_rows *a) {
    for (uint64_t i = work->first; i < work->last; i++)
        memcpy(FLOATS(a->out) + i * a->dim, FLOATS(a->x) + (size_t)INTS(a->ids)[i] * a->dim,
               a->dim * sizeof(float));
}
