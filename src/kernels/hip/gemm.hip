/* gemm.hip - weights times more than a few tokens: a group takes 128 rows and 64 tokens.
 *
 * With matrix cores a wave has 32 rows for itself and all 64 tokens. It keeps its weights in registers,
 * as weights.hip decodes them; activations go through LDS, which holds two stages alternately. What the
 * next stage needs is loaded before a stage is multiplied, and decoded after it. tile.hip says which sums a
 * lane has.
 *
 * Quantised weights and activations are whole numbers in halves, so sums of a run are exact; a run's
 * scale of the activation is applied to them lane by lane, the factor of the weight row by row. Minima
 * times sums of activations are products of floats.
 *
 * halves.hip does F16 weights if the processor multiplies small halves (SMALL_HALVES). BF16 weights are
 * multiplied with activations in two parts of 8 bits, other F16 weights and F32 weights as floats.
 *
 * Where there are no matrix cores everything is multiplied as floats. */

#if MATRIX_CORES

enum {
    STAGE = 64,                     /* elements of a stage of levels: two runs */
    STAGE_STRIDE = STAGE + 8,       /* halves; so 8 rows lie in different banks, 16 bytes of each */
    SCALE_STRIDE = TILE_TOKENS + 2, /* so that the four stages of a slab lie in different banks */
    SPLIT = 32,                     /* elements of a stage of floats in two parts */
    SPLIT_STRIDE = SPLIT + 8,
    FLAT = 32, /* elements of a stage of floats as they are */
    FLAT_STRIDE = FLAT + 1,
};

struct tiles {
    union {
        struct {
            __attribute__((aligned(16))) f16 level[2][TILE_TOKENS][STAGE_STRIDE];
            f32x4 scale[2][4][SCALE_STRIDE]; /* of 16 elements each, for the four stages of a slab */
            f32x4 sum[2][TILE_TOKENS];
            struct row_factors factor[WAVES][2];
        };
#if SMALL_HALVES
        struct half_tiles halves;
#endif
        __attribute__((aligned(16))) f16 split[2][2][TILE_TOKENS][SPLIT_STRIDE];
        float full[TILE_ROWS + TILE_TOKENS][FLAT_STRIDE];
    };
};

/* ---- levels ---------------------------------------------------------------------------------- */

/* What a thread loads of a stage of activations: 16 elements of one token and their sum. For the first
 * stage of a slab also the scales of one of its stages. */
struct taken {
    u32x4 level;
    f32x4 scale;
    float sum;
};

DEVICE void take_levels(u32 type, struct taken *t, const struct input *in, u32 token, u32 stage,
                        u32 runs) {
    const u32 quarter = thread_id() % 4, r = stage * 2 + quarter / 2;
    const u64 slab = slab_of(&in->levels, r, least(token + thread_id() / 4, in->tokens - 1));
    const u64 at = slab * SLAB_RUNS + stage % 4 * 4 + quarter;
    t->level = 0;
    t->sum = 0;
    if (r < runs) {
        t->level = *(const u32x4 *)(in->levels.level + at * RUN);
        if (has_minima(type))
            t->sum = in->levels.sum[at];
    }
    if (stage % 4)
        return;
    const float *scale = in->levels.scale + slab * SLAB_RUNS + quarter * 4;
    const u32 first = stage * 2 + quarter * 2; /* the run they begin with */
    t->scale = 0;
    if (first + 1 < runs) {
        t->scale = *(const f32x4 *)scale;
    } else if (first < runs) {
        t->scale[0] = scale[0];
        t->scale[1] = scale[1];
    }
}

DEVICE void store_levels(u32 type, struct tiles *s, const struct taken *t, u32 stage) {
    u32 token = thread_id() / 4, quarter = thread_id() % 4;
    f16 *to = &s->level[stage % 2][token][quarter * 16];
    for (int i = 0; i < 2; i++)
        *(f16x8 *)(to + 8 * i) = whole_halves(t->level[2 * i] ^ 0x80808080u,
                                              t->level[2 * i + 1] ^ 0x80808080u, false, 128, 1, false);
    if (has_minima(type))
        ((float *)&s->sum[stage % 2][token])[quarter] = t->sum;
    if (stage % 4 == 0)
        s->scale[stage / 4 % 2][quarter][token] = t->scale;
}

