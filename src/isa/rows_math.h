/* rows_math.h - what the expressions of rows_*.def call: one lane at a time, inlined into the loops
 * over lanes. Semantics are those of AMD's ISA documents, chapter "Instruction descriptions". */
#ifndef ISA_ROWS_MATH_H
#define ISA_ROWS_MATH_H

#include "isa/floats.h"

#include <math.h>
#include <stdint.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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

static inline uint32_t leading_signs(int32_t a) {
    uint32_t x = (uint32_t)(a ^ a >> 31);
    return x ? (uint32_t)__builtin_clz(x) : ~0u;
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

/* ---- floats: rules of min, max and med3 are about bits, so that NaNs and zeros come out right
 * ---- */

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
    uint32_t d = is_nan_f32(b) ? a : less;
    d = is_nan_f32(a) ? b : d;
    d = is_signalling_f32(b) ? b | 0x400000 : d;
    return is_signalling_f32(a) ? a | 0x400000 : d;
}
static inline uint32_t min_f32(uint32_t a, uint32_t b) {
    return choose_f32(a, b, order_f32(a) < order_f32(b) ? a : b);
}
static inline uint32_t max_f32(uint32_t a, uint32_t b) {
    return choose_f32(a, b, order_f32(a) > order_f32(b) ? a : b);
}
static inline uint32_t med3_f32(uint32_t a, uint32_t b, uint32_t c) {
    if (is_nan_f32(a) | is_nan_f32(b) | is_nan_f32(c))
        return min_f32(min_f32(a, b), c);
    return max_f32(min_f32(a, b), min_f32(max_f32(a, b), c));
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
static inline uint32_t choose_f16(uint32_t a, uint32_t b, uint32_t less) {
    int nan_a = (a & 0x7fff) > 0x7c00, nan_b = (b & 0x7fff) > 0x7c00;
    uint32_t d = nan_b ? a : less;
    d = nan_a ? b : d;
    d = nan_b && !(b & 0x200) ? b | 0x200 : d;
    return nan_a && !(a & 0x200) ? a | 0x200 : d;
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
    if ((a & 0x7fff) > 0x7c00 || (b & 0x7fff) > 0x7c00 || (c & 0x7fff) > 0x7c00)
        return min_f16(min_f16(a, b), c);
    return max_f16(min_f16(a, b), min_f16(max_f16(a, b), c));
}

/* Bits of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, ..., +inf. */
static inline uint32_t class_of(uint32_t negative, uint64_t magnitude, uint64_t infinity,
                                uint64_t normal, uint64_t quiet) {
    if (magnitude > infinity)
        return magnitude & quiet ? 2 : 1;
    if (magnitude == infinity)
        return negative ? 1 << 2 : 1 << 9;
    if (magnitude >= normal)
        return negative ? 1 << 3 : 1 << 8;
    if (magnitude)
        return negative ? 1 << 4 : 1 << 7;
    return negative ? 1 << 5 : 1 << 6;
}

/* ---- floats: conversions and parts ---- */

static inline float flush_f32(float f) {
    uint32_t u = isa_bits(f);
    return isa_float((u & 0x7f800000) == 0 ? u & 0x80000000 : u);
}

/* Rounded twice, without denormals. (The product goes through a double so that no compiler makes an
 * fma of it.) */
static inline float mad_f32(float a, float b, float c) {
    float p = flush_f32((float)((double)flush_f32(a) * (double)flush_f32(b)));
    return flush_f32(p + flush_f32(c));
}

static inline int32_t to_i32(double x) {
    double y = x < -2147483648.0 ? -2147483648.0 : x > 2147483647.0 ? 2147483647.0 : x;
    return x == x ? (int32_t)y : 0;
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
    return d > 0x1.ffcp-1f ? 0x1.ffcp-1f : d;
}

static inline int32_t frexp_exponent_f32(uint32_t a) {
    uint32_t e = a >> 23 & 0xff, m = a & 0x7fffff;
    if (e == 255 || (e | m) == 0)
        return 0;
    return e ? (int32_t)e - 126 : -117 - (int32_t)__builtin_clz(m);
}
static inline uint32_t frexp_mantissa_f32(uint32_t a) {
    uint32_t e = a >> 23 & 0xff, m = a & 0x7fffff;
    if (e == 255)
        return m ? a | 0x400000 : a;
    if ((e | m) == 0)
        return a;
    if (!e)
        m = m << (__builtin_clz(m) - 8) & 0x7fffff;
    return (a & 0x80000000) | 126u << 23 | m;
}
static inline int32_t frexp_exponent_f64(uint64_t a) {
    uint64_t e = a >> 52 & 0x7ff, m = a << 12 >> 12;
    if (e == 0x7ff || (e | m) == 0)
        return 0;
    return e ? (int32_t)e - 1022 : -1010 - (int32_t)__builtin_clzll(m);
}
static inline uint64_t frexp_mantissa_f64(uint64_t a) {
    uint64_t e = a >> 52 & 0x7ff, m = a << 12 >> 12;
    if (e == 0x7ff)
        return m ? a | UINT64_C(1) << 51 : a;
    if ((e | m) == 0)
        return a;
    if (!e)
        m = m << (__builtin_clzll(m) - 11) << 12 >> 12;
    return (a & UINT64_C(1) << 63) | UINT64_C(1022) << 52 | m;
}

static inline float log2_f32(float a) {
    float x = flush_f32(a);
    return (float)log2((double)x);
}

/* sin(2 pi (a + quarter)). The argument is in turns; beyond 256 of them hardware gives 0. */
static inline float sine(float a, double quarter) {
    double turns = (double)a;
    if (!(fabs(turns) <= 256.0))
        return a - a == 0.0f ? (quarter != 0.0 ? 1.0f : 0.0f) : isa_float(0xffc00000);
    if (turns == 0.0 && quarter == 0.0)
        return a;
    turns = turns - nearbyint(turns) + quarter;
    return (float)sin(6.283185307179586476925 * turns);
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
    int distance = exponent_f32(c) - exponent_f32(b);
    int tiny_inverse = is_denormal_f32(1.0f / b), tiny_quotient = is_denormal_f32(c / b);
    *flag = 0;
    if (b == 0 || c == 0)
        return isa_float(0x7fc00000);
    if (distance >= 96) { /* the quotient is near the largest number: scale the denominator */
        *flag = 1;
        return isa_bits(a) == isa_bits(b) ? ldexp_f32(a, 64) : a;
    }
    if (is_denormal_f32(b))
        return ldexp_f32(a, 64);
    if (tiny_inverse && tiny_quotient) {
        *flag = 1;
        return isa_bits(a) == isa_bits(b) ? ldexp_f32(a, -64) : a;
    }
    if (tiny_inverse)
        return ldexp_f32(a, -64);
    if (tiny_quotient) { /* scale the numerator */
        *flag = 1;
        return isa_bits(a) == isa_bits(c) ? ldexp_f32(a, 64) : a;
    }
    if (exponent_f32(c) <= 23)
        return ldexp_f32(a, 64);
    return a;
}

static inline int exponent_f64(double a) {
    return (int)(isa_bits64(a) >> 52 & 0x7ff);
}
static inline int is_denormal_f64(double a) {
    return exponent_f64(a) == 0 && isa_bits64(a) << 12;
}

static inline double div_scale_f64(double a, double b, double c, uint32_t *flag) {
    int distance = exponent_f64(c) - exponent_f64(b);
    int tiny_inverse = is_denormal_f64(1.0 / b), tiny_quotient = is_denormal_f64(c / b);
    *flag = 0;
    if (b == 0 || c == 0)
        return isa_double(UINT64_C(0x7ff8) << 48);
    if (distance >= 768) {
        *flag = 1;
        return isa_bits64(a) == isa_bits64(b) ? scalbn(a, 128) : a;
    }
    if (is_denormal_f64(b))
        return scalbn(a, 128);
    if (tiny_inverse && tiny_quotient) {
        *flag = 1;
        return isa_bits64(a) == isa_bits64(b) ? scalbn(a, -128) : a;
    }
    if (tiny_inverse)
        return scalbn(a, -128);
    if (tiny_quotient) {
        *flag = 1;
        return isa_bits64(a) == isa_bits64(c) ? scalbn(a, 128) : a;
    }
    if (exponent_f64(c) <= 53)
        return scalbn(a, 128);
    return a;
}

/* The quotient a of c / b with the cases that arithmetic gets wrong: b is the denominator. */
static inline uint32_t div_fixup_f32(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sign = (b ^ c) & 0x80000000, bm = b & 0x7fffffff, cm = c & 0x7fffffff;
    if (is_nan_f32(c))
        return c | 0x400000;
    if (is_nan_f32(b))
        return b | 0x400000;
    if ((bm == 0 && cm == 0) || (bm == 0x7f800000 && cm == 0x7f800000))
        return 0xffc00000;
    if (bm == 0 || cm == 0x7f800000)
        return sign | 0x7f800000;
    if (bm == 0x7f800000 || cm == 0)
        return sign;
    if ((int)(cm >> 23) - (int)(bm >> 23) < -150)
        return sign; /* underflow */
    return sign | (is_nan_f32(a) ? 0x7f800000 : a & 0x7fffffff);
}
static inline uint64_t div_fixup_f64(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t top = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52;
    uint64_t sign = (b ^ c) & top, bm = b & ~top, cm = c & ~top;
    if (cm > infinity)
        return c | UINT64_C(1) << 51;
    if (bm > infinity)
        return b | UINT64_C(1) << 51;
    if ((bm == 0 && cm == 0) || (bm == infinity && cm == infinity))
        return UINT64_C(0xfff8) << 48;
    if (bm == 0 || cm == infinity)
        return sign | infinity;
    if (bm == infinity || cm == 0)
        return sign;
    if ((int)(cm >> 52) - (int)(bm >> 52) < -1075)
        return sign;
    return sign | ((a & ~top) > infinity ? infinity : a & ~top);
}
static inline uint32_t div_fixup_f16(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sign = (b ^ c) & 0x8000, bm = b & 0x7fff, cm = c & 0x7fff;
    if (cm > 0x7c00)
        return c | 0x200;
    if (bm > 0x7c00)
        return b | 0x200;
    if ((bm == 0 && cm == 0) || (bm == 0x7c00 && cm == 0x7c00))
        return 0xfe00;
    if (bm == 0 || cm == 0x7c00)
        return sign | 0x7c00;
    if (bm == 0x7c00 || cm == 0)
        return sign;
    return sign | (a & 0x7fff);
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
