/* vec_scalar.h - the vectors of mm_panel.h in plain C: 64 bytes of integers (vi), 16 floats (vf),
 * 16 bytes (vb). Every other vec_*.h has the same functions. */
#ifndef KERNELS_CPU_VEC_SCALAR_H
#define KERNELS_CPU_VEC_SCALAR_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/quant/quant_half.h"

#define INLINE  static inline __attribute__((always_inline, unused))
#define UNROLL  /* left to the compiler */
#define EACH(n) for (int i = 0; i < (n); i++)

enum { VEC_TOKENS = 2, VEC_GROUPS = 1 }; /* how many are multiplied side by side */
enum { VEC_FEW = 1 };                    /* and of the last ones: a power of 2 */
enum { VEC_HOLDS = 0 };                  /* whether registers hold the sums of all runs of those */
enum { VEC_SHARES = 0 };                 /* whether they hold sums of 8 tokens and two runs */
enum { VEC_FLOAT_TOKENS = 4 };           /* the same for floats; at least 4 */
enum { VEC_DOT_TOKENS = 1 };             /* and without unpacking, by four rows: a power of 2 */
enum { VEC_NARROW = 0 };                 /* whether vi_step() sums in 16 bits */
enum { VEC_SPLIT = 1 };                  /* VEC_TOKENS where levels are kept as two times 4 bits */

typedef union {
    int16_t h[32];
    uint16_t u[32];
    int8_t b[64];
    uint8_t ub[64];
    int32_t w[16];
} vi;

typedef struct {
    float f[16];
} vf;

typedef struct {
    uint8_t b[16];
} vb;

/* ---- integers ------------------------------------------------------------------------------- */

INLINE vi vi_load(const void *p) {
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void vi_store(void *p, vi v) {
    memcpy(p, &v, sizeof v);
}

INLINE vi vi_zero(void) {
    return (vi){ { 0 } };
}

INLINE vi vi_and(vi v, uint16_t mask) {
    EACH(32)
    v.u[i] &= mask;
    return v;
}

INLINE vi vi_or(vi v, vi other) {
    EACH(32)
    v.u[i] |= other.u[i];
    return v;
}

INLINE vi vi_right(vi v, int n) {
    EACH(32)
    v.u[i] = (uint16_t)(v.u[i] >> n);
    return v;
}

INLINE vi vi_left(vi v, int n) {
    EACH(32)
    v.u[i] = (uint16_t)(v.u[i] << n);
    return v;
}

/* Signed bytes, 128 added. */
INLINE vi vi_plus_128(vi v) {
    EACH(64)
    v.ub[i] ^= 0x80;
    return v;
}

INLINE vi vi_add(vi v, vi other) {
    EACH(16)
    v.w[i] += other.w[i];
    return v;
}

/* Sums in words that are multiples of 16, by 16. */
INLINE vi vi_sixteenth(vi v) {
    EACH(16)
    v.w[i] /= 16;
    return v;
}

/* 16 bytes of v, the same 16 of w, the next of v and of w, from byte 32 * half on. */
INLINE vi vi_alternate(vi v, vi w, int half) {
    vi out;
    EACH(64)
    out.ub[i] = (i / 16 % 2 ? w : v).ub[32 * half + i / 32 * 16 + i % 16];
    return out;
}

/* Every byte, 0 to 15, by what the table has for it. */
INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    EACH(64)
    v.b[i] = table[v.b[i] & 15];
    return v;
}

/* The same four bytes in every word. */
INLINE vi vi_quad(const int8_t *p) {
    vi v;
    EACH(16)
    memcpy(&v.w[i], p, 4);
    return v;
}

/* sum + the products of unsigned and signed bytes, the four of a word added up; in a narrow sum,
 * two and two. Where that takes a separate addition, an empty asm makes it happen at once: GCC
 * moves additions to where their result is used, and runs out of registers for all the products
 * that it has to keep until then. */
INLINE vi vi_step(vi sum, vi levels, vi x) {
    EACH(64)
    sum.w[i / 4] += levels.ub[i] * x.b[i];
    return sum;
}

/* A sum of steps in words, times `by`, which is 1 unless sums are narrow. */
INLINE vi vi_words(vi sum, int by) {
    (void)by;
    return sum;
}

/* ---- rows to columns ------------------------------------------------------------------------ */

/* Words 0 to 3 of 16 rows that lie `stride` bytes apart: a vector of each word. */
INLINE void vi_turn(const uint8_t *p, size_t stride, vi out[4]) {
    for (int w = 0; w < 4; w++)
        EACH(16)
    memcpy(&out[w].w[i], p + (size_t)i * stride + 4 * w, 4);
}

/* The first bytes of the 16 words side by side, then the second, third and fourth ones. */
INLINE void vi_store_bytes(uint8_t *p, vi v) {
    EACH(64)
    p[i % 4 * 16 + i / 4] = v.ub[i];
}

/* The low halves of the 16 words side by side. */
INLINE void vi_store_halves(uint8_t *p, vi v) {
    EACH(16)
    memcpy(p + 2 * i, &v.u[2 * i], 2);
}

INLINE vi vi_right_words(vi v, int n) {
    EACH(16)
    v.w[i] = (int32_t)((uint32_t)v.w[i] >> n);
    return v;
}

INLINE vi vi_left_words(vi v, int n) {
    EACH(16)
    v.w[i] = (int32_t)((uint32_t)v.w[i] << n);
    return v;
}

