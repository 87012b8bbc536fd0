/* rows_math.h - what the expressions of rows_*.def call: one lane at a time, inlined into the loops
 * over lanes. Semantics are those of AMD's ISA documents, chapter "Instruction descriptions". */
#ifndef ISA_ROWS_MATH_H
#define ISA_ROWS_MATH_H

#include "isa/floats.h"

#include <math.h>
#include <stdint.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Choices without a branch: compilers turn `?:` into branches, which prevents vectorisation. */
static inline uint32_t pick32(int condition, uint32_t yes, uint32_t no) {
    uint32_t mask = -(uint32_t)(condition != 0);
    return (yes & mask) | (no & ~mask);
}
static inline uint64_t pick64(int condition, uint64_t yes, uint64_t no) {
    uint64_t mask = -(uint64_t)(condition != 0);
    return (yes & mask) | (no & ~mask);
}
static inline float pick_f32(int condition, float yes, float no) {
    return isa_float(pick32(condition, isa_bits(yes), isa_bits(no)));
}
static inline double pick_f64(int condition, double yes, double no) {
    return isa_double(pick64(condition, isa_bits64(yes), isa_bits64(no)));
}

/* ---- integers ---- */

static inline int32_t clamp_i32(int32_t x, int32_t low, int32_t high) {
    return x < low ? low : x > high ? high : x;
}
static inline int64_t clamp_i64(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}
static inline uint32_t clamp_u64(uint64_t x, uint32_t high) {
    return x > high ? high : (uint32_t)x;
}

static inline uint32_t reverse32(uint32_t a) {
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(a);
}

