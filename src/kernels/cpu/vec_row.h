/* vec_row.h - activations to levels in AVX2, for the vectors that are made of it or wider. */
#ifndef KERNELS_CPU_VEC_ROW_H
#define KERNELS_CPU_VEC_ROW_H

#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline, unused))

INLINE float vec_total(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Compared as integers: NaN is larger than all numbers. */
INLINE float vec_peak(const float *x) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), *v = (const __m256i *)x;
    __m256i m = _mm256_and_si256(_mm256_loadu_si256(v), magnitude);
    m = _mm256_max_epu32(m, _mm256_and_si256(_mm256_loadu_si256(v + 1), magnitude));
    __m128i s = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    s = _mm_max_epu32(s, _mm_unpackhi_epi64(s, s));
    s = _mm_max_epu32(s, _mm_shuffle_epi32(s, 1));
    return _mm_cvtss_f32(_mm_castsi128_ps(s));
}

INLINE __m256i vec_round(const float *x, __m256 by) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), by));
}

INLINE int32_t vec_quantize(const float *x, float by, int8_t *level) {
    const __m256 scale = _mm256_set1_ps(by);
    __m256i v = _mm256_packs_epi32(vec_round(x, scale), vec_round(x + 8, scale));
    v = _mm256_permute4x64_epi64(v, 0xd8);
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((__m128i *)level, _mm_packs_epi16(low, high));
    __m128i s = _mm_madd_epi16(_mm_add_epi16(low, high), _mm_set1_epi16(1));
    s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
    return _mm_cvtsi128_si32(s) + _mm_extract_epi32(s, 1);
}

#endif