/* The weights of a stage: two runs of the lane's row. A block of 256 has four stages; the last block of 32
 * may be loaded twice: the second copy is multiplied with activations that are 0. */
DEVICE void take_weights(u32 type, bool wide, struct raw *r, struct head *h, const u8 *row,
                         u32 stage, u32 runs) {
    if (block_elements(type) == 32) {
        for (u32 i = 0; i < 2; i++)
            load_small(type, r, row + (u64)least(stage * 2 + i, runs - 1) * block_bytes(type), i);
        return;
    }
    if (stage % 4 == 0)
        load_head(type, h, row + (u64)(stage / 4) * block_bytes(type));
    load_large(type, wide, r, h->block, stage % 4);
}

DEVICE void decode_weights(u32 type, bool wide, struct share w[2], const struct raw *r,
                           struct head *h, u32 stage, u32 runs) {
    if (block_elements(type) == 32) {
        for (u32 i = 0; i < 2; i++)
            decode_small_share(type, &w[i], r, i);
        if (stage * 2 + 1 >= runs) /* 0 times a scale that is not finite would not be 0 */
            w[1].scale = w[1].min[0] = w[1].min[1] = 0;
        return;
    }
    for (u32 i = 0; i < 2; i++)
        decode_large(type, wide, &w[i], r, h, stage % 4, i);
    next_scales(type, h);
}

DEVICE void publish_factors(u32 type, struct tiles *s, const struct share w[2]) {
    sharing_begins();
    for (u32 i = 0; i < (factor_span(type) == 32 ? 2 : 1); i++)
        s->factor[wave_id()][i].of[lane_id()] = w[i].scale;
    sharing_ends();
}

/* Run i of the stage, times its scales of the activation. narrow: those are of 16 elements. */
DEVICE f32x16 multiply_run(u32 type, bool narrow, const struct tiles *s, const struct share *w,
                           u32 buffer, u32 tile, u32 i, f32x4 scale) {
    const bool wide = is_wide(type, narrow);
    const f16 *x = s->level[buffer][tile * 32 + lane_id() % 32] + i * 32 + lane_half() * (wide ? 16 : 8);
    f16x8 first = *(const f16x8 *)x, second = *(const f16x8 *)(x + (wide ? 8 : 16));
    f32x16 sum = multiply_eight(w->half[0], first, 0);
    if (!narrow)
        return multiply_eight(w->half[1], second, sum) * scale[2 * i];
    f32x16 other = multiply_eight(w->half[1], second, 0);
    return sum * scale[2 * i] + other * scale[2 * i + 1];
}

/* Run i of the stage for all tokens. block: sums of a block of 256, whose factor comes when it is
 * complete. */
DEVICE void multiply_tiles(u32 type, bool narrow, const struct tiles *s, const struct share *w,
                           u32 buffer, u32 i, f32x4 first, f32x4 second, struct tile_sums *block,
                           struct tile_sums *sum) {
    const u32 span = factor_span(type);
    if (span == 256) {
        block->first += multiply_run(type, narrow, s, w, buffer, 0, i, first);
        in_order(&block->first);
        block->second += multiply_run(type, narrow, s, w, buffer, 1, i, second);
        in_order(&block->second);
    } else {
        f32x16 factors = factors_of_sums(&s->factor[wave_id()][i]);
        sum->first += multiply_run(type, narrow, s, w, buffer, 0, i, first) * factors;
        in_order(&sum->first);
        sum->second += multiply_run(type, narrow, s, w, buffer, 1, i, second) * factors;
        in_order(&sum->second);
    }
}

