/* ops_lanes.h - functions of ops.h, written once over vectors of 16 floats.
 *
 * A file that implements ops.h for an instruction set includes its vectors (vec_*.h), adds what is
 * wanted here besides, and then includes this:
 *
 *   BLOCK, ACROSS              rows and vectors of a product that fit into the registers
 *   vf_add, vf_sub, vf_div     lane by lane
 *   vf_max(v, w), vf_min       lane by lane; w where one of them is NaN
 *   vf_round(v)                to the nearest whole number
 *   vf_scale(v, n)             v * 2^n, n whole, from denormals to infinity
 *   vf_repeat(p, n)            p[0] … p[n - 1] again and again, n a power of 2
 *   vf_swap(v, n)              lane i is v's lane i ^ n
 *   vf_folded(v, w)            lane i is the sum of lanes 2i and 2i + 1 of v and w one after the
 *                              other */
#include <stdbool.h>
#include <string.h>

#include "kernels/cpu/exp_terms.h"
#include "model/quant/quant.h"

/* ---- types ----------------------------------------------------------------------------------- */

INLINE vf f16_scale(const unsigned char *p) {
    return vf_set(_cvtsh_ss((unsigned short)(p[0] | p[1] << 8)));
}

INLINE void decode_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; i + OPS_LANES <= n; i += OPS_LANES)
        vf_store(dst + i, vf_halves(src + i));
    if (i < n)
        ops_scalar.decode(TENSOR_TYPE_F16, src + i, dst + i, n - i);
}

INLINE void decode_q8_0(const unsigned char *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 32, src += 34, dst += 32) {
        vf d = f16_scale(src);
        vf_store(dst, vf_mul(vf_signed_bytes(vb_load(src + 2)), d));
        vf_store(dst + 16, vf_mul(vf_signed_bytes(vb_load(src + 18)), d));
    }
}

INLINE void decode_q4_0(const unsigned char *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 32, src += 18, dst += 32) {
        vf d = f16_scale(src), zero = vf_set(8);
        vb q = vb_load(src + 2);
        vf_store(dst, vf_mul(vf_sub(vf_bytes(vb_bits(q, 0, 4)), zero), d));
        vf_store(dst + 16, vf_mul(vf_sub(vf_bytes(vb_bits(q, 4, 4)), zero), d));
    }
}

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    switch (type) {
    case TENSOR_TYPE_F16:
        decode_f16(src, dst, n);
        break;
    case TENSOR_TYPE_Q8_0:
        decode_q8_0(src, dst, n);
        break;
    case TENSOR_TYPE_Q4_0:
        decode_q4_0(src, dst, n);
        break;
    default:
        quant_decoder(type)(src, dst, n);
    }
}

static void decode_rows(struct ops_matrix dst, struct ops_rows src, size_t rows, size_t n) {
    const char *from = src.at;
    for (size_t i = 0; i < rows; i++, from += src.bytes, dst.at += dst.stride)
        if (src.type == TENSOR_TYPE_F16)
            decode_f16((const void *)from, dst.at, n);
        else if (src.type == TENSOR_TYPE_Q8_0)
            decode_q8_0((const void *)from, dst.at, n);
        else
            decode(src.type, from, dst.at, n);
}

/* ---- element by element ---------------------------------------------------------------------- */

static void scale(float *out, const float *x, float factor, const float *weight, size_t n) {
    size_t i = 0;
    for (; i + OPS_LANES <= n; i += OPS_LANES) {
        vf v = vf_mul(vf_load(x + i), vf_set(factor));
        vf_store(out + i, weight ? vf_mul(v, vf_load(weight + i)) : v);
    }
    if (i < n)
        ops_scalar.scale(out + i, x + i, factor, weight ? weight + i : NULL, n - i);
}

static void add(float *out, const float *x, float by, const float *more, size_t n) {
    size_t i = 0;
    for (; i + OPS_LANES <= n; i += OPS_LANES) {
        vf v = vf_add(vf_load(x + i), vf_set(by));
        vf_store(out + i, more ? vf_add(v, vf_load(more + i)) : v);
    }
    ops_scalar.add(out + i, x + i, by, more ? more + i : NULL, n - i);
}

