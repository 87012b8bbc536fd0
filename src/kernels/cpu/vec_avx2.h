/* vec_avx2.h - the vectors of mm_panel.h in AVX2: 64 bytes are two registers. */
#ifndef KERNELS_CPU_VEC_AVX2_H
#define KERNELS_CPU_VEC_AVX2_H

#include <float.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/vec_row.h"

#define UNROLL _Pragma("GCC unroll 16")

enum { VEC_GROUPS = 1, VEC_FLOAT_TOKENS = 6, VEC_DOT_TOKENS = 1, VEC_SHARES = 0, VEC_SPLIT = 2 };
#ifdef __AVXVNNI__
enum { VEC_NARROW = 0, VEC_TOKENS = 4, VEC_FEW = 2, VEC_HOLDS = 0 };
#else
enum { VEC_NARROW = 1, VEC_TOKENS = 4, VEC_FEW = 2, VEC_HOLDS = 0 };
#endif

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

INLINE vi vi_plus_128(vi v) {
    const __m256i m = _mm256_set1_epi8((char)0x80);
    return (vi){ _mm256_xor_si256(v.a, m), _mm256_xor_si256(v.b, m) };
}

INLINE vi vi_add(vi v, vi w) {
    return (vi){ _mm256_add_epi32(v.a, w.a), _mm256_add_epi32(v.b, w.b) };
}

INLINE vi vi_sixteenth(vi v) {
    return (vi){ _mm256_srai_epi32(v.a, 4), _mm256_srai_epi32(v.b, 4) };
}

INLINE vi vi_alternate(vi v, vi w, int half) {
    const __m256i a = half ? v.b : v.a, b = half ? w.b : w.a;
    return (vi){ _mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31) };
}

INLINE vi vi_lookup(vi v, const int8_t table[16]) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vi){ _mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(t, v.b) };
}

INLINE vi vi_quad(const int8_t *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i v = _mm256_set1_epi32(word);
    return (vi){ v, v };
}

INLINE __m256i vec_step(__m256i sum, __m256i levels, __m256i x) {
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sum, levels, x);
#else
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(levels, x));
    __asm__("" : "+x"(sum)); /* see vec_scalar.h */
    return sum;
#endif
}

INLINE vi vi_step(vi sum, vi levels, vi x) {
    return (vi){ vec_step(sum.a, levels.a, x.a), vec_step(sum.b, levels.b, x.b) };
}

INLINE __m256i vec_words(__m256i sum, int by) {
    return VEC_NARROW ? _mm256_madd_epi16(sum, _mm256_set1_epi16((short)by)) : sum;
}

INLINE vi vi_words(vi sum, int by) {
    return (vi){ vec_words(sum.a, by), vec_words(sum.b, by) };
}

/* ---- rows to columns ------------------------------------------------------------------------ */

/* 16 bytes of a row and of the fourth one after it. */
INLINE __m256i vec_two_rows(const uint8_t *p, size_t stride) {
    const __m128i low = _mm_loadu_si128((const __m128i *)p);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
}

/* vi_turn() for 8 rows. */
INLINE void vec_turn_words(const uint8_t *p, size_t stride, __m256i out[4]) {
    const __m256i a = vec_two_rows(p, stride), b = vec_two_rows(p + stride, stride);
    const __m256i c = vec_two_rows(p + 2 * stride, stride);
    const __m256i d = vec_two_rows(p + 3 * stride, stride);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    const __m256i ba = _mm256_unpackhi_epi32(a, b), dc = _mm256_unpackhi_epi32(c, d);
    out[0] = _mm256_unpacklo_epi64(ab, cd);
    out[1] = _mm256_unpackhi_epi64(ab, cd);
    out[2] = _mm256_unpacklo_epi64(ba, dc);
    out[3] = _mm256_unpackhi_epi64(ba, dc);
}

INLINE void vi_turn(const uint8_t *p, size_t stride, vi out[4]) {
    __m256i a[4], b[4];
    vec_turn_words(p, stride, a);
    vec_turn_words(p + 8 * stride, stride, b);
    UNROLL for (int w = 0; w < 4; w++) out[w] = (vi){ a[w], b[w] };
}