/* Minima of two runs, or of the halves of both. */
DEVICE f32x16 subtract_minima(u32 type, const struct share w[2], f32x4 sums, f32x16 sum) {
    bool upper = lane_id() >= 32;
    if (type != TYPE_Q2_K)
        return __builtin_amdgcn_mfma_f32_32x32x2f32(-(upper ? w[1].min[0] : w[0].min[0]),
                                                    upper ? sums[2] + sums[3] : sums[0] + sums[1],
                                                    sum, 0, 0, 0);
    for (int i = 0; i < 2; i++)
        sum = __builtin_amdgcn_mfma_f32_32x32x2f32(-(upper ? w[i].min[1] : w[i].min[0]),
                                                   upper ? sums[2 * i + 1] : sums[2 * i], sum, 0, 0,
                                                   0);
    return sum;
}

DEVICE void multiply_stage(u32 type, bool narrow, struct tiles *s, const struct share w[2],
                           u32 stage, struct tile_sums *block, struct tile_sums *sum) {
    const u32 span = factor_span(type), buffer = stage % 2, token = lane_id() % 32;
    if (span < 256)
        publish_factors(type, s, w);
    const f32x4 *scale = s->scale[stage / 4 % 2][stage % 4], *sums = s->sum[buffer];
    f32x4 first = scale[token], second = scale[32 + token];
    for (u32 i = 0; i < 2; i++)
        multiply_tiles(type, narrow, s, &w[i], buffer, i, first, second, block, sum);
    if (has_minima(type)) {
        sum->first = subtract_minima(type, w, sums[token], sum->first);
        sum->second = subtract_minima(type, w, sums[32 + token], sum->second);
    }
    if (span < 256 || stage % 4 != 3)
        return;
    publish_factors(type, s, w);
    f32x16 factors = factors_of_sums(&s->factor[wave_id()][0]);
    sum->first += block->first * factors;
    sum->second += block->second * factors;
    block->first = block->second = 0;
}

DEVICE void gemm_levels(u32 type, bool narrow, struct tiles *s, const struct product *p,
                        const struct input *in, u32 row, u32 token, struct tile_sums *sum) {
    const u32 runs = whole_blocks(type, in->k) / 32, stages = (runs + 1) / 2;
    /* beyond the last row or token, that one again */
    const u8 *mine = p->weight + least(row + wave_id() * 32 + lane_id() % 32, p->n - 1) *
                                     row_bytes(type, in->k);
    const bool wide = is_wide(type, narrow);
    struct tile_sums block = { 0, 0 };
    struct taken x;
    struct raw raw;
    struct share w[2];
    struct head head;
    if (!stages)
        return;
    take_levels(type, &x, in, token, 0, runs);
    take_weights(type, wide, &raw, &head, mine, 0, runs);
    decode_weights(type, wide, w, &raw, &head, 0, runs);
    store_levels(type, s, &x, 0);
    barrier();
#pragma unroll 1
    for (u32 stage = 0; stage < stages; stage++) {
        bool more = stage + 1 < stages;
        if (more) {
            take_levels(type, &x, in, token, stage + 1, runs);
            take_weights(type, wide, &raw, &head, mine, stage + 1, runs);
        }
        multiply_stage(type, narrow, s, w, stage, &block, sum);
        if (more) {
            decode_weights(type, wide, w, &raw, &head, stage + 1, runs);
            store_levels(type, s, &x, stage + 1);
        }
        barrier();
    }
}

/* ---- BF16 ---------------------------------------------------------------------------------------- */

/* Eight floats of a token in two parts of 16 bits, of which 8 are the number's. */
struct parts {
    f16x8 high, low;
};

DEVICE u32 brain_bits(float x) {
    u32 bits = bits_of(x);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x00400000
                                            : bits + 0x7fff + (bits >> 16 & 1);
}