static inline uint32_t count_ones(uint32_t a) {
    a -= a >> 1 & 0x55555555;
    a = (a & 0x33333333) + (a >> 2 & 0x33333333);
    return ((a + (a >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

/* The number of the highest bit that is set; meaningless for 0. */
static inline uint32_t highest_bit(uint32_t a) {
    return (uint32_t)(isa_bits64((double)a) >> 52) - 1023;
}
static inline uint32_t leading_zeros(uint32_t a) {
    return pick32(a == 0, ~0u, 31 - highest_bit(a));
}
static inline uint32_t trailing_zeros(uint32_t a) {
    return pick32(a == 0, ~0u, highest_bit(a & -a));
}
static inline uint32_t leading_signs(int32_t a) {
    return leading_zeros((uint32_t)(a ^ a >> 31));
}

static inline int64_t signed24(uint32_t a) {
    return (int32_t)(a << 8) >> 8;
}

static inline int32_t field_i32(int32_t a, uint32_t offset, uint32_t width) {
    uint32_t shifted = (uint32_t)(a >> offset);
    return width ? (int32_t)(shifted << (32 - width)) >> (32 - width) : 0;
}

static inline uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d = 0;
    for (int n = 0; n < 32; n += 8)
        d |= ((a >> n & 0xff) + (b >> n & 0xff) + (c >> n & 1)) >> 1 << n;
    return d;
}

static inline uint32_t difference(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static inline uint32_t sad_u8(uint32_t a, uint32_t b) {
    return difference(a & 0xff, b & 0xff) + difference(a >> 8 & 0xff, b >> 8 & 0xff) +
           difference(a >> 16 & 0xff, b >> 16 & 0xff) + difference(a >> 24, b >> 24);
}

static inline uint32_t sad_u16(uint32_t a, uint32_t b) {
    return difference(a & 0xffff, b & 0xffff) + difference(a >> 16, b >> 16);
}

static inline uint32_t msad_u8(uint32_t a, uint32_t b) {
    uint32_t d = 0;
    for (int n = 0; n < 32; n += 8)
        d += b >> n & 0xff ? difference(a >> n & 0xff, b >> n & 0xff) : 0;
    return d;
}

/* Four sums of 16 bits. */
static inline uint64_t qsad_u8(uint64_t a, uint32_t b, uint64_t c, int masked) {
    uint64_t d = 0;
    for (int n = 0; n < 4; n++) {
        uint32_t part = (uint32_t)(a >> 8 * n);
        uint64_t sum = (masked ? msad_u8(part, b) : sad_u8(part, b)) + (c >> 16 * n & 0xffff);
        d |= (sum > 0xffff ? 0xffff : sum) << 16 * n;
    }
    return d;
}

/* Selectors 0 to 7: that byte; 8 to 11: the sign of byte 1, 3, 5, 7; 12: 0; above: 0xff. */
static inline uint32_t permute_bytes(uint64_t bytes, uint32_t selectors) {
    uint32_t d = 0;
    for (int n = 0; n < 32; n += 8) {
        uint32_t s = selectors >> n & 0xff, byte;
        if (s < 8)
            byte = (uint32_t)(bytes >> 8 * s) & 0xff;
        else if (s < 12)
            byte = bytes >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
        else
            byte = s == 12 ? 0 : 0xff;
        d |= byte << n;
    }
    return d;
}

static inline int64_t dot_wide_i(uint32_t a, uint32_t b, int bits) {
    int64_t sum = 0;
    for (int n = 0; n < 32; n += bits) {
        int32_t x = (int32_t)(a << (32 - bits - n)) >> (32 - bits);
        int32_t y = (int32_t)(b << (32 - bits - n)) >> (32 - bits);
        sum += (int64_t)x * y;
    }
    return sum;
}
static inline uint64_t dot_wide_u(uint32_t a, uint32_t b, int bits) {
    uint64_t sum = 0;
    for (int n = 0; n < 32; n += bits) {
        uint32_t x = (a << (32 - bits - n)) >> (32 - bits),
                 y = (b << (32 - bits - n)) >> (32 - bits);
        sum += (uint64_t)x * y;
    }
    return sum;
}
static inline uint32_t dot_i(uint32_t a, uint32_t b, uint32_t c, int bits) {
    return (uint32_t)dot_wide_i(a, b, bits) + c;
}
static inline uint32_t dot_u(uint32_t a, uint32_t b, uint32_t c, int bits) {
    return (uint32_t)dot_wide_u(a, b, bits) + c;
}

/* ---- floats: min, max and med3 compare bits, for NaNs and zeros to come out right ------------ */

/* An integer that orders numbers as they are ordered, -0 before +0. */
static inline int32_t order_f32(uint32_t a) {
    return (int32_t)a < 0 ? (int32_t)(a ^ 0x7fffffff) : (int32_t)a;
}
static inline int64_t order_f64(uint64_t a) {
    return (int64_t)a < 0 ? (int64_t)(a ^ INT64_MAX) : (int64_t)a;
}
static inline int is_nan_f32(uint32_t a) {
    return (a & 0x7fffffff) > 0x7f800000;
}
static inline int is_signalling_f32(uint32_t a) {
    return is_nan_f32(a) & !(a & 0x400000);
}
static inline int is_nan_f64(uint64_t a) {
    return (a & INT64_MAX) > UINT64_C(0x7ff) << 52;
}
static inline int is_signalling_f64(uint64_t a) {
    return is_nan_f64(a) & !(a >> 51 & 1);
}

/* A signalling NaN comes out quiet; otherwise one NaN gives the other source. */
static inline uint32_t choose_f32(uint32_t a, uint32_t b, uint32_t less) {
    uint32_t d = pick32(is_nan_f32(b), a, less);
    d = pick32(is_nan_f32(a), b, d);
    d = pick32(is_signalling_f32(b), b | 0x400000, d);
    return pick32(is_signalling_f32(a), a | 0x400000, d);
}
static inline uint32_t min_f32(uint32_t a, uint32_t b) {
    return choose_f32(a, b, order_f32(a) < order_f32(b) ? a : b);
}
static inline uint32_t max_f32(uint32_t a, uint32_t b) {
    return choose_f32(a, b, order_f32(a) > order_f32(b) ? a : b);
}
static inline uint32_t med3_f32(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t low = min_f32(a, b), middle = max_f32(low, min_f32(max_f32(a, b), c));
    return pick32(is_nan_f32(a) | is_nan_f32(b) | is_nan_f32(c), min_f32(low, c), middle);
}

static inline uint64_t choose_f64(uint64_t a, uint64_t b, uint64_t less) {
    uint64_t d = is_nan_f64(b) ? a : less;
    d = is_nan_f64(a) ? b : d;
    d = is_signalling_f64(b) ? b | UINT64_C(1) << 51 : d;
    return is_signalling_f64(a) ? a | UINT64_C(1) << 51 : d;
}
static inline uint64_t min_f64(uint64_t a, uint64_t b) {
    return choose_f64(a, b, order_f64(a) < order_f64(b) ? a : b);
}
static inline uint64_t max_f64(uint64_t a, uint64_t b) {
    return choose_f64(a, b, order_f64(a) > order_f64(b) ? a : b);
}

/* An f16 has the same layout in the upper bits of 32 with a shorter exponent; it is compared there.
 */
static inline int is_nan_f16(uint32_t a) {
    return (a & 0x7fff) > 0x7c00;
}
static inline uint32_t choose_f16(uint32_t a, uint32_t b, uint32_t less) {
    uint32_t d = pick32(is_nan_f16(b), a, less);
    d = pick32(is_nan_f16(a), b, d);
    d = pick32(is_nan_f16(b) & !(b & 0x200), b | 0x200, d);
    return pick32(is_nan_f16(a) & !(a & 0x200), a | 0x200, d);
}
static inline uint32_t min_f16(uint32_t x, uint32_t y) {
    uint32_t a = x & 0xffff, b = y & 0xffff;
    return choose_f16(a, b, order_f32(a << 16) < order_f32(b << 16) ? a : b);
}
static inline uint32_t max_f16(uint32_t x, uint32_t y) {
    uint32_t a = x & 0xffff, b = y & 0xffff;
    return choose_f16(a, b, order_f32(a << 16) > order_f32(b << 16) ? a : b);
}
static inline uint32_t med3_f16(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t low = min_f16(a, b), middle = max_f16(low, min_f16(max_f16(a, b), c));
    return pick32(is_nan_f16(a) | is_nan_f16(b) | is_nan_f16(c), min_f16(low, c), middle);
}

/* Bits of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, ..., +inf. */
#define CLASS_OF(name, type)                                                                       \
    static inline uint32_t name(uint32_t negative, type magnitude, type infinity, type normal,     \
                                type quiet) {                                                      \
        uint32_t d = pick32(negative != 0, 1 << 5, 1 << 6);                                        \
        d = pick32(magnitude != 0, pick32(negative != 0, 1 << 4, 1 << 7), d);                      \
        d = pick32(magnitude >= normal, pick32(negative != 0, 1 << 3, 1 << 8), d);                 \
        d = pick32(magnitude >= infinity, pick32(negative != 0, 1 << 2, 1 << 9), d);               \
        return pick32(magnitude > infinity, pick32((magnitude & quiet) != 0, 2, 1), d);            \
    }
CLASS_OF(class_of_32, uint32_t)
CLASS_OF(class_of_64, uint64_t)
#undef CLASS_OF

/* ---- floats: conversions and parts ---- */

static inline float flush_f32(float f) {
    uint32_t u = isa_bits(f);
    return isa_float(pick32((u & 0x7f800000) == 0, u & 0x80000000, u));
}

/* Rounded twice, without denormals. (The product goes through a double so that no compiler makes an
 * fma of it.) */
static inline float mad_f32(float a, float b, float c) {
    float p = flush_f32((float)((double)flush_f32(a) * (double)flush_f32(b)));
    return flush_f32(p + flush_f32(c));
}

static inline int32_t to_i32(double x) {
    double y = x < -2147483648.0 ? -2147483648.0 : x > 2147483647.0 ? 2147483647.0 : x;
    double number = x == x ? y : 0.0;
    return (int32_t)number;
}
static inline uint32_t to_u32(double x) {
    double y = x < 0.0 ? 0.0 : x > 4294967295.0 ? 4294967295.0 : x;
    return x == x ? (uint32_t)y : 0;
}
static inline uint32_t to_u8(float x) {
    double y = nearbyint((double)x);
    return x == x ? (uint32_t)(y < 0 ? 0 : y > 255 ? 255 : y) : 0;
}
static inline uint32_t norm_i16(float x) {
    double y = x < -1.0f ? -1.0 : x > 1.0f ? 1.0 : (double)x;
    return x == x ? (uint32_t)(int32_t)nearbyint(y * 32767.0) : 0;
}
static inline uint32_t norm_u16(float x) {
    double y = x < 0.0f ? 0.0 : x > 1.0f ? 1.0 : (double)x;
    return x == x ? (uint32_t)nearbyint(y * 65535.0) : 0;
}

static inline uint64_t pair_f32(float low, float high) {
    return isa_bits(low) | (uint64_t)isa_bits(high) << 32;
}

/* Exact in a double, then rounded once. */
static inline float ldexp_f32(float a, int32_t n) {
    int32_t m = n < -400 ? -400 : n > 400 ? 400 : n;
    return (float)((double)a * isa_double((uint64_t)(m + 1023) << 52));
}

static inline float fract_f32(float a) {
    float d = a - floorf(a);
    return d >= 1.0f ? 0x1.fffffep-1f : d;
}
static inline double fract_f64(double a) {
    double d = a - floor(a);
    return d >= 1.0 ? 0x1.fffffffffffffp-1 : d;
}
static inline float fract_f16(float a) {
    float d = a - floorf(a);
    return pick_f32(d > 0x1.ffcp-1f, 0x1.ffcp-1f, d);
}

/* Denormals are scaled to normal numbers first. */
static inline int32_t frexp_exponent_f32(uint32_t a) {
    uint32_t e = a >> 23 & 0xff, scaled = isa_bits(isa_float(a) * 0x1p24f) >> 23 & 0xff;
    uint32_t d = pick32(e == 0, scaled - 150, e - 126);
    return (int32_t)pick32((e == 255) | ((a & 0x7fffffff) == 0), 0, d);
}
static inline uint32_t frexp_mantissa_f32(uint32_t a) {
    uint32_t e = a >> 23 & 0xff, scaled = isa_bits(isa_float(a) * 0x1p24f);
    uint32_t m = pick32(e == 0, scaled, a) & 0x7fffff;
    uint32_t d = (a & 0x80000000) | 126u << 23 | m;
    d = pick32((a & 0x7fffffff) == 0, a, d);
    return pick32(e == 255, pick32((a & 0x7fffff) != 0, a | 0x400000, a), d);
}
static inline int32_t frexp_exponent_f64(uint64_t a) {
    uint64_t e = a >> 52 & 0x7ff, scaled = isa_bits64(isa_double(a) * 0x1p54) >> 52 & 0x7ff;
    uint64_t d = pick64(e == 0, scaled - 1076, e - 1022);
    return (int32_t)pick64((e == 0x7ff) | (a << 1 == 0), 0, d);
}
static inline uint64_t frexp_mantissa_f64(uint64_t a) {
    uint64_t e = a >> 52 & 0x7ff, scaled = isa_bits64(isa_double(a) * 0x1p54);
    uint64_t m = pick64(e == 0, scaled, a) << 12 >> 12;
    uint64_t d = (a & UINT64_C(1) << 63) | UINT64_C(1022) << 52 | m;
    d = pick64(a << 1 == 0, a, d);
    return pick64(e == 0x7ff, pick64(a << 12 != 0, a | UINT64_C(1) << 51, a), d);
}

/* The exponent is changed; where that leads beyond normal numbers, a product rounds once. */
static inline double ldexp_f64(double a, int32_t n) {
    uint64_t u = isa_bits64(a), infinity = UINT64_C(0x7ff) << 52;
    int denormal = (u & infinity) == 0, outside = (u & infinity) == infinity;
    uint64_t v = pick64(denormal, isa_bits64(a * 0x1p54), u);
    int32_t m = n < -5000 ? -5000 : n > 5000 ? 5000 : n;
    int32_t e = (int32_t)(v >> 52 & 0x7ff) + m - (int32_t)pick32(denormal, 54, 0);
    int32_t small = e<1, large = e> 2046;
    e += (int32_t)pick32(small, 64, 0) - (int32_t)pick32(large, 64, 0);
    e = e < 1 ? 1 : e > 2046 ? 2046 : e;
    double factor = isa_double((uint64_t)(1023 - 64 * small + 64 * large) << 52);
    double d = isa_double((v & ~infinity) | (uint64_t)e << 52) * factor;
    return pick_f64(outside | (u << 1 == 0), a + a, d);
}

/* ---- functions of documented precision: polynomials of doubles, much better than a float ---- */

/* The nearest integer to a number of less than 2^31, in every rounding mode. */
static inline int32_t nearest_i32(double x) {
    return (int32_t)(x + pick_f64(x < 0.0, -0.5, 0.5));
}

/* 2^x for what fits a float; the terms are ln(2)^n / n!. */
static inline double exp2_of(double x) {
    double y = pick_f64(x > -2000.0, x, -2000.0); /* also of a NaN */
    y = pick_f64(y < 2000.0, y, 2000.0);
    int32_t n = nearest_i32(y);
    double r = y - (double)n;
    double p = 0x1.e8cac7351bb25p-32;
    p = p * r + 0x1.e4cf5158b8ecap-28;
    p = p * r + 0x1.b5253d395e7c4p-24;
    p = p * r + 0x1.62c0223a5c824p-20;
    p = p * r + 0x1.ffcbfc588b0c7p-17;
    p = p * r + 0x1.430912f86c787p-13;
    p = p * r + 0x1.5d87fe78a6731p-10;
    p = p * r + 0x1.3b2ab6fba4e77p-7;
    p = p * r + 0x1.c6b08d704a0c0p-5;
    p = p * r + 0x1.ebfbdff82c58fp-3;
    p = p * r + 0x1.62e42fefa39efp-1;
    p = p * r + 1.0;
    int32_t half = n / 2; /* 2^n in two steps, each a normal number */
    p = p * isa_double((uint64_t)(1023 + half) << 52) *
        isa_double((uint64_t)(1023 + n - half) << 52);
    return pick_f64(x != x, x, p);
}

static inline float exp2_f32(float a) {
    return flush_f32((float)exp2_of((double)flush_f32(a)));
}

/* log2 of a float: with m between sqrt(1/2) and sqrt(2), 2 atanh((m - 1) / (m + 1)) / ln(2). */
static inline double log2_of(float a) {
    uint64_t u = isa_bits64((double)a);
    uint64_t from_half = u - isa_bits64(0x1.6a09e667f3bcdp-1);
    int32_t e = (int32_t)(from_half >> 52 & 0xfff);
    e = e >= 0x800 ? e - 0x1000 : e;
    double m = isa_double(u - ((uint64_t)(int64_t)e << 52));
    double s = (m - 1.0) / (m + 1.0), t = s * s;
    double p = 1.0 / 19.0;
    p = p * t + 1.0 / 17.0;
    p = p * t + 1.0 / 15.0;
    p = p * t + 1.0 / 13.0;
    p = p * t + 1.0 / 11.0;
    p = p * t + 1.0 / 9.0;
    p = p * t + 1.0 / 7.0;
    p = p * t + 1.0 / 5.0;
    p = p * t + 1.0 / 3.0;
    p = p * t + 1.0;
    double d = (double)e + p * s * 0x1.71547652b82fep+1;
    double infinity = isa_double(UINT64_C(0x7ff) << 52);
    d = pick_f64(a == 0.0f, -infinity, d);
    d = pick_f64((double)a == infinity, infinity, d);
    d = pick_f64(a < 0.0f, isa_double(UINT64_C(0xfff8) << 48), d);
    return pick_f64(a != a, (double)a, d);
}

static inline float log2_f32(float a) {
    return (float)log2_of(flush_f32(a));
}

/* sin(2 pi (a + quarter)). The argument is in turns; beyond 256 of them hardware gives 0. */
static inline float sine(float a, double quarter) {
    int finite = (isa_bits(a) & 0x7f800000) != 0x7f800000;
    int inside = (isa_bits(a) & 0x7fffffff) <= 0x43800000; /* 256 */
    double turns = (double)pick_f32(inside, a, 0.0f);
    double t = turns - (double)nearest_i32(turns) + quarter; /* -1/2 to 3/4 */
    t = pick_f64(t > 0.5, t - 1.0, t);
    t = pick_f64(t > 0.25, 0.5 - t, t);
    t = pick_f64(t < -0.25, -0.5 - t, t);
    double x = 6.283185307179586476925 * t, y = x * x;
    double p = 1.0 / 355687428096000.0; /* 1 / 17!, and so on, with alternating signs */
    p = p * y - 1.0 / 1307674368000.0;
    p = p * y + 1.0 / 6227020800.0;
    p = p * y - 1.0 / 39916800.0;
    p = p * y + 1.0 / 362880.0;
    p = p * y - 1.0 / 5040.0;
    p = p * y + 1.0 / 120.0;
    p = p * y - 1.0 / 6.0;
    double d = x + x * y * p;
    float f = pick_f32(inside, (float)d, quarter != 0.0 ? 1.0f : 0.0f);
    if (quarter == 0.0) /* the sign of a zero */
        f = pick_f32(a == 0.0f, a, f);
    return pick_f32(finite, f, isa_float(0xffc00000));
}

/* 2/pi from the first bit after the point. */
static inline double trig_preop(uint64_t a, uint32_t segment) {
    static const uint64_t two_over_pi[20] = {
        0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
        0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
    };
    int exponent = (int)(a >> 52 & 0x7ff), shift = (int)(segment & 31) * 53;
    if (exponent > 1077)
        shift += exponent - 1077;
    uint64_t bits = 0;
    for (int n = 0; n < 53; n++) {
        int at = shift + n; /* bits after 1,201 are 0 */
        bits = bits << 1 | (at < 1201 ? two_over_pi[at / 64] >> (63 - at % 64) & 1 : 0);
    }
    int scale = -53 - shift;
    if (exponent >= 1968)
        scale += 128;
    return scalbn((double)bits, scale);
}

/* ---- division ---- */

static inline int exponent_f32(float a) {
    return (int)(isa_bits(a) >> 23 & 0xff);
}
static inline int is_denormal_f32(float a) {
    return exponent_f32(a) == 0 && (isa_bits(a) & 0x7fffff);
}

/* a is the denominator b or the numerator c. What is scaled, and the flag that makes v_div_fmas
 * scale back, keep every intermediate result of the division a normal number. */
static inline float div_scale_f32(float a, float b, float c, uint32_t *flag) {
    int tiny_inverse = is_denormal_f32(1.0f / b), tiny_quotient = is_denormal_f32(c / b);
    int is_b = isa_bits(a) == isa_bits(b), is_c = isa_bits(a) == isa_bits(c);
    int far = exponent_f32(c) - exponent_f32(b) >= 96, denormal = is_denormal_f32(b);
    enum { NO = 127 << 23, UP = (127 + 64) << 23, DOWN = (127 - 64) << 23 };
    /* Later lines override earlier ones. */
    uint32_t factor = pick32(exponent_f32(c) <= 23, UP, NO);
    factor = pick32(tiny_quotient, pick32(is_c, UP, NO), factor); /* scale the numerator */
    factor = pick32(tiny_inverse, DOWN, factor);
    factor = pick32(tiny_inverse & tiny_quotient, pick32(is_b, DOWN, NO), factor);
    factor = pick32(denormal, UP, factor);
    /* The quotient is near the largest number: scale the denominator. */
    factor = pick32(far, pick32(is_b, UP, NO), factor);
    int zero = (b == 0.0f) | (c == 0.0f);
    *flag = (uint32_t)((far | (tiny_quotient & !denormal)) & !zero);
    return pick_f32(zero, isa_float(0x7fc00000), a * isa_float(factor));
}

/* Whether anything but a small numerator may have to be scaled: by exponents alone. Zeros are not
 * rare: lanes that are off have them, and so have many numerators. */
static inline int div_is_rare_f32(float b, float c) {
    int eb = exponent_f32(b), ec = exponent_f32(c), distance = ec - eb;
    int numbers = (b != 0.0f) & (c != 0.0f);
    return numbers & ((eb == 0) | (eb >= 252) | (ec == 0) | (distance >= 96) | (distance <= -125));
}
static inline float div_scale_most_f32(float a, float b, float c) {
    return pick_f32((b == 0.0f) | (c == 0.0f), isa_float(0x7fc00000),
                    a * pick_f32(exponent_f32(c) <= 23, 0x1p64f, 1.0f));
}

static inline int exponent_f64(double a) {
    return (int)(isa_bits64(a) >> 52 & 0x7ff);
}
static inline int is_denormal_f64(double a) {
    return exponent_f64(a) == 0 && isa_bits64(a) << 12;
}

static inline double div_scale_f64(double a, double b, double c, uint32_t *flag) {
    const uint64_t no = UINT64_C(1023) << 52, up = UINT64_C(1151) << 52, down = UINT64_C(895) << 52;
    int tiny_inverse = is_denormal_f64(1.0 / b), tiny_quotient = is_denormal_f64(c / b);
    int is_b = isa_bits64(a) == isa_bits64(b), is_c = isa_bits64(a) == isa_bits64(c);
    int far = exponent_f64(c) - exponent_f64(b) >= 768, denormal = is_denormal_f64(b);
    uint64_t factor = pick64(exponent_f64(c) <= 53, up, no);
    factor = pick64(tiny_quotient, pick64(is_c, up, no), factor);
    factor = pick64(tiny_inverse, down, factor);
    factor = pick64(tiny_inverse & tiny_quotient, pick64(is_b, down, no), factor);
    factor = pick64(denormal, up, factor);
    factor = pick64(far, pick64(is_b, up, no), factor);
    int zero = (b == 0.0) | (c == 0.0);
    *flag = (uint32_t)((far | (tiny_quotient & !denormal)) & !zero);
    return pick_f64(zero, isa_double(UINT64_C(0x7ff8) << 48), a * isa_double(factor));
}

static inline int div_is_rare_f64(double b, double c) {
    int eb = exponent_f64(b), ec = exponent_f64(c), distance = ec - eb;
    int numbers = (b != 0.0) & (c != 0.0);
    return numbers &
           ((eb == 0) | (eb >= 2044) | (ec == 0) | (distance >= 768) | (distance <= -1021));
}
static inline double div_scale_most_f64(double a, double b, double c) {
    return pick_f64((b == 0.0) | (c == 0.0), isa_double(UINT64_C(0x7ff8) << 48),
                    a * pick_f64(exponent_f64(c) <= 53, 0x1p128, 1.0));
}

/* The quotient a of c / b with the cases that arithmetic gets wrong: b is the denominator. */
static inline uint32_t div_fixup_f32(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t infinity = 0x7f800000;
    uint32_t sign = (b ^ c) & 0x80000000, bm = b & 0x7fffffff, cm = c & 0x7fffffff;
    uint32_t d = sign | pick32(is_nan_f32(a), infinity, a & 0x7fffffff);
    int underflow = (int)(cm >> 23) - (int)(bm >> 23) < -150;
    d = pick32(underflow | (bm == infinity) | (cm == 0), sign, d);
    d = pick32((bm == 0) | (cm == infinity), sign | infinity, d);
    d = pick32(((bm == 0) & (cm == 0)) | ((bm == infinity) & (cm == infinity)), 0xffc00000, d);
    d = pick32(bm > infinity, b | 0x400000, d);
    return pick32(cm > infinity, c | 0x400000, d);
}
static inline uint64_t div_fixup_f64(uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t top = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52,
                   quiet = UINT64_C(1) << 51;
    uint64_t sign = (b ^ c) & top, bm = b & ~top, cm = c & ~top, am = a & ~top;
    uint64_t d = sign | pick64(am > infinity, infinity, am);
    int underflow = (int64_t)(cm >> 52) - (int64_t)(bm >> 52) < -1075;
    d = pick64(underflow | (bm == infinity) | (cm == 0), sign, d);
    d = pick64((bm == 0) | (cm == infinity), sign | infinity, d);
    d = pick64(((bm == 0) & (cm == 0)) | ((bm == infinity) & (cm == infinity)),
               UINT64_C(0xfff8) << 48, d);
    d = pick64(bm > infinity, b | quiet, d);
    return pick64(cm > infinity, c | quiet, d);
}
static inline uint32_t div_fixup_f16(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sign = (b ^ c) & 0x8000, bm = b & 0x7fff, cm = c & 0x7fff;
    uint32_t d = sign | (a & 0x7fff);
    d = pick32((bm == 0x7c00) | (cm == 0), sign, d);
    d = pick32((bm == 0) | (cm == 0x7c00), sign | 0x7c00, d);
    d = pick32(((bm == 0) & (cm == 0)) | ((bm == 0x7c00) & (cm == 0x7c00)), 0xfe00, d);
    d = pick32(bm > 0x7c00, b | 0x200, d);
    return pick32(cm > 0x7c00, c | 0x200, d);
}

/* ---- cube maps ---- */

static inline float cube_id(float x, float y, float z) {
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y))
        return z < 0 ? 5.0f : 4.0f;
    if (fabsf(y) >= fabsf(x))
        return y < 0 ? 3.0f : 2.0f;
    return x < 0 ? 1.0f : 0.0f;
}
static inline float cube_sc(float x, float y, float z) {
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y))
        return z < 0 ? -x : x;
    if (fabsf(y) >= fabsf(x))
        return x;
    return x < 0 ? z : -z;
}
static inline float cube_tc(float x, float y, float z) {
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y))
        return -y;
    if (fabsf(y) >= fabsf(x))
        return y < 0 ? -z : z;
    return -y;
}
static inline float cube_ma(float x, float y, float z) {
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y))
        return 2.0f * z;
    if (fabsf(y) >= fabsf(x))
        return 2.0f * y;
    return 2.0f * x;
}

#endif