/* e^x = 2^n e^r: returns e^r - 1. */
INLINE vf exponential_parts(vf x, vf *power) {
    vf n = vf_round(vf_mul(x, vf_set(EXP_LOG2E)));
    vf r = vf_fnma(n, vf_set(EXP_LN2_HIGH), x);
    r = vf_fnma(n, vf_set(EXP_LN2_LOW), r);
    vf p = vf_fma(vf_set(EXP_C6), r, vf_set(EXP_C5));
    p = vf_fma(p, r, vf_set(EXP_C4));
    p = vf_fma(p, r, vf_set(EXP_C3));
    p = vf_fma(p, r, vf_set(EXP_C2));
    *power = n;
    return vf_fma(vf_mul(p, r), r, r);
}

INLINE vf exponential(vf x) {
    vf n, p;
    x = vf_min(vf_set(EXP_MOST), vf_max(vf_set(EXP_LEAST), x)); /* in this order a NaN stays */
    p = exponential_parts(x, &n);
    return vf_scale(vf_add(p, vf_set(1)), n);
}

/* tanh(x) = m / (m + 2), m = e^2x - 1 = 2^n (e^r - 1) + (2^n - 1): exact to rounding near 0, too.
 * Beyond 10 it is 1 in every bit. */
INLINE vf hyperbolic_tangent(vf x) {
    vf n, p;
    x = vf_min(vf_set(10), vf_max(vf_set(-10), x)); /* a NaN stays */
    p = exponential_parts(vf_add(x, x), &n);
    vf m = vf_add(vf_scale(p, n), vf_sub(vf_scale(vf_set(1), n), vf_set(1)));
    return vf_div(m, vf_add(m, vf_set(2)));
}

/* g / (1 + e^-g), or with GELU's cubic in place of the g of the exponent. */
INLINE void activate_lanes(float *out, const float *gate, const float *up, const bool gelu) {
    vf g = vf_load(gate), exponent = vf_sub(vf_set(-0.0f), g);
    if (gelu) {
        vf cubic = vf_fma(vf_mul(g, g), vf_set(GELU_CUBIC), vf_set(1));
        exponent = vf_mul(vf_mul(g, vf_set(-2 * GELU_LINEAR)), cubic);
    }
    vf v = vf_div(g, vf_add(vf_set(1), exponential(exponent)));
    vf_store(out, up ? vf_mul(v, vf_load(up)) : v);
}

INLINE void activate(float *out, const float *gate, const float *up, size_t n, const bool gelu) {
    size_t i = 0;
    for (; i + OPS_LANES <= n; i += OPS_LANES)
        activate_lanes(out + i, gate + i, up ? up + i : NULL, gelu);
    if (i == n)
        return;
    float rest[3][OPS_LANES] = { 0 };
    memcpy(rest[1], gate + i, (n - i) * sizeof *gate);
    if (up)
        memcpy(rest[2], up + i, (n - i) * sizeof *up);
    activate_lanes(rest[0], rest[1], up ? rest[2] : NULL, gelu);
    memcpy(out + i, rest[0], (n - i) * sizeof *out);
}

static void swiglu(float *out, const float *gate, const float *up, size_t n) {
    activate(out, gate, up, n, false);
}

static void geglu(float *out, const float *gate, const float *up, size_t n) {
    activate(out, gate, up, n, true);
}

INLINE void soft_cap_lanes(float *x, float cap) {
    vf v = hyperbolic_tangent(vf_div(vf_load(x), vf_set(cap)));
    vf_store(x, vf_mul(v, vf_set(cap)));
}

static void soft_cap(float *x, float cap, size_t n) {
    float rest[OPS_LANES] = { 0 };
    size_t i = 0;
    for (; i + OPS_LANES <= n; i += OPS_LANES)
        soft_cap_lanes(x + i, cap);
    if (i == n)
        return;
    memcpy(rest, x + i, (n - i) * sizeof *x);
    soft_cap_lanes(rest, cap);
    memcpy(x + i, rest, (n - i) * sizeof *x);
}

/* ---- attention: scores ----------------------------------------------------------------------- */