DEVICE struct parts split_brain(const float x[8]) {
    struct parts p;
    u32x4 high, low;
    for (int i = 0; i < 4; i++) {
        u32 a = brain_bits(x[2 * i]) & 0xffff0000u, b = brain_bits(x[2 * i + 1]) & 0xffff0000u;
        high[i] = a >> 16 | b;
        low[i] = brain_bits(x[2 * i] - float_of(a)) >> 16 |
                 (brain_bits(x[2 * i + 1] - float_of(b)) & 0xffff0000u);
    }
    p.high = __builtin_bit_cast(f16x8, high);
    p.low = __builtin_bit_cast(f16x8, low);
    return p;
}

/* What a thread loads of a stage, 0 beyond the last: of one token 4 of the first 16 elements and 4 of the
 * others, so that four threads ask for 64 bytes that are neighbours. */
DEVICE void take_floats(float x[8], const struct input *in, u32 token, u32 at) {
    const float *row = in->x + (u64)least(token + thread_id() / 4, in->tokens - 1) * in->k;
    at += thread_id() % 4 * 4;
    for (u32 i = 0; i < 8; i += 4, at += SPLIT / 2) {
        f32x4 four = 0;
        if (at + 4 <= in->k)
            four = *(const f32x4_any *)(row + at);
        else
            for (u32 j = 0; j < 4; j++)
                four[j] = at + j < in->k ? row[at + j] : 0;
        for (u32 j = 0; j < 4; j++)
            x[i + j] = four[j];
    }
}

DEVICE void store_split(struct tiles *s, const float x[8], u32 stage) {
    u32 token = thread_id() / 4, at = thread_id() % 4 * 4;
    struct parts p = split_brain(x);
    for (u32 part = 0; part < 2; part++) {
        f16 *to = &s->split[stage % 2][part][token][at];
        *(f16x4 *)to = part ? p.low.lo : p.high.lo;
        *(f16x4 *)(to + SPLIT / 2) = part ? p.low.hi : p.high.hi;
    }
}

/* 16 elements of the lane's row, as they are in the file; 0 beyond the last. */
DEVICE void take_row(f16x8 w[2], const u8 *row, u32 at, u32 k) {
    at += lane_half() * 8;
    for (u32 i = 0; i < 2; i++, at += 16) {
        if (at + 8 <= k) {
            w[i] = __builtin_bit_cast(f16x8, load_u32x4(row + (u64)at * 2));
            continue;
        }
        for (u32 j = 0; j < 8; j++)
            w[i][j] = __builtin_bit_cast(f16, (u16)(at + j < k ? load_u16(row + (u64)(at + j) * 2) : 0));
    }
}

DEVICE void multiply_split(const struct tiles *s, const f16x8 w[2], u32 buffer, u32 token,
                           f32x16 *sum) {
    for (u32 part = 0; part < 2; part++)
        for (u32 i = 0; i < 2; i++) {
            const f16 *x = &s->split[buffer][part][token][i * 16 + lane_half() * 8];
            i16x8 a = __builtin_bit_cast(i16x8, w[i]), b = *(const i16x8 *)x;
            *sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a.lo, b.lo, *sum, 0, 0, 0);
            *sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a.hi, b.hi, *sum, 0, 0, 0);
        }
    in_order(sum);
}

DEVICE void gemm_split(struct tiles *s, const struct product *p, const struct input *in, u32 row,
                       u32 token, struct tile_sums *sum) {
    const u32 stages = (in->k + SPLIT - 1) / SPLIT;
    const u8 *mine = p->weight + least(row + wave_id() * 32 + lane_id() % 32, p->n - 1) *
                                     row_bytes(TYPE_BF16, in->k);
    float x[8];
    f16x8 w[2], next[2];
    take_floats(x, in, token, 0);
    take_row(w, mine, 0, in->k);
    store_split(s, x, 0);
    barrier();
#pragma unroll 1
    for (u32 stage = 0; stage < stages; stage++) {
        bool more = stage + 1 < stages;
        if (more) {
            take_floats(x, in, token, (stage + 1) * SPLIT);
            take_row(next, mine, (stage + 1) * SPLIT, in->k);
        }
        multiply_split(s, w, stage % 2, lane_id() % 32, &sum->first);
        multiply_split(s, w, stage % 2, 32 + lane_id() % 32, &sum->second);
        if (more) {
            store_split(s, x, stage + 1);
            w[0] = next[0];
            w[1] = next[1];
        }
        barrier();
    }
}

