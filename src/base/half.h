/* half.h - f16 and bf16 as bits, and floats as bits, without hardware support.
 *
 * No branches, so that loops over arrays become vectors; no arithmetic on denormal floats, so that
 * a thread that flushes them gets the same numbers. Thread-safe. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float float_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* An f16 in the lower 16 bits. Exact; a signalling NaN becomes a quiet one, as processors do it. */
static inline float half_to_float(uint32_t h) {
    uint32_t magnitude = h & 0x7fff, exponent = h & 0x7c00, shifted = magnitude << 13;
    uint32_t tiny = float_bits((float)(int32_t)(h & 0x3ff) * 0x1p-24f);
    uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    uint32_t f = exponent == 0x7c00 ? shifted | 0x7f800000 | quiet : shifted + (112u << 23);
    return float_from_bits((exponent == 0 ? tiny : f) | (h & 0x8000) << 16);
}

/* Rounds to nearest, ties to even; beyond 65504 to infinity. Adding 0.5 rounds denormals, because
 * the last bit of that sum is 2^-24. */
static inline uint32_t float_to_half(float f) {
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    uint32_t normal = (a + 0xc8000fff + (a >> 13 & 1)) >> 13;
    uint32_t denormal = float_bits(float_from_bits(a) + 0.5f) - 0x3f000000;
    uint32_t h = a < 0x38800000 ? denormal : normal;
    h = a >= 0x477ff000 ? 0x7c00 : h;
    h = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : h;
    return h | sign;
}

static inline float bf16_to_float(uint32_t b) {
    return float_from_bits(b << 16);
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint32_t float_to_bf16(float f) {
    uint32_t u = float_bits(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : rounded;
}

#endif
