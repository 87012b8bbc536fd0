/* matmul.hip - weights times activations: matmul, matmul_qkv, matmul_gate_up.
 *
 * Few tokens (GEMV_TOKENS at most): a wave takes two rows of the weight and its lanes take runs of 32
 * elements, one after the other, so that every byte of the weight is read once and in order. Levels are
 * multiplied with levels, four at a time, as integers.
 *
 * More tokens: a group takes a tile of 64 rows and 64 tokens. 64 elements of each at a time are decoded
 * into LDS as halves and multiplied by the matrix cores; floats stay floats, 32 elements at a time. Where
 * there are no matrix cores everything is multiplied as floats. */

enum {
    GEMV_TOKENS = 4,
    GEMV_GROUP = 8,                 /* rows of a group */
    GEMV_ROWS = GEMV_GROUP / WAVES, /* of a wave */
    TILE = 64,                      /* rows and tokens of a group */
};

struct product {
    float *out;
    const u8 *weight;
    const float *bias; /* NULL: none */
    u32 type, n;
};

/* What the weights are multiplied with. */
struct input {
    const float *x;
    struct levels levels;
    u32 tokens, k;
};

DEVICE void put(const struct product *p, u32 token, u32 row, float value, u32 added) {
    float *out = p->out + (u64)token * p->n + row;
    if (p->bias)
        value += p->bias[row];
    *out = added ? *out + value : value;
}

