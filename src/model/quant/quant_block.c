/* The 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL. */
#include "model/quant/quant_block.h"

#include <string.h>

#include "model/quant/quant_internal.h"

/* 32 levels of 4 bits, as bytes. */
static void unpack_nibbles(const uint8_t *qs, uint8_t *levels) {
    for (int i = 0; i < 16; i++) {
        levels[i] = qs[i] & 15;
        levels[i + 16] = qs[i] >> 4;
    }
}

static void pack_nibbles(const int8_t *levels, uint8_t *qs) {
    for (int i = 0; i < 16; i++)
        qs[i] = (uint8_t)((levels[i] & 15) | levels[i + 16] << 4);
}

/* Bit 4 of the levels is in the 32-bit word qh. */
static void unpack_fifth_bits(const uint8_t *qh, uint8_t *levels) {
    uint32_t bits;
    memcpy(&bits, qh, sizeof bits);
    for (int i = 0; i < QUANT_BLOCK; i++)
        levels[i] |= (uint8_t)((bits >> i & 1) << 4);
}

static void pack_fifth_bits(const int8_t *levels, uint8_t *qh) {
    uint32_t bits = 0;
    for (int i = 0; i < QUANT_BLOCK; i++)
        bits |= (uint32_t)(levels[i] >> 4 & 1) << i;
    memcpy(qh, &bits, sizeof bits);
}

/* Levels of 4 bits, or of 5 if there is a qh. */
static inline void unpack_levels(const uint8_t *qs, const uint8_t *qh, uint8_t *levels) {
    unpack_nibbles(qs, levels);
    if (qh)
        unpack_fifth_bits(qh, levels);
}

static inline void pack_levels(const int8_t *levels, uint8_t *qs, uint8_t *qh) {
    pack_nibbles(levels, qs);
    if (qh)
        pack_fifth_bits(levels, qh);
}

static quant_half offset_to_half(float m) {
    const float largest = 65504;
    return quant_float_to_half(m > largest ? largest : m < -largest ? -largest : m);
}

/* Multiplying by 1/d instead of dividing by d changes a level only if both are equally near. */
static float invert(float d) {
    return d != 0 ? 1 / d : 0;
}

/* ---- Q4_0, Q5_0: x = d * (level - zero) ------------------------------------------------------ */

static inline void decode_symmetric(const uint8_t *qs, const uint8_t *qh, quant_half scale,
                                    int zero, float *x) {
    uint8_t q[QUANT_BLOCK];
    unpack_levels(qs, qh, q);
    float d = quant_half_to_float(scale);
    for (int j = 0; j < QUANT_BLOCK; j++)
        x[j] = (float)(q[j] - zero) * d;
}

/* Returns the scale. There are `zero` levels below 0, and as many from 0 on. */
static inline quant_half encode_symmetric(const float *x, int zero, enum quant_effort effort,
                                          uint8_t *qs, uint8_t *qh) {
    int8_t q[QUANT_BLOCK];
    quant_half d =
        quant_scale_to_half(quant_fit_symmetric(x, QUANT_BLOCK, -zero, zero - 1, effort));
    quant_set_levels(x, QUANT_BLOCK, 0, invert(quant_half_to_float(d)), -zero, zero - 1, q);
    for (int j = 0; j < QUANT_BLOCK; j++)
        q[j] = (int8_t)(q[j] + zero);
    pack_levels(q, qs, qh);
    return d;
}

void quant_decode_q4_0(const void *src, float *dst, size_t n) {
    const struct block_q4_0 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        decode_symmetric(b->qs, NULL, b->d, 8, dst + i);
}

void quant_encode_q4_0(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q4_0 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        b->d = encode_symmetric(src + i, 8, effort, b->qs, NULL);
}

void quant_decode_q5_0(const void *src, float *dst, size_t n) {
    const struct block_q5_0 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        decode_symmetric(b->qs, b->qh, b->d, 16, dst + i);
}

void quant_encode_q5_0(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q5_0 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        b->d = encode_symmetric(src + i, 16, effort, b->qs, b->qh);
}

/* ---- Q4_1, Q5_1: x = d * level + m ----------------------------------------------------------- */

static inline void decode_affine(const uint8_t *qs, const uint8_t *qh, quant_half scale,
                                 quant_half offset, float *x) {
    uint8_t q[QUANT_BLOCK];
    unpack_levels(qs, qh, q);
    float d = quant_half_to_float(scale), m = quant_half_to_float(offset);
    for (int j = 0; j < QUANT_BLOCK; j++)
        x[j] = (float)q[j] * d + m;
}

struct affine {
    quant_half d, m;
};

/* Levels are 0 to top. */
static inline struct affine encode_affine(const float *x, int top, enum quant_effort effort,
                                          uint8_t *qs, uint8_t *qh) {
    int8_t q[QUANT_BLOCK];
    float d, m;
    quant_fit_affine(x, QUANT_BLOCK, top, false, effort, &d, &m);
    struct affine a = { quant_scale_to_half(d), offset_to_half(m) };
    quant_set_levels(x, QUANT_BLOCK, quant_half_to_float(a.m), invert(quant_half_to_float(a.d)), 0,
                     top, q);
    pack_levels(q, qs, qh);
    return a;
}

void quant_decode_q4_1(const void *src, float *dst, size_t n) {
    const struct block_q4_1 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        decode_affine(b->qs, NULL, b->d, b->m, dst + i);
}

void quant_encode_q4_1(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q4_1 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        struct affine a = encode_affine(src + i, 15, effort, b->qs, NULL);
        b->d = a.d;
        b->m = a.m;
    }
}

void quant_decode_q5_1(const void *src, float *dst, size_t n) {
    const struct block_q5_1 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++)
        decode_affine(b->qs, b->qh, b->d, b->m, dst + i);
}

void quant_encode_q5_1(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q5_1 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        struct affine a = encode_affine(src + i, 31, effort, b->qs, b->qh);
        b->d = a.d;
        b->m = a.m;
    }
}

/* ---- Q8_0, IQ4_NL ---------------------------------------------------------------------------- */

void quant_decode_q8_0(const void *src, float *dst, size_t n) {
    const struct block_q8_0 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        float d = quant_half_to_float(b->d);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = (float)b->qs[j] * d;
    }
}

/* With 255 levels a search gains nothing: the largest number gets the last level. */
void quant_encode_q8_0(const float *src, void *dst, size_t n, enum quant_effort effort) {
    (void)effort;
    struct block_q8_0 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        float peak = quant_extreme(src + i, QUANT_BLOCK);
        b->d = quant_scale_to_half((peak < 0 ? -peak : peak) / 127);
        float inverse = invert(quant_half_to_float(b->d));
        quant_set_levels(src + i, QUANT_BLOCK, 0, inverse, -127, 127, b->qs);
    }
}

void quant_decode_iq4_nl(const void *src, float *dst, size_t n) {
    const struct block_iq4_nl *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        uint8_t q[QUANT_BLOCK];
        unpack_nibbles(b->qs, q);
        float d = quant_half_to_float(b->d);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = d * (float)quant_iq4_values[q[j]];
    }
}

void quant_encode_iq4_nl(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_iq4_nl *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        int8_t q[QUANT_BLOCK];
        b->d = quant_scale_to_half(quant_fit_iq4(src + i, QUANT_BLOCK, effort));
        float inverse = invert(quant_half_to_float(b->d));
        quant_set_iq4_indexes(src + i, QUANT_BLOCK, inverse, q);
        pack_nibbles(q, b->qs);
    }
}
