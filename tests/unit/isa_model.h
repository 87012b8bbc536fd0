/* isa_model.h - isa_model.def as a function, and the slow arithmetic that its lines are made of.
 * For test_isa_valu.c. */
#ifndef TESTS_UNIT_ISA_MODEL_H
#define TESTS_UNIT_ISA_MODEL_H

#include "isa/insn.h"
#include "unit/isa_bits.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- halves ---- */

static float half_of(uint32_t h) {
    int exponent = (int)(h >> 10 & 31);
    double mantissa = h & 0x3ff, value;
    if (exponent == 31)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else
        value = exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24);
    return (float)(h & 0x8000 ? -value : value);
}

/* The f16 nearest to a number, found by looking at all of them up to it; ties go to the even one.
 */
static uint64_t slow_half(double x) {
    static double sizes[0x7c00];
    uint32_t best = 0;
    if (isnan(x))
        return 0x7e00;
    if (fabs(x) >= 65520)
        return x < 0 ? 0xfc00 : 0x7c00;
    for (uint32_t h = 0; h < 0x7c00 && sizes[0x7bff] == 0; h++) /* once */
        sizes[h] = (double)half_of(h);
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double now = fabs(sizes[h] - fabs(x)), so_far = fabs(sizes[best] - fabs(x));
        if (now < so_far || (now == so_far && !(h & 1)))
            best = h;
        if (sizes[h] > fabs(x))
            break;
    }
    return best | (signbit(x) ? 0x8000 : 0);
}

/* fma of f16 in whole numbers of 2^-48, which are exact. */
__extension__ typedef __int128 wide;

static uint64_t slow_half_fma(uint32_t a, uint32_t b, uint32_t c) {
    float x = half_of(a & 0xffff), y = half_of(b & 0xffff), z = half_of(c & 0xffff);
    if (!isfinite(x) || !isfinite(y) || !isfinite(z))
        return slow_half((double)x * (double)y + (double)z);
    wide sum = (wide)(int64_t)ldexp((double)x, 24) * (int64_t)ldexp((double)y, 24) +
               (wide)(int64_t)ldexp((double)z, 24) * (1 << 24);
    wide size = sum < 0 ? -sum : sum;
    if (size == 0) /* zeros have signs */
        return slow_half((double)x * (double)y + (double)z);
    if (size >= (wide)65520 * ((wide)1 << 48))
        return sum < 0 ? 0xfc00 : 0x7c00;
    uint32_t h = 0;
    while (h < 0x7bff && (wide)(int64_t)ldexp((double)half_of(h + 1), 24) * (1 << 24) <= size)
        h++;
    wide below = size - (wide)(int64_t)ldexp((double)half_of(h), 24) * (1 << 24);
    wide above = (h == 0x7bff ? (wide)65536 * ((wide)1 << 48)
                              : (wide)(int64_t)ldexp((double)half_of(h + 1), 24) * (1 << 24)) -
                 size;
    if (above < below || (above == below && h & 1))
        h++;
    return h | (sum < 0 ? 0x8000 : 0);
}

static uint64_t slow_reverse(uint32_t a) {
    uint64_t d = 0;
    for (int n = 0; n < 32; n++)
        if (a & 1u << n)
            d |= UINT64_C(1) << (31 - n);
    return d;
}

/* Steps from one end to the first bit that is set. */
static uint64_t slow_first(uint32_t a, int from, int by) {
    for (int n = 0; n < 32; n++)
        if (a & 1u << (from + by * n))
            return (uint64_t)n;
    return 0xffffffff;
}

static uint64_t slow_count(uint64_t a) {
    uint64_t n = 0;
    for (; a; a >>= 1)
        n += a & 1;
    return n;
}

static int64_t floor_shift(int64_t a, uint64_t by) {
    for (; by; by--)
        a = a < 0 ? ~(~a / 2) : a / 2; /* floor(a / 2) */
    return a;
}

static int64_t sign24(uint64_t a) {
    int64_t x = (int64_t)(a % 0x1000000);
    return x >= 0x800000 ? x - 0x1000000 : x;
}

static int64_t saturate(double x, double low, double high) {
    if (isnan(x))
        return 0;
    return (int64_t)(x < low ? low : x > high ? high : trunc(x));
}

static uint64_t slow_extreme(uint32_t a, uint32_t b, int least) {
    float x = float_of(a), y = float_of(b);
    int quiet_a = (a & 0x400000) != 0, quiet_b = (b & 0x400000) != 0;
    if ((isnan(x) && !quiet_a) || (isnan(y) && !quiet_b))
        return 0x7fc00000;
    if (isnan(x))
        return b;
    if (isnan(y))
        return a;
    if (x == 0 && y == 0)
        return least ? a | b : a & b; /* the sign of zeros */
    return (x < y) == least ? a : b;
}
static uint32_t slow_min32(uint32_t a, uint32_t b) {
    return (uint32_t)slow_extreme(a, b, 1);
}
static uint32_t slow_max32(uint32_t a, uint32_t b) {
    return (uint32_t)slow_extreme(a, b, 0);
}