/* s[positions, vectors] = keys . queries, of which so many lanes lie beside each other. */
INLINE void score_block(vf *s, const float *queries, size_t lanes, struct ops_matrix keys,
                        size_t width, const int share, const int positions, const int vectors) {
    UNROLL
    for (int i = 0; i < positions * vectors; i++)
        s[i] = vf_set(0);
    for (size_t at = 0; at < width; at += (size_t)share, queries += lanes) {
        vf q[ACROSS];
        UNROLL
        for (int j = 0; j < vectors; j++)
            q[j] = vf_load(queries + OPS_LANES * j);
        UNROLL
        for (int i = 0; i < positions; i++) {
            vf key = vf_repeat(keys.at + (size_t)i * keys.stride + at, share);
            UNROLL
            for (int j = 0; j < vectors; j++)
                s[i * vectors + j] = vf_fma(key, q[j], s[i * vectors + j]);
        }
    }
}

/* Some vectors of rows, every row in a lane. */
INLINE void score_rows(float *scores, const float *queries, struct ops_matrix keys, size_t rows,
                       size_t positions, size_t width, const int vectors) {
    for (size_t p = 0; p < positions; p += BLOCK, keys.at += BLOCK * keys.stride) {
        vf s[BLOCK * ACROSS];
        score_block(s, queries, rows, keys, width, 1, BLOCK, vectors);
        UNROLL
        for (int i = 0; i < BLOCK; i++, scores += rows)
            UNROLL
        for (int j = 0; j < vectors; j++)
            vf_store(scores + OPS_LANES * j, s[i * vectors + j]);
    }
}

/* A row has several lanes: their sums are added up, and as many positions fit into a vector. */
INLINE void score_shared(float *scores, const float *queries, struct ops_matrix keys,
                         size_t positions, size_t width, const int share) {
    enum { AT_ONCE = BLOCK * ACROSS };
    for (size_t p = 0; p < positions; p += OPS_LANES) {
        vf s[OPS_LANES];
        UNROLL
        for (int i = 0; i < OPS_LANES; i += AT_ONCE, keys.at += AT_ONCE * keys.stride)
            score_block(s + i, queries, OPS_LANES, keys, width, share, AT_ONCE, 1);
        UNROLL
        for (int lanes = share, n = OPS_LANES / 2; lanes > 1; lanes /= 2, n /= 2)
            UNROLL
        for (int i = 0; i < n; i++)
            s[i] = vf_folded(s[2 * i], s[2 * i + 1]);
        for (int i = 0; i < OPS_LANES / share; i++, scores += OPS_LANES)
            vf_store(scores, s[i]);
    }
}

static void score(float *scores, const float *queries, struct ops_matrix keys, size_t rows,
                  size_t positions, size_t width) {
    enum { WIDE = ACROSS * OPS_LANES };
    size_t r = 0;
    switch (OPS_SHARE(rows)) {
    case 2:
        score_shared(scores, queries, keys, positions, width, 2);
        break;
    case 4:
        score_shared(scores, queries, keys, positions, width, 4);
        break;
    case 8:
        score_shared(scores, queries, keys, positions, width, 8);
        break;
    case 16:
        score_shared(scores, queries, keys, positions, width, 16);
        break;
    default:
        for (; r + WIDE <= rows; r += WIDE)
            score_rows(scores + r, queries + r, keys, rows, positions, width, ACROSS);
        for (; r < rows; r += OPS_LANES)
            score_rows(scores + r, queries + r, keys, rows, positions, width, 1);
    }
}

/* ---- attention: weights ---------------------------------------------------------------------- */

/* The greatest of each lane and of top. In this order a NaN is passed over. */
INLINE vf greatest(const float *x, size_t stride, size_t count, vf top) {
    vf other = top;
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
        top = vf_max(vf_load(x + i * stride), top);
        other = vf_max(vf_load(x + (i + 1) * stride), other);
    }
    if (i < count)
        top = vf_max(vf_load(x + i * stride), top);
    return vf_max(top, other);
}

/* x = exp(x - top); their sum. */
INLINE vf soften_lanes(float *x, size_t stride, size_t count, vf top) {
    vf sum = vf_set(0);
    for (size_t i = 0; i < count; i++, x += stride) {
        vf e = exponential(vf_sub(vf_load(x), top));
        vf_store(x, e);
        sum = vf_add(sum, e);
    }
    return sum;
}