/* The first bytes of 8 words side by side, then the second, third and fourth ones. */
INLINE __m256i vec_sort_bytes(__m256i v) {
    const __m128i lane = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    v = _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(lane));
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

INLINE void vi_store_bytes(uint8_t *p, vi v) {
    const __m256i a = vec_sort_bytes(v.a), b = vec_sort_bytes(v.b);
    const __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b);
    vi_store(p, (vi){ _mm256_permute2x128_si256(even, odd, 0x20),
                      _mm256_permute2x128_si256(even, odd, 0x31) });
}

INLINE void vi_store_halves(uint8_t *p, vi v) {
    const __m256i mask = _mm256_set1_epi32(0xffff);
    v.a = _mm256_packus_epi32(_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(v.a, 0xd8));
}

INLINE vi vi_right_words(vi v, int n) {
    return (vi){ _mm256_srli_epi32(v.a, n), _mm256_srli_epi32(v.b, n) };
}

INLINE vi vi_left_words(vi v, int n) {
    return (vi){ _mm256_slli_epi32(v.a, n), _mm256_slli_epi32(v.b, n) };
}

INLINE __m256i vec_swap(__m256i v, int n, uint32_t mask) {
    __m256i t = _mm256_xor_si256(_mm256_srli_epi32(v, n), v);
    t = _mm256_and_si256(t, _mm256_set1_epi32((int)mask));
    return _mm256_xor_si256(v, _mm256_xor_si256(t, _mm256_slli_epi32(t, n)));
}

INLINE vi vi_swap(vi v, int n, uint32_t mask) {
    return (vi){ vec_swap(v.a, n, mask), vec_swap(v.b, n, mask) };
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

INLINE vf vf_bits(vi v) {
    return (vf){ _mm256_castsi256_ps(v.a), _mm256_castsi256_ps(v.b) };
}

INLINE vi vi_bits(vf v) {
    return (vi){ _mm256_castps_si256(v.a), _mm256_castps_si256(v.b) };
}

INLINE vf vf_coarse(vf v) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(~3));
    return (vf){ _mm256_and_ps(v.a, mask), _mm256_and_ps(v.b, mask) };
}

/* The instruction gives 12 bits, which are doubled. */
INLINE __m256 vec_inverse(__m256 v) {
    v = _mm256_max_ps(v, _mm256_set1_ps(FLT_MIN));
    const __m256 r = _mm256_rcp_ps(v);
    return _mm256_mul_ps(r, _mm256_fnmadd_ps(v, r, _mm256_set1_ps(2)));
}

INLINE vf vf_inverse(vf v) {
    return (vf){ vec_inverse(v.a), vec_inverse(v.b) };
}

INLINE vf vf_pairs(vf v) {
    return (vf){ _mm256_add_ps(v.a, _mm256_permute_ps(v.a, 0xb1)),
                 _mm256_add_ps(v.b, _mm256_permute_ps(v.b, 0xb1)) };
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

INLINE vf vf_mla(vf a, vf b, vf c) {
    return vf_fma(a, b, c);
}

INLINE vf vf_brain_halves(const void *p) {
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p + 1));
    return (vf){ _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)) };
}

/* Rows to columns, 8 by 8. */
INLINE void vec_turn(__m256 v[8]) {
    __m256 t[8];
    UNROLL for (int i = 0; i < 8; i += 4) {
        __m256 a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpackhi_ps(v[i], v[i + 1]);
        __m256 c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
        __m256 d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
}

INLINE void vf_turn(vf v[16]) {
    __m256 quarter[2][2][8]; /* [rows][columns] */
    UNROLL for (int r = 0; r < 16; r++) {
        quarter[r / 8][0][r % 8] = v[r].a;
        quarter[r / 8][1][r % 8] = v[r].b;
    }
    UNROLL for (int i = 0; i < 4; i++) vec_turn(quarter[i / 2][i % 2]);
    UNROLL for (int c = 0; c < 16; c++) v[c] =
        (vf){ quarter[0][c / 8][c % 8], quarter[1][c / 8][c % 8] };
}

INLINE float vf_total(vf v) {
    return vec_total(_mm256_add_ps(v.a, v.b));
}

#endif
