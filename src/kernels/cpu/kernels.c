/* kernels.c - the small kernels of kernel.def on the CPU, over the inner loops of ops.h. matmul.c
 * and attention.c have the others.
 *
 * A block's result does not depend on how the blocks are divided among cores. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/scratch.h"

#define FLOATS(view) ((float *)(view).ptr)
#define INTS(view)   ((const int32_t *)(view).ptr)

static float norm_factor(const float *x, uint32_t dim, float eps) {
    return (float)(1 / sqrt(ops()->sum_squares(x, dim) / dim + (double)eps));
}

void cpu_rmsnorm(const struct greta_soft_work *work, const struct kern_rmsnorm *a) {
    for (uint64_t r = work->first; r < work->last; r++) {
        const float *x = FLOATS(a->x) + r * a->dim;
        float *out = FLOATS(a->out) + r * a->dim;
        ops()->scale(out, x, norm_factor(x, a->dim, a->eps), FLOATS(a->weight), a->dim);
        if (a->run)
            levels_put(a->levels.ptr, a->rows, a->dim, a->run, r, out);
    }
}

void cpu_rmsnorm_add(const struct greta_soft_work *work, const struct kern_rmsnorm_add *a) {
    float *scaled = scratch_need(SCRATCH_HEADS, a->dim * sizeof *scaled);
    for (uint64_t r = work->first; r < work->last; r++) {
        const float *x = FLOATS(a->x) + r * a->dim;
        float *out = FLOATS(a->out) + r * a->dim;
        ops()->scale(scaled, x, norm_factor(x, a->dim, a->eps), FLOATS(a->weight), a->dim);
        ops()->add(out, scaled, 0, out, a->dim);
        if (!a->normed)
            continue;
        float *next = FLOATS(a->next) + r * a->dim;
        ops()->scale(next, out, norm_factor(out, a->dim, a->eps), FLOATS(a->next_weight), a->dim);
        if (a->run)
            levels_put(a->levels.ptr, a->rows, a->dim, a->run, r, next);
    }
}

void cpu_layernorm(const struct greta_soft_work *work, const struct kern_layernorm *a) {
    for (uint64_t r = work->first; r < work->last; r++) {
        const float *x = FLOATS(a->x) + r * a->dim;
        float *out = FLOATS(a->out) + r * a->dim;
        ops()->add(out, x, (float)(-ops()->sum(x, a->dim) / a->dim), NULL, a->dim);
        double variance = ops()->sum_squares(out, a->dim) / a->dim;
        ops()->scale(out, out, (float)(1 / sqrt(variance + (double)a->eps)), FLOATS(a->weight),
                     a->dim);
        if (a->biased)
            ops()->add(out, out, 0, FLOATS(a->bias), a->dim);
        if (a->run)
            levels_put(a->levels.ptr, a->rows, a->dim, a->run, r, out);
    }
}

/* Cosines and sines of the angles at a position, `pairs` of each. */
static void find_turns(float *turns, int32_t pos, const float *freqs, uint32_t pairs,
                       float magnitude) {
    for (uint32_t i = 0; i < pairs; i++) {
        double angle = (double)pos * freqs[i];
        turns[i] = (float)cos(angle) * magnitude;
        turns[pairs + i] = (float)sin(angle) * magnitude;
    }
}

void cpu_rope_turns(const struct greta_soft_work *work, const struct kern_rope_turns *a) {
    for (uint64_t t = work->first; t < work->last; t++)
        find_turns(FLOATS(a->turns) + t * a->rope_dims, INTS(a->pos)[t], FLOATS(a->freqs),
                   a->rope_dims / 2, a->magnitude);
}

void cpu_rope(const struct greta_soft_work *work, const struct kern_rope *a) {
    uint32_t pairs = a->rope_dims / 2;
    float *cosines = scratch_need(SCRATCH_HEADS, 2 * (size_t)pairs * sizeof *cosines),
          *sines = cosines + pairs;
    for (uint64_t t = work->first; t < work->last; t++) {
        float *q = FLOATS(a->q) + t * a->heads * a->head_size;
        float *k = FLOATS(a->k) + t * a->kv_heads * a->head_size;
        find_turns(cosines, INTS(a->pos)[t], FLOATS(a->freqs), pairs, a->magnitude);
        void (*rotate)(float *, const float *, const float *, size_t) =
            a->halves ? ops()->rotate_halves : ops()->rotate_neighbours;
        for (uint32_t h = 0; h < a->heads; h++)
            rotate(q + (size_t)h * a->head_size, cosines, sines, pairs);
        for (uint32_t h = 0; h < a->kv_heads; h++)
            rotate(k + (size_t)h * a->head_size, cosines, sines, pairs);
    }
}

void cpu_kv_store(const struct greta_soft_work *work, const struct kern_kv_store *a) {
    enum tensor_type type = (enum tensor_type)a->keys.type;
    int64_t row = (int64_t)tensor_type_row_bytes(type, a->width);
    for (uint64_t t = work->first; t < work->last; t++) {
        const int32_t *table = INTS(a->tables) + (size_t)INTS(a->seqs)[t] * a->table_width;
        int64_t pos = INTS(a->pos)[t];
        int64_t at = (table[pos / KERN_BLOCK] * (int64_t)KERN_BLOCK + pos % KERN_BLOCK) * row;
        cache_encode(type, FLOATS(a->k) + t * a->width, (char *)a->keys.ptr + at, a->width);
        cache_encode(type, FLOATS(a->v) + t * a->width, (char *)a->values.ptr + at, a->width);
    }
}

/* The elements of a block's strips: from *from to the result. */
static uint64_t find_strips(const struct greta_soft_work *work, uint64_t all, uint64_t *from) {
    uint64_t to = work->last * KERN_STRIP;
    *from = work->first * KERN_STRIP;
    return to < all ? to : all;
}

void cpu_swiglu(const struct greta_soft_work *work, const struct kern_swiglu *a) {
    uint64_t from, to = find_strips(work, (uint64_t)a->tokens * a->hidden, &from);
    const float *up = a->ungated ? NULL : FLOATS(a->up) + from;
    (a->gelu ? ops()->geglu : ops()->swiglu)(FLOATS(a->out) + from, FLOATS(a->gate) + from, up,
                                             to - from);
}

void cpu_soft_cap(const struct greta_soft_work *work, const struct kern_soft_cap *a) {
    uint64_t from, to = find_strips(work, (uint64_t)a->rows * a->dim, &from);
    ops()->soft_cap(FLOATS(a->x) + from, a->cap, to - from);
}

void cpu_take_rows(const struct greta_soft_work *work, const struct kern_take_rows *a) {
    for (uint64_t i = work->first; i < work->last; i++)
        memcpy(FLOATS(a->out) + i * a->dim, FLOATS(a->x) + (size_t)INTS(a->ids)[i] * a->dim,
               a->dim * sizeof(float));
}
