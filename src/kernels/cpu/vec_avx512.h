/* vec_avx512.h - the vectors of mm_panel.h in AVX-512: 64 bytes are one register. */
#ifndef KERNELS_CPU_VEC_AVX512_H
#define KERNELS_CPU_VEC_AVX512_H

#include <float.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/vec_row.h"

#define UNROLL _Pragma("GCC unroll 16")

enum { VEC_GROUPS = 2, VEC_FLOAT_TOKENS = 8, VEC_DOT_TOKENS = 4, VEC_SPLIT = 4 };
#ifdef __AVX512VNNI__
enum { VEC_NARROW = 0, VEC_TOKENS = 6, VEC_FEW = 4, VEC_HOLDS = 1, VEC_SHARES = 1 };
#else
/* Widening takes registers as well. */
enum { VEC_NARROW = 1, VEC_TOKENS = 4, VEC_FEW = 2, VEC_HOLDS = 1, VEC_SHARES = 0 };
#endif

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

INLINE vi vi_plus_128(vi v) {
    return _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80));
}

INLINE vi vi_add(vi v, vi w) {
    return _mm512_add_epi32(v, w);
}

INLINE vi vi_sixteenth(vi v) {
    return _mm512_srai_epi32(v, 4);
}

INLINE vi vi_alternate(vi v, vi w, int half) {
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    return _mm512_permutex2var_epi64(v, half ? second : first, w);
}

INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), v);
}

INLINE vi vi_quad(const int8_t *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
}

INLINE vi vi_step(vi sum, vi levels, vi x) {
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(sum, levels, x);
#else
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(levels, x));
    __asm__("" : "+v"(sum)); /* see vec_scalar.h */
    return sum;
#endif
}

INLINE vi vi_words(vi sum, int by) {
    return VEC_NARROW ? _mm512_madd_epi16(sum, _mm512_set1_epi16((short)by)) : sum;
}

/* ---- rows to columns ------------------------------------------------------------------------ */

/* 16 bytes of rows 0, 4, 8 and 12 from p on. */
INLINE __m512i vec_every_fourth(const uint8_t *p, size_t stride) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 8 * stride)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 12 * stride)), 3);
}

INLINE void vi_turn(const uint8_t *p, size_t stride, vi out[4]) {
    const __m512i a = vec_every_fourth(p, stride), b = vec_every_fourth(p + stride, stride);
    const __m512i c = vec_every_fourth(p + 2 * stride, stride);
    const __m512i d = vec_every_fourth(p + 3 * stride, stride);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i ba = _mm512_unpackhi_epi32(a, b), dc = _mm512_unpackhi_epi32(c, d);
    out[0] = _mm512_unpacklo_epi64(ab, cd);
    out[1] = _mm512_unpackhi_epi64(ab, cd);
    out[2] = _mm512_unpacklo_epi64(ba, dc);
    out[3] = _mm512_unpackhi_epi64(ba, dc);
}

INLINE void vi_store_bytes(uint8_t *p, vi v) {
    const __m128i lane = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    v = _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(lane));
    vi_store(p, _mm512_permutexvar_epi32(order, v));
}

INLINE void vi_store_halves(uint8_t *p, vi v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v));
}

INLINE vi vi_right_words(vi v, int n) {
    return _mm512_srli_epi32(v, (unsigned)n);
}

INLINE vi vi_left_words(vi v, int n) {
    return _mm512_slli_epi32(v, (unsigned)n);
}

INLINE vi vi_swap(vi v, int n, uint32_t mask) {
    __m512i t = _mm512_xor_si512(vi_right_words(v, n), v);
    t = _mm512_and_si512(t, _mm512_set1_epi32((int)mask));
    return _mm512_xor_si512(v, _mm512_xor_si512(t, vi_left_words(t, n)));
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

INLINE vf vf_bits(vi v) {
    return _mm512_castsi512_ps(v);
}

INLINE vi vi_bits(vf v) {
    return _mm512_castps_si512(v);
}

INLINE vf vf_coarse(vf v) {
    return vf_bits(_mm512_and_si512(vi_bits(v), _mm512_set1_epi32(~3)));
}

INLINE vf vf_inverse(vf v) {
    return _mm512_rcp14_ps(_mm512_max_ps(v, vf_set(FLT_MIN)));
}

INLINE vf vf_pairs(vf v) {
    return _mm512_add_ps(v, _mm512_permute_ps(v, 0xb1));
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

INLINE vf vf_mla(vf a, vf b, vf c) {
    return vf_fma(a, b, c);
}

INLINE vf vf_brain_halves(const void *p) {
    __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

/* First in the lanes of 4, then the lanes. */
INLINE void vf_turn(vf v[16]) {
    vf t[16];
    UNROLL for (int i = 0; i < 16; i += 4) {
        vf a = _mm512_unpacklo_ps(v[i], v[i + 1]), b = _mm512_unpackhi_ps(v[i], v[i + 1]);
        vf c = _mm512_unpacklo_ps(v[i + 2], v[i + 3]), d = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
        t[i] = _mm512_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        vf a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x44);
        vf b = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x44);
        vf c = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xee);
        vf d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xee);
        v[i] = _mm512_shuffle_f32x4(a, b, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(a, b, 0xdd);
        v[i + 8] = _mm512_shuffle_f32x4(c, d, 0x88);
        v[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
    }
}

INLINE float vf_total(vf v) {
    __m256 high = _mm512_extractf32x8_ps(v, 1);
    return vec_total(_mm256_add_ps(_mm512_castps512_ps256(v), high));
}

#endif