/* ---- F32 ---------------------------------------------------------------------------------------- */

DEVICE void multiply_floats(const struct tiles *s, struct tile_sums *sum) {
    u32 row = wave_id() * 32 + lane_id() % 32, token = TILE_ROWS + lane_id() % 32;
    for (u32 i = 0; i < FLAT; i += 2) {
        u32 at = i + lane_id() / 32;
        sum->first = __builtin_amdgcn_mfma_f32_32x32x2f32(s->full[row][at], s->full[token][at],
                                                          sum->first, 0, 0, 0);
        sum->second = __builtin_amdgcn_mfma_f32_32x32x2f32(s->full[row][at], s->full[token + 32][at],
                                                           sum->second, 0, 0, 0);
    }
}

/* Four sums of a lane are four rows of its token. */
DEVICE void put_tile(const struct product *p, u32 tokens, u32 row, u32 token, u32 added,
                     f32x16 sum) {
    row += wave_id() * 32 + lane_id() / 32 * 4;
    token += lane_id() % 32;
    if (token >= tokens)
        return;
    for (u32 i = 0; i < 16; i += 4, row += 8) {
        if (p->n % 4 || row + 4 > p->n) {
            for (u32 j = 0; j < 4; j++)
                if (row + j < p->n)
                    put(p, token, row + j, sum[i + j], added);
            continue;
        }
        f32x4 four;
        for (u32 j = 0; j < 4; j++)
            four[j] = sum[i + j] + (p->bias ? p->bias[row + j] : 0);
        f32x4_any *out = (f32x4_any *)(p->out + (u64)token * p->n + row);
        *out = added ? *out + four : four;
    }
}

DEVICE void put_sums(const struct product *p, const struct input *in, u32 row, u32 token, u32 added,
                     const struct tile_sums *sum) {
    put_tile(p, in->tokens, row, token, added, sum->first);
    put_tile(p, in->tokens, row, token + 32, added, sum->second);
}

#else /* without matrix cores */

enum { FLAT = 32, FLAT_STRIDE = FLAT + 1, SUMS = 32 };

struct tiles {
    float full[TILE_ROWS + TILE_TOKENS][FLAT_STRIDE];
};

struct tile_sums {
    float of[SUMS];
};

DEVICE void clear_sums(struct tile_sums *sum) {
    for (int i = 0; i < SUMS; i++)
        sum->of[i] = 0;
}

/* A thread has 8 rows and 4 tokens, 16 apart. */
DEVICE u32 sum_row(u32 i) {
    return i / 4 * 16 + thread_id() / 16;
}

DEVICE u32 sum_token(u32 i) {
    return i % 4 * 16 + thread_id() % 16;
}

DEVICE void multiply_floats(const struct tiles *s, struct tile_sums *sum) {
    for (u32 k = 0; k < FLAT; k++) {
        float w[8], x[4];
        for (int i = 0; i < 8; i++)
            w[i] = s->full[sum_row(4 * i)][k];
        for (int i = 0; i < 4; i++)
            x[i] = s->full[TILE_ROWS + sum_token(i)][k];
        for (int i = 0; i < SUMS; i++)
            sum->of[i] = __builtin_fmaf(w[i / 4], x[i % 4], sum->of[i]);
    }
}

/* Run r of a token's activations. */
DEVICE void find_run(struct run *run, const struct levels *l, u32 r, u32 token) {
    u64 slab = slab_of(l, r, token);
    take_bits(run, (const u8 *)l->level + slab * SLAB + r % 8 * 32, 0, 255);
    for (int half = 0; half < 2; half++)
        set_scale(run, half, l->scale[slab * SLAB_RUNS + r % 8 * 2 + half], 0);
}

