/* vec_avx512.h - the vectors of mm_panel.h in AVX-512: 64 bytes are one register. */
#ifndef KERNELS_CPU_VEC_AVX512_H
#define KERNELS_CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/vec_row.h"

#define UNROLL _Pragma("GCC unroll 16")

enum { VEC_TOKENS = 8, VEC_GROUPS = 2 };

typedef __m512i vi;
typedef __m512 vf;
typedef __m128i vb;

/* ---- integers ------------------------------------------------------------------------------- */

INLINE vi vi_load(const void *p) {
    return _mm512_loadu_si512(p);
}

INLINE void vi_store(void *p, vi v) {
    _mm512_storeu_si512(p, v);
}

INLINE vi vi_zero(void) {
    return _mm512_setzero_si512();
}

INLINE vi vi_and(vi v, uint16_t mask) {
    return _mm512_and_si512(v, _mm512_set1_epi16((short)mask));
}

INLINE vi vi_or(vi v, vi w) {
    return _mm512_or_si512(v, w);
}

INLINE vi vi_right(vi v, int n) {
    return _mm512_srli_epi16(v, (unsigned)n);
}

INLINE vi vi_left(vi v, int n) {
    return _mm512_slli_epi16(v, (unsigned)n);
}

INLINE vi vi_right_signed(vi v, int n) {
    return _mm512_srai_epi16(v, (unsigned)n);
}

INLINE vi vi_minus(vi v, int16_t n) {
    return _mm512_sub_epi16(v, _mm512_set1_epi16(n));
}

INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), v);
}

INLINE vi vi_pair(const int16_t *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
}

INLINE vi vi_madd(vi sum, vi a, vi b) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}

/* ---- bytes ---------------------------------------------------------------------------------- */

INLINE vb vb_load(const void *p) {
    return _mm_loadu_si128(p);
}

INLINE vb vb_bits(vb v, int from, int bits) {
    return _mm_and_si128(_mm_srli_epi16(v, from), _mm_set1_epi8((char)((1 << bits) - 1)));
}

INLINE vb vb_join(vb low, vb high) {
    return _mm_or_si128(low, _mm_slli_epi16(high, 4));
}

/* ---- floats --------------------------------------------------------------------------------- */

INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v) {
    _mm512_storeu_ps(p, v);
}

INLINE vf vf_set(float x) {
    return _mm512_set1_ps(x);
}

INLINE vf vf_words(vi v) {
    return _mm512_cvtepi32_ps(v);
}

INLINE vf vf_bytes(vb v) {
    return vf_words(_mm512_cvtepu8_epi32(v));
}

INLINE vf vf_signed_bytes(vb v) {
    return vf_words(_mm512_cvtepi8_epi32(v));
}

INLINE vf vf_halves(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}

INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vf vf_fnma(vf a, vf b, vf c) {
    return _mm512_fnmadd_ps(a, b, c);
}

INLINE vf vf_brain_halves(const void *p) {
    __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

INLINE float vf_total(vf v) {
    __m256 high = _mm512_extractf32x8_ps(v, 1);
    return vec_total(_mm256_add_ps(_mm512_castps512_ps256(v), high));
}

#endif