static int slow_exponent(double x) {
    int e = 0;
    if (isfinite(x) && x != 0)
        frexp(x, &e);
    return e;
}
static float slow_mantissa32(float x) {
    int e;
    return isfinite(x) ? frexpf(x, &e) : x;
}
static double slow_mantissa64(double x) {
    int e;
    return isfinite(x) ? frexp(x, &e) : x;
}

static uint64_t slow_class(float x, uint32_t bits) {
    int negative = signbit(x) != 0;
    switch (fpclassify(x)) {
    case FP_NAN:
        return bits & 0x400000 ? 2 : 1;
    case FP_INFINITE:
        return negative ? 4 : 512;
    case FP_NORMAL:
        return negative ? 8 : 256;
    case FP_SUBNORMAL:
        return negative ? 16 : 128;
    default:
        return negative ? 32 : 64;
    }
}

#define LOWEST(a, b, c)  ((a) < (b) ? ((a) < (c) ? (a) : (c)) : ((b) < (c) ? (b) : (c)))
#define HIGHEST(a, b, c) ((a) > (b) ? ((a) > (c) ? (a) : (c)) : ((b) > (c) ? (b) : (c)))

/* ---- f16, f64 and packed forms ---- */

static bool slow_is_quiet(uint64_t a, int width) {
    return a >> (width == 16 ? 9 : 51) & 1;
}
static double slow_real(uint64_t a, int width) {
    return width == 16 ? (double)half_of((uint32_t)a & 0xffff) : double_of(a);
}

/* The least or the greatest of two of 16 or 64 bits: a number rather than a NaN, but a signalling
 * NaN wins; -0 is less than 0. */
static uint64_t slow_extreme_of(uint64_t a, uint64_t b, int least, int width) {
    double x = slow_real(a, width), y = slow_real(b, width);
    if ((isnan(x) && !slow_is_quiet(a, width)) || (isnan(y) && !slow_is_quiet(b, width)))
        return width == 16 ? 0x7e00 : UINT64_C(0x7ff8) << 48;
    if (isnan(x) || isnan(y))
        return isnan(x) ? b : a;
    if (x == 0 && y == 0)
        return least ? a | b : a & b;
    return (x < y) == least ? a : b;
}
static uint64_t slow_extreme16(uint64_t a, uint64_t b, int least) {
    return slow_extreme_of(a & 0xffff, b & 0xffff, least, 16);
}

/* The middle one, which is what is left when the least and the greatest are gone; with a NaN the
 * least. */
static uint64_t slow_median16(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x[3] = { a & 0xffff, b & 0xffff, c & 0xffff };
    uint64_t least = slow_extreme16(slow_extreme16(a, b, 1), c, 1);
    uint64_t greatest = slow_extreme16(slow_extreme16(a, b, 0), c, 0);
    for (int i = 0; i < 3; i++)
        if (isnan(half_of((uint32_t)x[i])))
            return least;
    return x[0] ^ x[1] ^ x[2] ^ least ^ greatest;
}
static uint64_t slow_median32(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t least = slow_min32(slow_min32(a, b), c), greatest = slow_max32(slow_max32(a, b), c);
    if (isnan(float_of(a)) || isnan(float_of(b)) || isnan(float_of(c)))
        return least;
    return a ^ b ^ c ^ least ^ greatest;
}

static double slow_fraction(double x, double most) {
    double rest = isfinite(x) ? fmod(x, 1.0) : (double)NAN;
    if (rest == 0)
        return 0;
    return rest < 0 ? fmin(rest + 1, most) : rest;
}
static float slow_fraction32(float x) {
    float rounded = (float)slow_fraction((double)x, 1.0);
    return rounded == 1.0f ? 0x1.fffffep-1f : rounded;
}

/* Without denormals, and rounded after the product. */
static float slow_flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x;
}
static float slow_mad(float a, float b, float c) {
    volatile float product = slow_flush(a) * slow_flush(b);
    volatile float sum = slow_flush(product) + slow_flush(c);
    return slow_flush(sum);
}
static uint64_t slow_half_mad(float a, float b, float c) {
    float product = half_of((uint32_t)slow_half((double)a * (double)b));
    return slow_half((double)product + (double)c);
}

/* -1 to 1, or 0 to 1, as a whole number; to the nearest, of two the even one. */
static uint32_t slow_norm(double x, double low, double scale) {
    return isnan(x) ? 0 : (uint32_t)(int32_t)rint(fmax(low, fmin(x, 1.0)) * scale) & 0xffff;
}

/* Rounded towards zero: the nearest, or the one before it. */
static uint32_t slow_half_down(float x) {
    uint32_t near = (uint32_t)slow_half((double)x);
    if (isnan(x) || isinf(x))
        return near;
    return fabs((double)half_of(near)) > fabs((double)x) ? near - 1 : near;
}

