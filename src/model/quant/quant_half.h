/* quant_half.h - half precision and bfloat16 as bits, without hardware support.
 *
 * Integer arithmetic for the subnormal halves, so that a thread that flushes denormals to zero gets
 * the same numbers: scales of small weights are subnormal halves. Thread-safe. */
#ifndef MODEL_QUANT_HALF_H
#define MODEL_QUANT_HALF_H

#include <stdint.h>
#include <string.h>

#include "model/quant/quant_block.h"

static inline float quant_float_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t quant_bits_from_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Exact. A signalling NaN becomes quiet, as processors do it. */
static inline float quant_half_to_float(quant_half h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24, a normal float */
        uint32_t magnitude = quant_bits_from_float((float)mantissa * 0x1p-24f);
        return quant_float_from_bits(sign | magnitude);
    }
    if (exponent == 31)
        return quant_float_from_bits(sign | 0x7f800000 | (mantissa ? 0x400000 : 0) |
                                     mantissa << 13);
    return quant_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* Rounds to nearest, ties to even; beyond 65504 to infinity. */
static inline quant_half quant_float_to_half(float f) {
    uint32_t bits = quant_bits_from_float(f), sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (quant_half)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* rounds to 2^16 or more */
        return (quant_half)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* below 2^-14: count units of 2^-24 */
        if (magnitude < 0x33000000)
            return (quant_half)sign;
        uint32_t exponent = magnitude >> 23, mantissa = (magnitude & 0x7fffff) | 0x800000;
        uint32_t shift = 126 - exponent; /* 14 to 24 */
        uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1);
        uint32_t middle = 1u << (shift - 1);
        return (quant_half)(sign | (kept + (rest > middle || (rest == middle && (kept & 1)))));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (quant_half)(sign | (rounded - (112u << 23)) >> 13);
}

static inline float quant_bf16_to_float(uint16_t b) {
    return quant_float_from_bits((uint32_t)b << 16);
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t quant_float_to_bf16(float f) {
    uint32_t bits = quant_bits_from_float(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
