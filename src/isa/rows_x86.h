/* rows_x86.h - moving bits between masks and rows with AVX2 or AVX-512; for rows_avx2.c and
 * rows_avx512.c. */
#ifndef ISA_ROWS_X86_H
#define ISA_ROWS_X86_H

#include "isa/isa.h"

#include <immintrin.h>

static void fill(uint32_t *d, uint32_t value) {
    __m256i all = _mm256_set1_epi32((int)value);
    for (int l = 0; l < ISA_LANES; l += 8)
        _mm256_store_si256((__m256i *)(void *)(d + l), all);
}

#if defined(__AVX512F__)
static void expand(uint32_t *d, uint64_t mask) {
    for (int l = 0; l < ISA_LANES; l += 16)
        _mm512_store_si512(d + l, _mm512_movm_epi32((__mmask16)(mask >> l)));
}

/* Not by a masked store, which is slow on AMD processors. */
static void merge(uint32_t *d, const uint32_t *s, uint64_t lanes) {
    for (int l = 0; l < ISA_LANES; l += 16) {
        __m512i from = _mm512_load_si512(s + l), to = _mm512_load_si512(d + l);
        _mm512_store_si512(d + l, _mm512_mask_mov_epi32(to, (__mmask16)(lanes >> l), from));
    }
}

static uint64_t collect(const uint32_t *s) {
    uint64_t mask = 0;
    for (int l = 0; l < ISA_LANES; l += 16)
        mask |= (uint64_t)_mm512_movepi32_mask(_mm512_load_si512(s + l)) << l;
    return mask;
}
#else
/* 0 or ~0 in 8 lanes, from the low 8 bits. */
static inline __m256i lanes_of(uint32_t bits) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
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

/* f16 in a row, 128 of them: as many at a time as `halves` holds. They are rounded as MODE says:
 * the caller has set the processor's mode. */
#if defined(__AVX512F__)
typedef float halves __attribute__((vector_size(64)));
typedef int32_t halves_int __attribute__((vector_size(64)));
enum { HALVES = 16 };

static inline halves get_halves(const uint32_t *row, int at) {
    const void *from = (const uint8_t *)row + 2 * at;
    return (halves)_mm512_cvtph_ps(_mm256_load_si256(from));
}
static inline void put_halves(uint32_t *row, int at, halves value) {
    void *to = (uint8_t *)row + 2 * at;
    _mm256_store_si256(to, _mm512_cvtps_ph((__m512)value, _MM_FROUND_CUR_DIRECTION));
}
#else
typedef float halves __attribute__((vector_size(32)));
typedef int32_t halves_int __attribute__((vector_size(32)));
enum { HALVES = 8 };

static inline halves get_halves(const uint32_t *row, int at) {
    const void *from = (const uint8_t *)row + 2 * at;
    return (halves)_mm256_cvtph_ps(_mm_load_si128(from));
}
static inline void put_halves(uint32_t *row, int at, halves value) {
    void *to = (uint8_t *)row + 2 * at;
    _mm_store_si128(to, _mm256_cvtps_ph((__m256)value, _MM_FROUND_CUR_DIRECTION));
}
#endif

/* isa_odd_fma() of each; a comparison is 0 or -1. */
static inline halves odd_fma(halves a, halves b, halves c) {
    halves p = a * b, s = p + c;
    halves back = s - p, lost = (p - (s - back)) + (c - back), zero = { 0 };
    halves_int u = (halves_int)s, inexact = (lost < zero) | (lost > zero);
    halves_int away = (lost < zero) ^ ~(s < zero); /* -1 if the signs are the same */
    halves_int step = (away & 2) - 1;
    return (halves)(u + (step & inexact & ((u & 1) - 1)));
}

#endif
