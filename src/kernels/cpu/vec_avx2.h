/* vec_avx2.h - the vectors of mm_panel.h in AVX2: 64 bytes are two registers. */
#ifndef KERNELS_CPU_VEC_AVX2_H
#define KERNELS_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/vec_row.h"

#define UNROLL _Pragma("GCC unroll 16")

enum { VEC_TOKENS = 4, VEC_GROUPS = 1 };

typedef struct {
    __m256i a, b;
} vi;

typedef struct {
    __m256 a, b;
} vf;

typedef __m128i vb;

/* ---- integers ------------------------------------------------------------------------------- */

INLINE vi vi_load(const void *p) {
    return (vi){ _mm256_loadu_si256(p), _mm256_loadu_si256((const __m256i *)p + 1) };
}

INLINE void vi_store(void *p, vi v) {
    _mm256_storeu_si256(p, v.a);
    _mm256_storeu_si256((__m256i *)p + 1, v.b);
}

INLINE vi vi_zero(void) {
    return (vi){ _mm256_setzero_si256(), _mm256_setzero_si256() };
}

INLINE vi vi_and(vi v, uint16_t mask) {
    const __m256i m = _mm256_set1_epi16((short)mask);
    return (vi){ _mm256_and_si256(v.a, m), _mm256_and_si256(v.b, m) };
}

INLINE vi vi_or(vi v, vi w) {
    return (vi){ _mm256_or_si256(v.a, w.a), _mm256_or_si256(v.b, w.b) };
}

INLINE vi vi_right(vi v, int n) {
    return (vi){ _mm256_srli_epi16(v.a, n), _mm256_srli_epi16(v.b, n) };
}

INLINE vi vi_left(vi v, int n) {
    return (vi){ _mm256_slli_epi16(v.a, n), _mm256_slli_epi16(v.b, n) };
}

INLINE vi vi_right_signed(vi v, int n) {
    return (vi){ _mm256_srai_epi16(v.a, n), _mm256_srai_epi16(v.b, n) };
}

INLINE vi vi_minus(vi v, int16_t n) {
    const __m256i m = _mm256_set1_epi16(n);
    return (vi){ _mm256_sub_epi16(v.a, m), _mm256_sub_epi16(v.b, m) };
}

INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vi){ _mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(t, v.b) };
}

INLINE vi vi_pair(const int16_t *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i v = _mm256_set1_epi32(word);
    return (vi){ v, v };
}

INLINE __m256i vec_madd(__m256i sum, __m256i a, __m256i b) {
#ifdef __AVXVNNI__
    return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}

INLINE vi vi_madd(vi sum, vi a, vi b) {
    return (vi){ vec_madd(sum.a, a.a, b.a), vec_madd(sum.b, a.b, b.b) };
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
    return (vf){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

INLINE void vf_store(float *p, vf v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}

INLINE vf vf_set(float x) {
    return (vf){ _mm256_set1_ps(x), _mm256_set1_ps(x) };
}

INLINE vf vf_words(vi v) {
    return (vf){ _mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b) };
}

INLINE vf vf_bytes(vb v) {
    return vf_words((vi){ _mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)) });
}

INLINE vf vf_signed_bytes(vb v) {
    return vf_words((vi){ _mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)) });
}

INLINE vf vf_halves(const void *p) {
    return (vf){ _mm256_cvtph_ps(_mm_loadu_si128(p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p + 1)) };
}

INLINE vf vf_mul(vf a, vf b) {
    return (vf){ _mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b) };
}

INLINE vf vf_fma(vf a, vf b, vf c) {
    return (vf){ _mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b) };
}

INLINE vf vf_fnma(vf a, vf b, vf c) {
    return (vf){ _mm256_fnmadd_ps(a.a, b.a, c.a), _mm256_fnmadd_ps(a.b, b.b, c.b) };
}

INLINE vf vf_brain_halves(const void *p) {
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p + 1));
    return (vf){ _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)) };
}

INLINE float vf_total(vf v) {
    return vec_total(_mm256_add_ps(v.a, v.b));
}

#endif