static uint32_t slow_permute(uint32_t a, uint32_t b, uint32_t c) {
    uint8_t bytes[8], out[4];
    uint32_t d;
    memcpy(bytes, &b, 4);
    memcpy(bytes + 4, &a, 4);
    for (int n = 0; n < 4; n++) {
        unsigned s = c / (1u << 8 * n) % 256;
        out[n] = s < 8     ? bytes[s]
                 : s < 12  ? (uint8_t)(bytes[2 * (s - 8) + 1] < 128 ? 0 : 255)
                 : s == 12 ? 0
                           : 255;
    }
    memcpy(&d, out, 4);
    return d;
}

/* Four sums of absolute differences, of bytes that start one later each; masked: a byte of b that
 * is 0 does not count. */
static uint64_t slow_quad_sad(uint64_t a, uint64_t b, uint64_t c, bool masked) {
    uint64_t d = 0;
    for (int n = 0; n < 4; n++) {
        long sum = (long)(c >> 16 * n & 0xffff);
        for (int k = 0; k < 4; k++) {
            long x = (long)(a >> 8 * (n + k) & 0xff), y = (long)(b >> 8 * k & 0xff);
            sum += masked && y == 0 ? 0 : labs(x - y);
        }
        d |= (uint64_t)(sum > 65535 ? 65535 : sum) << 16 * n;
    }
    return d;
}

/* The face of a cube that a direction hits, its coordinates there, and twice the longest axis. */
struct slow_face {
    float id, s, t, major;
};
static struct slow_face slow_cube(float x, float y, float z) {
    bool is_z = fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y), is_y = !is_z && fabsf(y) >= fabsf(x);
    float axis = is_z ? z : is_y ? y : x;
    struct slow_face f = { (is_z ? 4 : is_y ? 2 : 0) + (axis < 0), x, -y, axis + axis };
    if (is_z)
        f.s = axis < 0 ? -x : x;
    else if (is_y)
        f.t = axis < 0 ? -z : z;
    else
        f.s = axis < 0 ? z : -z;
    return f;
}

static uint64_t both16(uint64_t low, uint64_t high) {
    return (low & 0xffff) | (high & 0xffff) << 16;
}
static uint64_t both32(float low, float high) {
    return bits32(low) | (uint64_t)bits32(high) << 32;
}
#define LOW_HALF(x)   half_of((uint32_t)(x)&0xffff)
#define HIGH_HALF(x)  half_of((uint32_t)(x) >> 16)
#define LOW_FLOAT(x)  float_of((uint32_t)(x))
#define HIGH_FLOAT(x) float_of((uint32_t)((x) >> 32))

/* A float of 8 bits: so many of them of the fraction, and the bits of NaN. */
static float slow_float8(uint32_t byte, int fraction) {
    int exponents = 1 << (7 - fraction), bias = exponents / 2; /* one more than IEEE's */
    int exponent = (int)(byte & 0x7f) >> fraction, part = (int)byte & ((1 << fraction) - 1);
    if (byte == 0x80)
        return NAN;
    double size = exponent ? ldexp((1 << fraction) + part, exponent - bias - fraction)
                           : ldexp(part, 1 - bias - fraction);
    return (float)(byte & 0x80 ? -size : size);
}

/* ---- the model ---- */

enum kind { NO_MODEL, BITS, F32, F64, F16, FLAG, F16_TWICE, F32_TWICE };

static enum kind model(enum isa_op op, uint64_t a, uint64_t b, uint64_t c, int lane, uint64_t *d) {
    int32_t A = (int32_t)a, B = (int32_t)b, C = (int32_t)c;
    float fa = float_of((uint32_t)a), fb = float_of((uint32_t)b), fc = float_of((uint32_t)c);
    double da = double_of(a), db = double_of(b), dc = double_of(c);
    float ha = half_of(a & 0xffff), hb = half_of(b & 0xffff), hc = half_of(c & 0xffff);
    switch (op) {
#define MODEL(name, kind, ...)                                                                     \
    case ISA_OP_##name:                                                                            \
        *d = (uint64_t)(__VA_ARGS__);                                                              \
        return kind;
#include "isa_model.def"
#undef MODEL
    default:
        return NO_MODEL;
    }
}

static bool agrees(enum kind kind, uint64_t is, uint64_t wanted) {
    switch (kind) {
    case F32:
        return (uint32_t)is == (uint32_t)wanted ||
               (isnan(float_of((uint32_t)is)) && isnan(float_of((uint32_t)wanted)));
    case F64:
        return is == wanted || (isnan(double_of(is)) && isnan(double_of(wanted)));
    case F16:
        return is == wanted || ((is & 0x7fff) > 0x7c00 && (wanted & 0x7fff) > 0x7c00);
    case F16_TWICE:
        return agrees(F16, is & 0xffff, wanted & 0xffff) && agrees(F16, is >> 16, wanted >> 16);
    case F32_TWICE:
        return agrees(F32, is & UINT32_MAX, wanted & UINT32_MAX) &&
               agrees(F32, is >> 32, wanted >> 32);
    default:
        return is == wanted;
    }
}

#endif
