/* quant_internal.h - the per-type functions behind quant.h, and what the encoders share. */
#ifndef MODEL_QUANT_INTERNAL_H
#define MODEL_QUANT_INTERNAL_H

#include "model/quant/quant.h"
#include "model/quant/quant_block.h"
#include "model/quant/quant_half.h"

/* quant_decode_q4_0(), quant_encode_q4_0(), …: the codecs of tensor_type.def. n elements are whole
 * blocks. */
#define TENSOR_TYPE_COMPUTED(type, number, elements, bytes, codec, halves, first, file_type)       \
    void quant_decode_##codec(const void *src, float *dst, size_t n);                              \
    void quant_encode_##codec(const float *src, void *dst, size_t n, enum quant_effort effort);
#include "model/quant/tensor_type.def"

/* The nearest integer, ties to even, for |x| < 2^22: the addition pushes the fraction out. */
static inline float quant_round(float x) {
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

/* The integer from lo to hi nearest to x; lo if x is NaN. */
static inline int quant_level(float x, int lo, int hi) {
    float r = x > (float)lo ? (x < (float)hi ? x : (float)hi) : (float)lo;
    return (int)quant_round(r);
}

/* The same for n numbers (a multiple of 4): levels of (x - base) * inverse. */
void quant_set_levels(const float *x, int n, float base, float inverse, int lo, int hi,
                      int8_t *levels);

/* A scale in half precision, finite. Among the subnormal halves, where rounding is coarse, it
 * rounds away from 0: a scale that is too large costs resolution, one that is too small clips the
 * largest numbers, and a scale of 0 loses the block. */
static inline quant_half quant_scale_to_half(float x) {
    const float largest = 65504;
    quant_half h = quant_float_to_half(x > largest ? largest : x < -largest ? -largest : x);
    float stored = quant_half_to_float(h);
    bool toward_zero = x < 0 ? stored > x : stored < x;
    return (h & 0x7c00) == 0 && toward_zero ? (quant_half)(h + 1) : h;
}

/* The one of n numbers (a multiple of 4) that is largest in magnitude, with its sign. */
float quant_extreme(const float *x, int n);

/* Returns the scale s (of either sign) for which s * level is nearest to x in the least-squares
 * sense, levels being the integers lo..hi with lo < 0 < hi; 0 if all x are 0. n is a multiple of
 * 4. */
float quant_fit_symmetric(const float *x, int n, int lo, int hi, enum quant_effort effort);

/* Finds scale >= 0 and offset so that scale * level + offset is nearest to x, levels being the
 * integers 0..top. With `below`, offset <= 0. scale is 0 if x is constant. */
void quant_fit_affine(const float *x, int n, int top, bool below, enum quant_effort effort,
                      float *scale, float *offset);

/* The squared error of x ~ scale * level + offset with each number on its nearest level lo..hi. */
float quant_error_levels(const float *x, int n, float scale, float offset, int lo, int hi);

/* The squared error of x ~ scale * value with each number on its nearest of quant_iq4_values. */
float quant_error_iq4(const float *x, int n, float scale);

/* As quant_fit_symmetric for levels taken from quant_iq4_values. */
float quant_fit_iq4(const float *x, int n, enum quant_effort effort);

/* Indexes of the values in quant_iq4_values nearest to n numbers x * inverse. */
void quant_set_iq4_indexes(const float *x, int n, float inverse, int8_t *indexes);

#endif
