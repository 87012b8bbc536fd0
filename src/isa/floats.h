/* floats.h - small floats as bits: f16, bf16, and the 8-bit formats of gfx942. Rounds to nearest
 * even unless a name says otherwise; written without branches where rows are converted. */
#ifndef ISA_FLOATS_H
#define ISA_FLOATS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t isa_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float isa_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
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

/* Exact; a signalling NaN becomes a quiet one. */
static inline float isa_from_half(uint32_t h) {
    uint32_t rest = (h & 0x7fff) << 13;
    uint32_t finite = isa_bits(isa_float(rest) * 0x1p112f);
    uint32_t special = rest | 0x7f800000 | ((h & 0x7fff) > 0x7c00 ? 0x400000 : 0);
    return isa_float(((h & 0x7fff) >= 0x7c00 ? special : finite) | (h & 0x8000) << 16);
}

static inline uint32_t isa_to_half(float f) {
    uint32_t u = isa_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    uint32_t normal = (a + 0xc8000fff + (a >> 13 & 1)) >> 13;
    uint32_t denormal = isa_bits(isa_float(a) + 0.5f) - 0x3f000000;
    uint32_t h = a < 0x38800000 ? denormal : normal;
    h = a >= 0x477ff000 ? 0x7c00 : h;
    h = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : h;
    return h | sign;
}

/* Rounded towards zero: numbers that are too large become the largest one. */
static inline uint32_t isa_to_half_zero(float f) {
    uint32_t u = isa_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff, h;
    if (a > 0x7f800000)
        h = 0x7e00 | (a >> 13 & 0x3ff);
    else if (a == 0x7f800000)
        h = 0x7c00;
    else if (a >= 0x47800000)
        h = 0x7bff;
    else if (a >= 0x38800000)
        h = (a - 0x38000000) >> 13;
    else
        h = (uint32_t)(isa_float(a) * 0x1p24f);
    return h | sign;
}

/* A double to a float with the last bit set if bits were lost ("round to odd"): what is rounded to
 * fewer bits after that is as if rounded once. Not for numbers that are denormal as floats. */
static inline float isa_to_odd(double d) {
    uint64_t u = isa_bits64(d), lost = u & 0x1fffffff;
    uint64_t cut = (u & ~UINT64_C(0x1fffffff)) | (uint64_t)(lost != 0) << 29;
    return (float)isa_double(cut);
}

/* fma of three f16, given as floats, rounded once. The product is exact in a double; the sum is
 * rounded to odd with what it lost. Infinities lose a NaN, which changes nothing. */
static inline uint32_t isa_half_fma(float a, float b, float c) {
    double p = (double)a * (double)b, s = p + (double)c;
    double back = s - p, lost = (p - (s - back)) + ((double)c - back);
    uint64_t u = isa_bits64(s);
    int inexact = (lost < 0) | (lost > 0), away = ((lost > 0) & (s > 0)) | ((lost < 0) & (s < 0));
    uint64_t step = inexact && !(u & 1) ? (away ? 1 : -UINT64_C(1)) : 0;
    return isa_to_half(isa_to_odd(isa_double(u + step)));
}

/* ---- bf16 ---- */

static inline float isa_from_bf16(uint32_t h) {
    return isa_float(h << 16);
}

static inline uint32_t isa_to_bf16(float f) {
    uint32_t u = isa_bits(f);
    if (f != f)
        return u >> 16 | 0x40;
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* ---- 8 bits: fp8 is E4M3 with bias 8, bf8 is E5M2 with bias 16; no infinities, no -0, 0x80 is NaN
 * ---- */

static inline float isa_from_8(uint32_t b, int mantissa_bits, int bias) {
    uint32_t mantissa = b & ((1u << mantissa_bits) - 1);
    int exponent = (int)(b >> mantissa_bits & (mantissa_bits == 3 ? 15 : 31));
    float f;
    if ((b & 0xff) == 0x80)
        return isa_float(0x7fc00000);
    if (exponent == 0)
        f = ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    else
        f = ldexpf((float)(mantissa | 1u << mantissa_bits), exponent - bias - mantissa_bits);
    return b & 0x80 ? -f : f;
}
static inline float isa_from_fp8(uint32_t b) {
    return isa_from_8(b, 3, 8);
}
static inline float isa_from_bf8(uint32_t b) {
    return isa_from_8(b, 2, 16);
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
