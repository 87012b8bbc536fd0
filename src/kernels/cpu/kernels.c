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

void cpu_embed(const struct greta_soft_work *work, const struct kern_embed *a) {
    size_t row = tensor_type_row_bytes((enum tensor_type)a->table.type, a->dim);
    for (uint64_t t = work->first; t < work->last; t++) {
        uint32_t id = (uint32_t)INTS(a->ids)[t];
        float *out = FLOATS(a->out) + t * a->dim;
        if (id < a->vocab)
            ops()->decode((enum tensor_type)a->table.type, (const char *)a->table.ptr + id * row,
                          out, a->dim);
        else
            memset(out, 0, a->dim * sizeof *out);
    }
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

/* ---- matmul --------------------------------------------------------------------------------- */

/* out[t, row] for all tokens: bias and what was there, as the launch asks. */
static void put(const struct kern_matmul *a, uint64_t t, uint64_t row, float value) {
    float *out = FLOATS(a->out) + t * a->n + row;
    if (a->biased)
        value += FLOATS(a->bias)[row];
    *out = a->added ? *out + value : value;
}

/* Two decoded weight rows (w1 may be w0 where there is only one) against all tokens. */
static void multiply_rows(const struct kern_matmul *a, uint64_t row, unsigned rows, const float *w0,
                          const float *w1) {
    const float *x = FLOATS(a->x);
    uint64_t t = 0;
    for (; t + 4 <= a->tokens; t += 4) {
        float sums[8];
        ops()->dot4x2(x + t * a->k, a->k, w0, w1, a->k, sums);
        for (unsigned i = 0; i < 4; i++)
            for (unsigned j = 0; j < rows; j++)
                put(a, t + i, row + j, sums[2 * i + j]);
    }
    for (; t < a->tokens; t++) {
        put(a, t, row, ops()->dot(x + t * a->k, w0, a->k));
        if (rows == 2)
            put(a, t, row + 1, ops()->dot(x + t * a->k, w1, a->k));
    }
}

/* Decoded weights of this thread's current rows; grows to the longest row there is. */
static _Thread_local float *scratch;
static _Thread_local size_t scratch_room;

static float *need_scratch(size_t floats) {
    if (scratch_room < floats) {
        free(scratch);
        scratch = malloc(floats * sizeof *scratch);
        scratch_room = scratch ? floats : 0;
    }
    return scratch;
}

void cpu_matmul(const struct greta_soft_work *work, const struct kern_matmul *a) {
    enum tensor_type type = (enum tensor_type)a->weight.type;
    size_t row_bytes = tensor_type_row_bytes(type, a->k);
    const char *weights = a->weight.ptr;
    float *w = need_scratch(2 * (size_t)a->k);
    if (!w)
        abort(); /* a kernel has nobody to tell */
    for (uint64_t panel = work->first; panel < work->last; panel++) {
        uint64_t from = panel * KERN_PANEL,
                 to = from + KERN_PANEL < a->n ? from + KERN_PANEL : a->n;
        for (uint64_t row = from; row < to; row += 2) {
            unsigned rows = to - row < 2 ? 1 : 2;
            ops()->decode(type, weights + row * row_bytes, w, a->k);
            if (rows == 2)
                ops()->decode(type, weights + (row + 1) * row_bytes, w + a->k, a->k);
            multiply_rows(a, row, rows, w, rows == 2 ? w + a->k : w);
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

static void rotate(float *head, uint32_t dims, bool halves, const float *cosines,
                   const float *sines) {
    for (uint32_t i = 0; i < dims / 2; i++) {
        float *x = head + (halves ? i : 2 * i), *y = head + (halves ? i + dims / 2 : 2 * i + 1);
        float a = *x, b = *y;
        *x = a * cosines[i] - b * sines[i];
        *y = a * sines[i] + b * cosines[i];
    }
}

enum { HEAD_MAX = 512 };

void cpu_rope(const struct greta_soft_work *work, const struct kern_rope *a) {
    float cosines[HEAD_MAX / 2], sines[HEAD_MAX / 2];
    for (uint64_t t = work->first; t < work->last; t++) {
        int32_t pos = INTS(a->pos)[t];
        for (uint32_t i = 0; i < a->rope_dims / 2; i++) {
            double angle = (double)pos * FLOATS(a->freqs)[i];
            cosines[i] = (float)cos(angle) * a->magnitude;
            sines[i] = (float)sin(angle) * a->magnitude;
        }
        float *q = FLOATS(a->q) + t * a->heads * a->head_size;
        float *k = FLOATS(a->k) + t * a->kv_heads * a->head_size;
        for (uint32_t h = 0; h < a->heads; h++)
            rotate(q + h * a->head_size, a->rope_dims, a->halves, cosines, sines);
        for (uint32_t h = 0; h < a->kv_heads; h++)
            rotate(k + h * a->head_size, a->rope_dims, a->halves, cosines, sines);
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

/* One head of one cache row. F16 is used as it is; other types are decoded to `decoded`. */
static float key_dot(const struct kern_attention *a, const float *q, const char *row, uint32_t head,
                     float *decoded) {
    if (a->keys.type == TENSOR_TYPE_F16)
        return ops()->dot_f16(q, (const uint16_t *)row + head * a->head_size, a->head_size);
    size_t at = tensor_type_row_bytes((enum tensor_type)a->keys.type, head * a->head_size);
    ops()->decode((enum tensor_type)a->keys.type, row + at, decoded, a->head_size);
    return ops()->dot(q, decoded, a->head_size);
}

static void add_value(const struct kern_attention *a, float *out, float weight, const char *row,
                      uint32_t head, float *decoded) {
    if (a->values.type == TENSOR_TYPE_F16) {
        ops()->axpy_f16(out, weight, (const uint16_t *)row + head * a->head_size, a->head_size);
        return;
    }
    size_t at = tensor_type_row_bytes((enum tensor_type)a->values.type, head * a->head_size);
    ops()->decode((enum tensor_type)a->values.type, row + at, decoded, a->head_size);
    ops()->axpy(out, weight, decoded, a->head_size);
}

enum { TILE = 64 }; /* cache rows whose scores are held at once */

/* One query head over cache rows [from, to): softmax with a running maximum, so that no row of
 * scores is ever stored whole. */
static void attend(const struct kern_attention *a, const float *q, float *out, uint32_t kv_head,
                   uint64_t from, uint64_t to) {
    size_t row_bytes =
        tensor_type_row_bytes((enum tensor_type)a->keys.type, (uint64_t)a->kv_heads * a->head_size);
    const char *keys = a->keys.ptr, *values = a->values.ptr;
    float decoded[HEAD_MAX], score[TILE], highest = -INFINITY, total = 0;
    memset(out, 0, a->head_size * sizeof *out);
    for (uint64_t tile = from; tile < to; tile += TILE) {
        uint64_t count = to - tile < TILE ? to - tile : TILE;
        float top = highest;
        for (uint64_t i = 0; i < count; i++) {
            score[i] = a->scale * key_dot(a, q, keys + (tile + i) * row_bytes, kv_head, decoded);
            top = score[i] > top ? score[i] : top;
        }
        float shrink = highest == -INFINITY ? 0 : expf(highest - top);
        total *= shrink;
        for (uint32_t i = 0; i < a->head_size; i++)
            out[i] *= shrink;
        for (uint64_t i = 0; i < count; i++) {
            float weight = expf(score[i] - top);
            total += weight;
            add_value(a, out, weight, values + (tile + i) * row_bytes, kv_head, decoded);
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
        uint64_t pos = (uint64_t)INTS(a->pos)[t], slot = (uint64_t)INTS(a->slots)[t];
        uint64_t seen = a->window && pos + 1 > a->window ? a->window : pos + 1;
        for (uint32_t i = 0; i < group; i++) {
            size_t at = (t * a->heads + kv_head * group + i) * a->head_size;
            attend(a, FLOATS(a->q) + at, FLOATS(a->out) + at, kv_head, slot + 1 - seen, slot + 1);
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