DEVICE void load_tile(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                      u32 row, u32 token, u32 r) {
    u32 line = thread_id();
    struct run run;
    if (line >= TILE_ROWS + TILE_TOKENS)
        return;
    if (line >= TILE_ROWS) /* beyond the last row or token, that one again */
        find_run(&run, &in->levels, r, least(token + line - TILE_ROWS, in->tokens - 1));
    else
        decode_run(type, &run, p->weight + least(row + line, p->n - 1) * row_bytes(type, in->k), r);
    for (int i = 0; i < 32; i++)
        s->full[line][i] = run_element(&run, i);
}

DEVICE void gemm_levels(u32 type, bool narrow, struct tiles *s, const struct product *p,
                        const struct input *in, u32 row, u32 token, struct tile_sums *sum) {
    const u32 runs = whole_blocks(type, in->k) / 32;
    for (u32 r = 0; r < runs; r++) {
        barrier();
        load_tile(type, s, p, in, row, token, r);
        barrier();
        multiply_floats(s, sum);
    }
}

DEVICE void put_sums(const struct product *p, const struct input *in, u32 row, u32 token, u32 added,
                     const struct tile_sums *sum) {
    for (u32 i = 0; i < SUMS; i++)
        if (row + sum_row(i) < p->n && token + sum_token(i) < in->tokens)
            put(p, token + sum_token(i), row + sum_row(i), sum->of[i], added);
}

#endif

/* A thread loads column thread % 32 of every eighth line. */
DEVICE void gemm_floats(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                        u32 row, u32 token, struct tile_sums *sum) {
    const u64 bytes = row_bytes(type, in->k);
    for (u32 at = 0; at < in->k; at += FLAT) {
        u32 column = thread_id() % FLAT;
        bool inside = at + column < in->k;
        barrier();
        for (u32 line = thread_id() / FLAT; line < TILE_ROWS + TILE_TOKENS; line += THREADS / FLAT) {
            float v = 0;
            if (inside && line < TILE_ROWS)
                v = load_float(type, p->weight + least(row + line, p->n - 1) * bytes, at + column);
            else if (inside)
                v = in->x[(u64)least(token + line - TILE_ROWS, in->tokens - 1) * in->k + at + column];
            s->full[line][column] = v;
        }
        barrier();
        multiply_floats(s, sum);
    }
}

/* Levels that share a scale by 32 are for weights of 256 elements per block alone. */
DEVICE void gemm_of_type(u32 type, struct tiles *s, const struct product *p, const struct input *in,
                         u32 row, u32 token, struct tile_sums *sum) {
    if (block_elements(type) == 32 || in->run != 32)
        gemm_levels(type, true, s, p, in, row, token, sum);
    else
        gemm_levels(type, false, s, p, in, row, token, sum);
}

DEVICE void gemm(const struct product *p, const struct input *in, u32 block, u32 added) {
    SHARED struct tiles tiles;
    const u32 across = (p->n + TILE_ROWS - 1) / TILE_ROWS;
    const u32 row = block % across * TILE_ROWS, token = block / across * TILE_TOKENS;
    struct tile_sums sum;
    clear_sums(&sum);
    switch ((enum computed_type)p->type) {
#define QUANTISED(TYPE)                                                                            \
    case TYPE:                                                                                     \
        gemm_of_type(TYPE, &tiles, p, in, row, token, &sum);                                       \
        break;
#include "kernels/hip/quantised.def"
    case TYPE_F32:
        gemm_floats(TYPE_F32, &tiles, p, in, row, token, &sum);
        break;
    case TYPE_F16:
#if SMALL_HALVES
        gemm_halves(&tiles.halves, p, in, row, token, &sum);
#else
        gemm_floats(TYPE_F16, &tiles, p, in, row, token, &sum);
#endif
        break;
    case TYPE_BF16:
#if MATRIX_CORES
        gemm_split(&tiles, p, in, row, token, &sum);
#else
        gemm_floats(TYPE_BF16, &tiles, p, in, row, token, &sum);
#endif
        break;
    }
    put_sums(p, in, row, token, added, &sum);
}
