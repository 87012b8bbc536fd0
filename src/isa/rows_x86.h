/* rows_x86.h - moving bits between masks and rows with AVX2; for rows_avx2.c and rows_avx512.c. */
#ifndef ISA_ROWS_X86_H
#define ISA_ROWS_X86_H

#include "isa/isa.h"

#include <immintrin.h>

/* 0 or ~0 in 8 lanes, from the low 8 bits. */
static inline __m256i lanes_of(uint32_t bits) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
}

static void fill(uint32_t *d, uint32_t value) {
    __m256i all = _mm256_set1_epi32((int)value);
    for (int l = 0; l < ISA_LANES; l += 8)
        _mm256_store_si256((__m256i *)(void *)(d + l), all);
}

static void expand(uint32_t *d, uint64_t mask) {
    for (int l = 0; l < ISA_LANES; l += 8)
        _mm256_store_si256((__m256i *)(void *)(d + l), lanes_of((uint32_t)(mask >> l)));
}

/* Not by a masked store, which is slow on AMD processors. */
static void merge(uint32_t *d, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i from = _mm256_load_si256((const __m256i *)(const void *)(s + l));
        __m256i to = _mm256_load_si256((const __m256i *)(const void *)(d + l));
        to = _mm256_blendv_epi8(to, from, lanes_of((uint32_t)(lanes >> l)));
        _mm256_store_si256((__m256i *)(void *)(d + l), to);
    }
}

static uint64_t collect(const uint32_t *s) {
    uint64_t mask = 0;
    for (int l = 0; l < ISA_LANES; l += 8) {
        __m256i x = _mm256_load_si256((const __m256i *)(const void *)(s + l));
        mask |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(x)) << l;
    }
    return mask;
}

#endif
