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

/* Adds bit 4 of the levels from, and takes it to, the 32-bit word qh. */
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

static quant_half offset_to_half(float m) {
    const float largest = 65504;
    return quant_float_to_half(m > largest ? largest : m < -largest ? -largest : m);
}

/* Multiplying by 1/d instead of dividing by d moves a level only where both are as good. */
static float invert(float d) {
    return d != 0 ? 1 / d : 0;
}

void quant_decode_q4_0(const void *src, float *dst, size_t n) {
    const struct block_q4_0 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        uint8_t q[QUANT_BLOCK];
        unpack_nibbles(b->qs, q);
        float d = quant_half_to_float(b->d);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = (float)(q[j] - 8) * d;
    }
}

/* Levels of x on a grid of step d, counted from the lowest, with `zero` below and at 0. */
static void symmetric_levels(const float *x, quant_half d, int zero, int8_t *q) {
    quant_set_levels(x, QUANT_BLOCK, 0, invert(quant_half_to_float(d)), -zero, zero - 1, q);
    for (int j = 0; j < QUANT_BLOCK; j++)
        q[j] = (int8_t)(q[j] + zero);
}

static void affine_levels(const float *x, quant_half d, quant_half m, int top, int8_t *q) {
    quant_set_levels(x, QUANT_BLOCK, quant_half_to_float(m), invert(quant_half_to_float(d)), 0, top,
                     q);
}

void quant_encode_q4_0(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q4_0 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        int8_t q[QUANT_BLOCK];
        b->d = quant_scale_to_half(quant_fit_symmetric(src + i, QUANT_BLOCK, -8, 7, effort));
        symmetric_levels(src + i, b->d, 8, q);
        pack_nibbles(q, b->qs);
    }
}

void quant_decode_q4_1(const void *src, float *dst, size_t n) {
    const struct block_q4_1 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        uint8_t q[QUANT_BLOCK];
        unpack_nibbles(b->qs, q);
        float d = quant_half_to_float(b->d), m = quant_half_to_float(b->m);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = (float)q[j] * d + m;
    }
}

void quant_encode_q4_1(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q4_1 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        int8_t q[QUANT_BLOCK];
        float d, m;
        quant_fit_affine(src + i, QUANT_BLOCK, 15, false, effort, &d, &m);
        b->d = quant_scale_to_half(d);
        b->m = offset_to_half(m);
        affine_levels(src + i, b->d, b->m, 15, q);
        pack_nibbles(q, b->qs);
    }
}

void quant_decode_q5_0(const void *src, float *dst, size_t n) {
    const struct block_q5_0 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        uint8_t q[QUANT_BLOCK];
        unpack_nibbles(b->qs, q);
        unpack_fifth_bits(b->qh, q);
        float d = quant_half_to_float(b->d);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = (float)(q[j] - 16) * d;
    }
}

void quant_encode_q5_0(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q5_0 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        int8_t q[QUANT_BLOCK];
        b->d = quant_scale_to_half(quant_fit_symmetric(src + i, QUANT_BLOCK, -16, 15, effort));
        symmetric_levels(src + i, b->d, 16, q);
        pack_nibbles(q, b->qs);
        pack_fifth_bits(q, b->qh);
    }
}

void quant_decode_q5_1(const void *src, float *dst, size_t n) {
    const struct block_q5_1 *b = src;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        uint8_t q[QUANT_BLOCK];
        unpack_nibbles(b->qs, q);
        unpack_fifth_bits(b->qh, q);
        float d = quant_half_to_float(b->d), m = quant_half_to_float(b->m);
        for (int j = 0; j < QUANT_BLOCK; j++)
            dst[i + j] = (float)q[j] * d + m;
    }
}

void quant_encode_q5_1(const float *src, void *dst, size_t n, enum quant_effort effort) {
    struct block_q5_1 *b = dst;
    for (size_t i = 0; i < n; i += QUANT_BLOCK, b++) {
        int8_t q[QUANT_BLOCK];
        float d, m;
        quant_fit_affine(src + i, QUANT_BLOCK, 31, false, effort, &d, &m);
        b->d = quant_scale_to_half(d);
        b->m = offset_to_half(m);
        affine_levels(src + i, b->d, b->m, 31, q);
        pack_nibbles(q, b->qs);
        pack_fifth_bits(q, b->qh);
    }
}

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
