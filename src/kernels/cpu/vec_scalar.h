/* vec_scalar.h - the vectors of mm_panel.h in plain C: 64 bytes of integers (vi), 16 floats (vf),
 * 16 bytes (vb). Every other vec_*.h has the same functions. */
#ifndef KERNELS_CPU_VEC_SCALAR_H
#define KERNELS_CPU_VEC_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/quant_half.h"

#define INLINE  static inline __attribute__((always_inline, unused))
#define UNROLL  /* the compiler knows better */
#define EACH(n) for (int i = 0; i < (n); i++)

enum { VEC_TOKENS = 2, VEC_GROUPS = 1 }; /* how many are multiplied side by side */

typedef union {
    int16_t h[32];
    uint16_t u[32];
    int8_t b[64];
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

INLINE vi vi_right_signed(vi v, int n) {
    EACH(32)
    v.h[i] = (int16_t)(v.h[i] >> n);
    return v;
}

INLINE vi vi_minus(vi v, int16_t n) {
    EACH(32)
    v.h[i] = (int16_t)(v.h[i] - n);
    return v;
}

/* Every byte, 0 to 15, by what the table has for it. */
INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    EACH(64)
    v.b[i] = table[v.b[i] & 15];
    return v;
}

/* The same 32 bits in every word. */
INLINE vi vi_pair(const int16_t *p) {
    vi v;
    EACH(16)
    memcpy(&v.w[i], p, 4);
    return v;
}

/* sum + the products of both halves of each word */
INLINE vi vi_madd(vi sum, vi a, vi b) {
    EACH(16)
    sum.w[i] += a.h[2 * i] * b.h[2 * i] + a.h[2 * i + 1] * b.h[2 * i + 1];
    return sum;
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

/* a * b + c */
INLINE vf vf_fma(vf a, vf b, vf c) {
    EACH(16)
    c.f[i] += a.f[i] * b.f[i];
    return c;
}

/* c - a * b */
INLINE vf vf_fnma(vf a, vf b, vf c) {
    EACH(16)
    c.f[i] -= a.f[i] * b.f[i];
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

/* ---- activations ---------------------------------------------------------------------------- */

/* The largest magnitude of 32 floats; what is not a number counts as larger than all. */
INLINE float vec_peak(const float *x) {
    uint32_t peak = 0;
    EACH(32) {
        uint32_t bits = quant_bits_from_float(x[i]) & 0x7fffffff;
        peak = bits > peak ? bits : peak;
    }
    return quant_float_from_bits(peak);
}

/* Levels of 32 floats in the order of mm.h; sums of 16 of them. */
INLINE void vec_quantize(const float *x, float by, int16_t *level, int32_t sum[2]) {
    static const int order[] = { 0, 2, 1, 3 };
    sum[0] = sum[1] = 0;
    EACH(32) {
        int32_t v = (int32_t)lrintf(x[i] * by);
        level[i / 4 * 4 + order[i % 4]] = (int16_t)v;
        sum[i / 16] += v;
    }
}

#endif
