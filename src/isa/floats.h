/* floats.h - small floats as bits: f16, bf16, and the 8-bit formats of gfx942. Rounds to nearest
 * even unless a name says otherwise; written without branches where rows are converted. */
#ifndef ISA_FLOATS_H
#define ISA_FLOATS_H

#include "base/half.h"

#include <stdint.h>
#include <string.h>

static inline uint32_t isa_bits(float f) {
    return float_bits(f);
}
static inline float isa_float(uint32_t u) {
    return float_from_bits(u);
}
static inline uint64_t isa_bits64(double f) {
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline double isa_double(uint64_t u) {
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- f16 ---- */

static inline float isa_from_half(uint32_t h) {
    return half_to_float(h);
}
static inline uint32_t isa_to_half(float f) {
    return float_to_half(f);
}

/* Rounded towards zero: numbers that are too large become the largest one. */
static inline uint32_t isa_to_half_zero(float f) {
    uint32_t u = isa_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    uint32_t is_tiny = -(uint32_t)(a < 0x38800000), normal = (a - 0x38000000) >> 13;
    uint32_t tiny = (uint32_t)(int32_t)(isa_float(a & is_tiny) * 0x1p24f);
    uint32_t h = (tiny & is_tiny) | (normal & ~is_tiny);
    h = a >= 0x47800000 ? 0x7bff : h;
    h = a == 0x7f800000 ? 0x7c00 : h;
    h = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : h;
    return h | sign;
}

/* fma of three f16, given as floats, before it is rounded to an f16. The product is exact in a
 * float; the sum is rounded to odd: its last bit is set if something was lost, so that what is
 * rounded to fewer bits after that is as if rounded once. Infinities lose a NaN, which changes
 * nothing. */
static inline float isa_odd_fma(float a, float b, float c) {
    float p = a * b, s = p + c;
    float back = s - p, lost = (p - (s - back)) + (c - back);
    uint32_t u = isa_bits(s), inexact = (uint32_t)((lost < 0) | (lost > 0));
    uint32_t step = (lost < 0) == (s < 0) ? 1 : ~0u;
    return isa_float(u + (inexact & ~u & 1 ? step : 0));
}
static inline uint32_t isa_half_fma(float a, float b, float c) {
    return isa_to_half(isa_odd_fma(a, b, c));
}

/* ---- bf16 ---- */

static inline float isa_from_bf16(uint32_t h) {
    return bf16_to_float(h);
}
static inline uint32_t isa_to_bf16(float f) {
    return float_to_bf16(f);
}

/* ---- 8 bits: fp8 is E4M3, bias 8, bf8 E5M2, bias 16; no infinities, no -0, 0x80 is NaN ------- */

/* The exponent and mantissa, where a float has them, times what the biases differ by. */
static inline float isa_from_fp8(uint32_t b) {
    uint32_t magnitude = isa_bits(isa_float((b & 0x7f) << 20) * 0x1p119f);
    return isa_float((b & 0xff) == 0x80 ? 0x7fc00000 : magnitude | (b & 0x80) << 24);
}
static inline float isa_from_bf8(uint32_t b) {
    uint32_t magnitude = isa_bits(isa_float((b & 0x7f) << 21) * 0x1p111f);
    return isa_float((b & 0xff) == 0x80 ? 0x7fc00000 : magnitude | (b & 0x80) << 24);
}

/* `add` is what rounding adds to the float's mantissa below the last bit that stays, for normal
 * results; nearest even if it is negative. */
static inline uint32_t isa_to_8(float f, int mantissa_bits, int bias, int64_t add) {
    uint32_t u = isa_bits(f), sign = u >> 24 & 0x80, a = u & 0x7fffffff;
    if (a >= 0x7f800000)
        return 0x80;
    if (a == 0)
        return 0;
    int exponent = (int)(a >> 23) - 127;
    uint64_t mantissa = a >> 23 ? (a & 0x7fffff) | 0x800000 : a & 0x7fffff;
    if (!(a >> 23))
        exponent = -126;
    int shift = 23 - mantissa_bits, least = 1 - bias;
    if (exponent < least) {
        shift += least - exponent;
        exponent = least;
    }
    if (shift > 40)
        return 0;
    uint64_t half = UINT64_C(1) << (shift - 1);
    uint64_t more = add < 0 ? half - 1 + (mantissa >> shift & 1)
                            : (uint64_t)add
                                  << (shift > 23 - mantissa_bits ? shift - 23 + mantissa_bits : 0);
    mantissa = (mantissa + more) >> shift;
    if (mantissa >> (mantissa_bits + 1)) {
        mantissa >>= 1;
        exponent++;
    }
    if (!mantissa)
        return 0;
    int field = mantissa >> mantissa_bits ? exponent + bias : 0;
    if (field > (mantissa_bits == 3 ? 15 : 31))
        return 0x80;
    return sign | (uint32_t)field << mantissa_bits |
           (uint32_t)(mantissa & ((1u << mantissa_bits) - 1));
}
static inline uint32_t isa_to_fp8(float f) {
    return isa_to_8(f, 3, 8, -1);
}
static inline uint32_t isa_to_bf8(float f) {
    return isa_to_8(f, 2, 16, -1);
}

#endif
