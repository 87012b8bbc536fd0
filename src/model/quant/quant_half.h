/* quant_half.h - half precision and bfloat16 (base/half.h) under the names of the quantised types.
 */
#ifndef MODEL_QUANT_HALF_H
#define MODEL_QUANT_HALF_H

#include "base/half.h"
#include "model/quant/quant_block.h"

static inline float quant_float_from_bits(uint32_t bits) {
    return float_from_bits(bits);
}
static inline uint32_t quant_bits_from_float(float f) {
    return float_bits(f);
}
static inline float quant_half_to_float(quant_half h) {
    return half_to_float(h);
}
static inline quant_half quant_float_to_half(float f) {
    return (quant_half)float_to_half(f);
}
static inline float quant_bf16_to_float(uint16_t b) {
    return bf16_to_float(b);
}
static inline uint16_t quant_float_to_bf16(float f) {
    return (uint16_t)float_to_bf16(f);
}

#endif