static void soften(float *scores, float *highest, float *total, float *shrink, size_t rows,
                   size_t positions) {
    size_t lanes = rows * OPS_SHARE(rows), count = positions / OPS_SHARE(rows);
    for (size_t l = 0; l < lanes; l += OPS_LANES) {
        vf before = vf_load(highest + l);
        vf top = greatest(scores + l, lanes, count, before);
        UNROLL
        for (int distance = OPS_LANES / 2; distance > 0; distance /= 2)
            if ((size_t)distance >= rows)
                top = vf_max(vf_swap(top, distance), top);
        vf ratio = exponential(vf_sub(before, top));
        vf sum = soften_lanes(scores + l, lanes, count, top);
        vf_store(highest + l, top);
        vf_store(shrink + l, ratio);
        vf_store(total + l, vf_fma(vf_load(total + l), ratio, sum));
    }
}

/* ---- attention: sums ------------------------------------------------------------------------- */

/* sums[rows, 16 * vectors] in registers over all positions. */
INLINE void add_block(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                      struct ops_rows values, size_t positions, const bool halves, const int rows,
                      const int vectors) {
    vf s[BLOCK * ACROSS], value[BLOCK * ACROSS];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int j = 0; j < vectors; j++)
        s[i * vectors + j] =
            vf_mul(vf_load(sums.at + (size_t)i * sums.stride + OPS_LANES * j), vf_set(shrink[i]));
    const char *from = values.at;
    for (size_t p = 0; p < positions; p++, from += values.bytes) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            value[j] = halves ? vf_halves((const uint16_t *)(const void *)from + OPS_LANES * j)
                              : vf_load((const float *)(const void *)from + OPS_LANES * j);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vf weight = vf_set(weights.at[p * weights.stride + (size_t)i]);
            UNROLL
            for (int j = 0; j < vectors; j++)
                s[i * vectors + j] = vf_fma(weight, value[j], s[i * vectors + j]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int j = 0; j < vectors; j++)
        vf_store(sums.at + (size_t)i * sums.stride + OPS_LANES * j, s[i * vectors + j]);
}

/* All of some rows: as many vectors at once as there are registers for, then one. */
INLINE void add_rows(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                     struct ops_rows values, size_t positions, size_t width, const bool halves,
                     const int rows, const int vectors) {
    size_t step = (size_t)vectors * OPS_LANES, bytes = halves ? 2 : sizeof(float), at = 0;
    for (; at + step <= width; at += step) {
        struct ops_rows from = { values.type, (const char *)values.at + at * bytes, values.bytes };
        add_block((struct ops_matrix){ sums.at + at, sums.stride }, shrink, weights, from,
                  positions, halves, rows, vectors);
    }
    for (; at < width; at += OPS_LANES) {
        struct ops_rows from = { values.type, (const char *)values.at + at * bytes, values.bytes };
        add_block((struct ops_matrix){ sums.at + at, sums.stride }, shrink, weights, from,
                  positions, halves, rows, 1);
    }
}

INLINE void add_all(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                    struct ops_rows values, size_t rows, size_t positions, size_t width,
                    const bool halves) {
    while (rows > 0) {
        size_t n = rows >= BLOCK ? BLOCK : rows >= BLOCK / 2 ? BLOCK / 2 : 1;
        if (n == BLOCK)
            add_rows(sums, shrink, weights, values, positions, width, halves, BLOCK, ACROSS);
        else if (n == BLOCK / 2)
            add_rows(sums, shrink, weights, values, positions, width, halves, BLOCK / 2,
                     2 * ACROSS);
        else
            add_rows(sums, shrink, weights, values, positions, width, halves, 1, 4);
        rows -= n;
        sums.at += n * sums.stride;
        weights.at += n;
        shrink += n;
    }
}

static void add_weighted(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                         struct ops_rows values, size_t rows, size_t positions, size_t width) {
    if (values.type == TENSOR_TYPE_F16)
        add_all(sums, shrink, weights, values, rows, positions, width, true);
    else
        add_all(sums, shrink, weights, values, rows, positions, width, false);
}
