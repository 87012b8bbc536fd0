/* gemv.hip - weights times few tokens, GEMV_TOKENS at most: a wave takes two rows of the weight and its
 * lanes take runs of 32 elements, one after the other, so that every byte of the weight is read once and
 * in order. Levels are multiplied with levels, four at a time, as integers. */

enum { GEMV_ROWS = GEMV_GROUP / WAVES }; /* of a wave */

/* sum + the products of four signed bytes. Where a processor has no instruction for it, it takes
 * several. */
DEVICE i32 dot_bytes(u32 a, u32 b, i32 sum) {
#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1103__) || \
    defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1200__) || defined(__gfx1201__)
    return __builtin_amdgcn_sudot4(true, (i32)a, true, (i32)b, sum, false);
#elif MATRIX_CORES || defined(__gfx906__) || defined(__gfx908__) || defined(__gfx1030__) ||         \
    defined(__gfx1031__) || defined(__gfx1032__)
    return __builtin_amdgcn_sdot4((i32)a, (i32)b, sum, false);
#else
    for (int i = 0; i < 32; i += 8)
        sum += (i32)(i8)(a >> i) * (i32)(i8)(b >> i);
    return sum;
#endif
}

struct sums {
    float of[GEMV_ROWS][GEMV_TOKENS];
};

/* Run r of both rows times the same run of a token. */
DEVICE void add_run(struct sums *s, const struct run run[GEMV_ROWS], const struct levels *l, u32 r,
                    u32 t) {
    u64 slab = slab_of(l, r, t);
    const u32x4 *x = (const u32x4 *)(l->level + slab * SLAB + r % 8 * 32);
    const float *scale = l->scale + slab * SLAB_RUNS + r % 8 * 2;
    const float *sum = l->sum + slab * SLAB_RUNS + r % 8 * 2;
    for (int half = 0; half < 2; half++) {
        u32x4 v = x[half];
        for (int row = 0; row < GEMV_ROWS; row++) {
            i32 dot = 0;
            for (int i = 0; i < 4; i++)
                dot = dot_bytes(run[row].level[half * 4 + i], v[i], dot);
            float part = run[row].scale[half] * scale[half] * (float)dot;
            s->of[row][t] += __builtin_fmaf(-run[row].min[half], sum[half], part);
        }
    }
}

DEVICE void gemv_levels(u32 type, const struct product *p, const struct input *in, u32 first,
                        struct sums *s) {
    const u32 runs = whole_blocks(type, in->k) / 32;
    const u64 bytes = row_bytes(type, in->k);
    for (u32 r = lane_id(); r < runs; r += WAVE) {
        struct run run[GEMV_ROWS];
        for (int row = 0; row < GEMV_ROWS; row++) /* beyond the last row, that one again */
            decode_run(type, &run[row], p->weight + least(first + row, p->n - 1) * bytes, r);
        for (u32 t = 0; t < GEMV_TOKENS; t++)
            if (t < in->tokens)
                add_run(s, run, &in->levels, r, t);
    }
}

/* Elements 8i to 8i + 7 of a row of floats. */
DEVICE void load_floats(u32 type, const u8 *row, u32 i, float to[8]) {
    u64 at = (u64)i * 8;
    u32x4 a = load_u32x4(row + (type == TYPE_F32 ? at * 4 : at * 2));
    if (type == TYPE_F32) {
        u32x4 b = load_u32x4(row + at * 4 + 16);
        for (int j = 0; j < 4; j++) {
            to[j] = float_of(a[j]);
            to[j + 4] = float_of(b[j]);
        }
        return;
    }
    for (int j = 0; j < 8; j++) {
        u32 bits = a[j / 2] >> j % 2 * 16 & 0xffff;
        to[j] = type == TYPE_F16 ? half_of((u16)bits) : float_of(bits << 16);
    }
}

DEVICE void gemv_floats(u32 type, const struct product *p, const struct input *in, u32 first,
                        struct sums *s) {
    const u64 bytes = row_bytes(type, in->k);
    const u32 whole = in->k / 8;
    const u8 *rows[GEMV_ROWS];
    for (u32 row = 0; row < GEMV_ROWS; row++)
        rows[row] = p->weight + least(first + row, p->n - 1) * bytes;
    for (u32 i = lane_id(); i < whole; i += WAVE) {
        float w[GEMV_ROWS][8];
        for (int row = 0; row < GEMV_ROWS; row++)
            load_floats(type, rows[row], i, w[row]);
        for (u32 t = 0; t < GEMV_TOKENS; t++)
            if (t < in->tokens) {
                float x[8];
                load_floats(TYPE_F32, (const u8 *)(in->x + (u64)t * in->k), i, x);
                for (int row = 0; row < GEMV_ROWS; row++)
                    for (int j = 0; j < 8; j++)
                        s->of[row][t] = __builtin_fmaf(w[row][j], x[j], s->of[row][t]);
            }
    }
    for (u32 i = whole * 8 + lane_id(); i < in->k; i += WAVE)
        for (u32 t = 0; t < GEMV_TOKENS; t++)
            if (t < in->tokens)
                for (int row = 0; row < GEMV_ROWS; row++)
                    s->of[row][t] = __builtin_fmaf(load_float(type, rows[row], i),
                                                   in->x[(u64)t * in->k + i], s->of[row][t]);
}

/* Every lane's share of the rows from `first` on. */
DEVICE struct sums gemv_sums(const struct product *p, const struct input *in, u32 first) {
    struct sums s = { { { 0 } } };
    switch ((enum computed_type)p->type) {
#define QUANTISED(TYPE)                                                                            \
    case TYPE:                                                                                     \
        gemv_levels(TYPE, p, in, first, &s);                                                       \
        break;
#include "kernels/hip/quantised.def"
    case TYPE_F32:
        gemv_floats(TYPE_F32, p, in, first, &s);
        break;
    case TYPE_F16:
        gemv_floats(TYPE_F16, p, in, first, &s);
        break;
    case TYPE_BF16:
        gemv_floats(TYPE_BF16, p, in, first, &s);
        break;
    }
    return s;
}

DEVICE void gemv(const struct product *p, const struct input *in, u32 block, u32 added) {
    const u32 first = (block * WAVES + wave_id()) * GEMV_ROWS;
    if (first >= p->n)
        return;
    struct sums s = gemv_sums(p, in, first);
    for (u32 row = 0; row < GEMV_ROWS; row++)
        for (u32 t = 0; t < GEMV_TOKENS; t++)
            if (t < in->tokens) {
                float sum = sum_lanes(s.of[row][t], WAVE);
                if (lane_id() == 0 && first + row < p->n)
                    put(p, t, first + row, sum, added);
            }
}