/* ---- few tokens ------------------------------------------------------------------------------ */

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
    switch (p->type) {
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

/* ---- more tokens: tiles ---------------------------------------------------------------------- */

enum {
    DEEP = 64,               /* elements of a tile of halves */
    DEEP_STRIDE = DEEP + 8,  /* halves; so 8 rows lie in different banks, 16 bytes of each */
    FLAT = 32,               /* elements of a tile of floats */
    FLAT_STRIDE = FLAT + 1,
};

struct tiles {
    union {
        __attribute__((aligned(16))) f16 half[2][TILE][DEEP_STRIDE]; /* weights, activations */
        float full[2][TILE][FLAT_STRIDE];
    };
};

#if MATRIX_CORES
enum { SUMS = 16 };

/* The part of the tile that a wave sums up: 32 rows and 32 tokens. An instruction takes four elements
 * of each half of the wave; which ones does not matter as long as both sides agree, so a lane loads
 * those of two instructions at once. */
DEVICE void multiply_halves(const struct tiles *s, f32x16 *sum) {
    u32 row = wave_id() / 2 * 32 + lane_id() % 32, token = wave_id() % 2 * 32 + lane_id() % 32;
    u32 at = lane_id() / 32 * 8;
    for (u32 i = 0; i < DEEP; i += 16) {
        f16x8 w = *(const f16x8 *)&s->half[0][row][i + at];
        f16x8 x = *(const f16x8 *)&s->half[1][token][i + at];
        *sum = __builtin_amdgcn_mfma_f32_32x32x8f16(w.lo, x.lo, *sum, 0, 0, 0);
        *sum = __builtin_amdgcn_mfma_f32_32x32x8f16(w.hi, x.hi, *sum, 0, 0, 0);
    }
}

DEVICE void multiply_floats(const struct tiles *s, f32x16 *sum) {
    u32 row = wave_id() / 2 * 32 + lane_id() % 32, token = wave_id() % 2 * 32 + lane_id() % 32;
    u32 at = lane_id() / 32;
    for (u32 i = 0; i < FLAT; i += 2)
        *sum = __builtin_amdgcn_mfma_f32_32x32x2f32(s->full[0][row][i + at],
                                                    s->full[1][token][i + at], *sum, 0, 0, 0);
}

/* Where sum i of a lane belongs. */
DEVICE u32 sum_row(u32 i) {
    return wave_id() / 2 * 32 + i / 4 * 8 + lane_id() / 32 * 4 + i % 4;
}

DEVICE u32 sum_token(u32 i) {
    return wave_id() % 2 * 32 + lane_id() % 32;
}
#else
enum { SUMS = 16 };

/* A thread has 4 rows and 4 tokens, 16 apart. */
DEVICE u32 sum_row(u32 i) {
    return i / 4 * 16 + thread_id() / 16;
}

DEVICE u32 sum_token(u32 i) {
    return i % 4 * 16 + thread_id() % 16;
}

DEVICE void multiply_floats(const struct tiles *s, f32x16 *sum) {
    for (u32 k = 0; k < FLAT; k++) {
        float w[4], x[4];
        for (int i = 0; i < 4; i++) {
            w[i] = s->full[0][sum_row(4 * i)][k];
            x[i] = s->full[1][sum_token(i)][k];
        }
        for (int i = 0; i < SUMS; i++)
            (*sum)[i] = __builtin_fmaf(w[i / 4], x[i % 4], (*sum)[i]);
    }
}
#endif

/* Run r of a token's activations, 0 beyond the last token. */
DEVICE void find_run(struct run *run, const struct levels *l, u32 r, u32 token) {
    u64 slab = slab_of(l, r, token);
    take_bits(run, (const u8 *)l->level + slab * SLAB + r % 8 * 32, 0, 255);
    for (int half = 0; half < 2; half++)
        set_scale(run, half, l->scale[slab * SLAB_RUNS + r % 8 * 2 + half], 0);
}

DEVICE void clear_run(struct run *run) {
    for (int i = 0; i < 8; i++)
        run->level[i] = 0;
    set_scales(run, 0, 0);
}

#if MATRIX_CORES
/* Half of the threads decode weights, the others activations: one run of 32 elements each. */
DEVICE void load_tile(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                      u32 row, u32 token, u32 at, u32 runs) {
    u32 job = thread_id() % (THREADS / 2), side = wave_id() / (WAVES / 2);
    u32 line = job / 2, r = at / 32 + job % 2;
    struct run run;
    if (r >= runs || (side ? token + line >= in->tokens : row + line >= p->n))
        clear_run(&run);
    else if (side)
        find_run(&run, &in->levels, r, token + line);
    else
        decode_run(type, &run, p->weight + (row + line) * row_bytes(type, in->k), r);
    if (side || has_signed_levels(type))
        lift_run(&run);
    f16 *to = &s->half[side][line][job % 2 * 32];
    for (int i = 0; i < 32; i += 8) {
        f16x8 v;
        for (int j = 0; j < 8; j++)
            v[j] = (f16)lifted_element(&run, i + j);
        *(f16x8 *)(to + i) = v;
    }
}

DEVICE void gemm_levels(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                        u32 row, u32 token, f32x16 *sum) {
    const u32 runs = whole_blocks(type, in->k) / 32;
    for (u32 at = 0; at < runs * 32; at += DEEP) {
        barrier();
        load_tile(type, s, p, in, row, token, at, runs);
        barrier();
        multiply_halves(s, sum);
    }
}
#else
DEVICE void load_tile(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                      u32 row, u32 token, u32 r) {
    u32 line = thread_id() % TILE, side = thread_id() / TILE;
    if (side >= 2)
        return;
    struct run run;
    if (side ? token + line >= in->tokens : row + line >= p->n)
        clear_run(&run);
    else if (side)
        find_run(&run, &in->levels, r, token + line);
    else
        decode_run(type, &run, p->weight + (row + line) * row_bytes(type, in->k), r);
    for (int i = 0; i < 32; i++)
        s->full[side][line][i] = run_element(&run, i);
}

DEVICE void gemm_levels(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                        u32 row, u32 token, f32x16 *sum) {
    const u32 runs = whole_blocks(type, in->k) / 32;
    for (u32 r = 0; r < runs; r++) {
        barrier();
        load_tile(type, s, p, in, row, token, r);
        barrier();
        multiply_floats(s, sum);
    }
}
#endif

/* A thread loads column thread % 32 of every eighth line. */
DEVICE void gemm_floats(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                        u32 row, u32 token, f32x16 *sum) {
    const u64 bytes = row_bytes(type, in->k);
    for (u32 at = 0; at < in->k; at += FLAT) {
        u32 column = thread_id() % FLAT;
        bool inside = at + column < in->k;
        barrier();
        for (u32 line = thread_id() / FLAT; line < TILE; line += THREADS / FLAT) {
            float w = 0, x = 0;
            if (inside && row + line < p->n)
                w = load_float(type, p->weight + (row + line) * bytes, at + column);
            if (inside && token + line < in->tokens)
                x = in->x[(u64)(token + line) * in->k + at + column];
            s->full[0][line][column] = w;
            s->full[1][line][column] = x;
        }
        barrier();
        multiply_floats(s, sum);
    }
}

DEVICE void gemm(const struct product *p, const struct input *in, u32 block, u32 added) {
    SHARED struct tiles tiles;
    const u32 across = (p->n + TILE - 1) / TILE;
    const u32 row = block % across * TILE, token = block / across * TILE;
    f32x16 sum = 0;
    switch (p->type) {
#define QUANTISED(TYPE)                                                                            \
    case TYPE:                                                                                     \
        gemm_levels(TYPE, &tiles, p, in, row, token, &sum);                                        \
        break;
#include "kernels/hip/quantised.def"
    case TYPE_F32:
        gemm_floats(TYPE_F32, &tiles, p, in, row, token, &sum);
        break;
    case TYPE_F16:
        gemm_floats(TYPE_F16, &tiles, p, in, row, token, &sum);
        break;
    case TYPE_BF16:
        gemm_floats(TYPE_BF16, &tiles, p, in, row, token, &sum);
        break;
    }
    for (u32 i = 0; i < SUMS; i++)
        if (row + sum_row(i) < p->n && token + sum_token(i) < in->tokens)
            put(p, token + sum_token(i), row + sum_row(i), sum[i], added);
}

DEVICE void multiply(const struct product *p, const struct input *in, u32 block, u32 added) {
    if (in->tokens <= GEMV_TOKENS)
        gemv(p, in, block, added);
    else
        gemm(p, in, block, added);
}

/* Groups that a product takes: KERN_TILES of kern.h. */
DEVICE u32 product_groups(u32 n, u32 tokens) {
    return tokens <= GEMV_TOKENS ? (n + GEMV_GROUP - 1) / GEMV_GROUP
                                 : (n + TILE - 1) / TILE * ((tokens + TILE - 1) / TILE);
}

/* ---- kernels --------------------------------------------------------------------------------- */

KERNEL(THREADS)
matmul(float *out, const u8 *weight, u32 weight_type, const float *x, const i8 *levels,
       const float *bias, u32 tokens, u32 n, u32 k, u32 biased, u32 added, u32 run, u32 packed) {
    struct product p = { out, weight, biased ? bias : 0, weight_type, n };
    struct input in = { x, find_levels(levels, tokens, k), tokens, k };
    multiply(&p, &in, group_id(), added);
}

KERNEL(THREADS)
matmul_qkv(float *q, float *k, float *v, const u8 *q_weight, u32 q_type, const u8 *k_weight,
           u32 k_type, const u8 *v_weight, u32 v_type, const float *x, const i8 *levels,
           const float *q_bias, const float *k_bias, const float *v_bias, u32 tokens, u32 q_n,
           u32 kv_n, u32 dim, u32 q_biased, u32 k_biased, u32 v_biased, u32 run, u32 packed) {
    struct input in = { x, find_levels(levels, tokens, dim), tokens, dim };
    struct product p = { q, q_weight, q_biased ? q_bias : 0, q_type, q_n };
    u32 block = group_id(), of_q = product_groups(q_n, tokens), of_k = product_groups(kv_n, tokens);
    if (block >= of_q + of_k) {
        struct product other = { v, v_weight, v_biased ? v_bias : 0, v_type, kv_n };
        p = other;
        block -= of_q + of_k;
    } else if (block >= of_q) {
        struct product other = { k, k_weight, k_biased ? k_bias : 0, k_type, kv_n };
        p = other;
        block -= of_q;
    }
    multiply(&p, &in, block, 0);
}

KERNEL(THREADS)
matmul_gate_up(float *gate, float *up, const u8 *gate_weight, u32 gate_type, const u8 *up_weight,
               u32 up_type, const float *x, const i8 *levels, u32 tokens, u32 hidden, u32 dim,
               u32 run, u32 packed) {
    struct input in = { x, find_levels(levels, tokens, dim), tokens, dim };
    struct product p = { gate, gate_weight, 0, gate_type, hidden };
    u32 block = group_id(), of_gate = product_groups(hidden, tokens);
    if (block >= of_gate) {
        struct product other = { up, up_weight, 0, up_type, hidden };
        p = other;
        block -= of_gate;
    }
    multiply(&p, &in, block, 0);
}