/* The bits of every word that the mask names change places with those `n` further up. */
INLINE vi vi_swap(vi v, int n, uint32_t mask) {
    EACH(16) {
        uint32_t w = (uint32_t)v.w[i], t = (w >> n ^ w) & mask;
        v.w[i] = (int32_t)(w ^ t ^ t << n);
    }
    return v;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

INLINE vb vb_load(const void *p) {
    vb v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* `bits` bits of every byte, from bit `from` on */
INLINE vb vb_bits(vb v, int from, int bits) {
    EACH(16)
    v.b[i] = (uint8_t)(v.b[i] >> from & ((1 << bits) - 1));
    return v;
}

/* low | high << 4 */
INLINE vb vb_join(vb low, vb high) {
    EACH(16)
    low.b[i] = (uint8_t)(low.b[i] | high.b[i] << 4);
    return low;
}

/* ---- floats --------------------------------------------------------------------------------- */

INLINE vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void vf_store(float *p, vf v) {
    memcpy(p, &v, sizeof v);
}

INLINE vf vf_set(float x) {
    vf v;
    EACH(16)
    v.f[i] = x;
    return v;
}

/* The same bits, as the other kind of number. */
INLINE vf vf_bits(vi v) {
    vf out;
    memcpy(&out, &v, sizeof out);
    return out;
}

INLINE vi vi_bits(vf v) {
    vi out;
    memcpy(&out, &v, sizeof out);
    return out;
}

/* Without their last two bits. */
INLINE vf vf_coarse(vf v) {
    vi bits = vi_bits(v);
    EACH(16)
    bits.w[i] &= ~3;
    return vf_bits(bits);
}

/* 1 / v to 13 bits, for v > 0; something finite for 0. */
INLINE vf vf_inverse(vf v) {
    EACH(16)
    v.f[i] = 1 / (v.f[i] > FLT_MIN ? v.f[i] : FLT_MIN);
    return v;
}

/* The sums of elements 0 and 1, of 2 and 3 …, each twice. */
INLINE vf vf_pairs(vf v) {
    vf out;
    EACH(16)
    out.f[i] = v.f[i] + v.f[i ^ 1];
    return out;
}

INLINE vf vf_words(vi v) {
    vf out;
    EACH(16)
    out.f[i] = (float)v.w[i];
    return out;
}

INLINE vf vf_bytes(vb v) {
    vf out;
    EACH(16)
    out.f[i] = v.b[i];
    return out;
}

INLINE vf vf_signed_bytes(vb v) {
    vf out;
    EACH(16)
    out.f[i] = (int8_t)v.b[i];
    return out;
}

INLINE vf vf_halves(const void *p) {
    uint16_t h[16];
    vf out;
    memcpy(h, p, sizeof h);
    EACH(16)
    out.f[i] = quant_half_to_float(h[i]);
    return out;
}

INLINE vf vf_mul(vf a, vf b) {
    EACH(16)
    a.f[i] *= b.f[i];
    return a;
}

/* a * b + c, rounded once, as the other sets round it. The product is exact as a double. So is the
 * sum with what is lost of it (`rest`), and if there is a rest the last bit of the sum is set,
 * which rounds it to the right side when it becomes a float (round to odd). fmaf() does the same,
 * slower where the processor has no instruction for it. */
INLINE float vec_fused(float a, float b, float c) {
    const double product = (double)a * b, sum = product + c;
    const double other = sum - product, rest = (product - (sum - other)) + (c - other);
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if ((rest > 0 || rest < 0) && bits % 2 == 0)
        bits += (rest > 0) == (sum > 0) ? 1 : -1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

INLINE vf vf_fma(vf a, vf b, vf c) {
    EACH(16)
    c.f[i] = vec_fused(a.f[i], b.f[i], c.f[i]);
    return c;
}

/* c - a * b, likewise */
INLINE vf vf_fnma(vf a, vf b, vf c) {
    EACH(16)
    c.f[i] = vec_fused(-a.f[i], b.f[i], c.f[i]);
    return c;
}

/* a * b + c, rounded once or twice, whichever is faster */
INLINE vf vf_mla(vf a, vf b, vf c) {
    EACH(16)
    c.f[i] += a.f[i] * b.f[i];
    return c;
}

INLINE vf vf_brain_halves(const void *p) {
    uint16_t h[16];
    vf out;
    memcpy(h, p, sizeof h);
    EACH(16)
    out.f[i] = quant_float_from_bits((uint32_t)h[i] << 16);
    return out;
}

INLINE float vf_total(vf v) {
    float sum = 0;
    EACH(16)
    sum += v.f[i];
    return sum;
}

/* Rows to columns. */
INLINE void vf_turn(vf v[16]) {
    vf turned[16];
    for (int r = 0; r < 16; r++)
        EACH(16)
    turned[i].f[r] = v[r].f[i];
    memcpy(v, turned, sizeof turned);
}

/* ---- activations ---------------------------------------------------------------------------- */

/* The largest magnitude of 16 floats; what is not a number counts as larger than all. */
INLINE float vec_peak(const float *x) {
    uint32_t peak = 0;
    EACH(16) {
        uint32_t bits = quant_bits_from_float(x[i]) & 0x7fffffff;
        peak = bits > peak ? bits : peak;
    }
    return quant_float_from_bits(peak);
}

/* Levels of 16 floats; returns their sum. */
INLINE int32_t vec_quantize(const float *x, float by, int8_t *level) {
    int32_t sum = 0;
    EACH(16) {
        level[i] = (int8_t)lrintf(x[i] * by);
        sum += level[i];
    }
    return sum;
}

#endif
