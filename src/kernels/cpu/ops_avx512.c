/* ops_avx512.c - AVX-512 (F, BW, DQ, VL) where it beats AVX2; the rest is AVX2's. Only called where
 * cpu_features() has CPU_AVX512. */
#include "kernels/cpu/ops.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <pthread.h>

#include "kernels/cpu/vec_avx512.h"

enum { BLOCK = 8, ACROSS = 2 };

INLINE vf vf_add(vf v, vf w) {
    return _mm512_add_ps(v, w);
}

INLINE vf vf_sub(vf v, vf w) {
    return _mm512_sub_ps(v, w);
}

INLINE vf vf_div(vf v, vf w) {
    return _mm512_div_ps(v, w);
}

INLINE vf vf_max(vf v, vf w) {
    return _mm512_max_ps(v, w);
}

INLINE vf vf_min(vf v, vf w) {
    return _mm512_min_ps(v, w);
}

INLINE vf vf_round(vf v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vf vf_scale(vf v, vf n) {
    return _mm512_scalef_ps(v, n);
}

INLINE vf vf_repeat(const float *p, int count) {
    return count == 1   ? _mm512_set1_ps(*p)
           : count == 2 ? _mm512_castpd_ps(_mm512_broadcastsd_pd(_mm_loadu_pd((const double *)p)))
           : count == 4 ? _mm512_broadcast_f32x4(_mm_loadu_ps(p))
           : count == 8 ? _mm512_broadcast_f32x8(_mm256_loadu_ps(p))
                        : _mm512_loadu_ps(p);
}

INLINE vf vf_swap(vf v, int distance) {
    return distance == 8   ? _mm512_shuffle_f32x4(v, v, 0x4e)
           : distance == 4 ? _mm512_shuffle_f32x4(v, v, 0xb1)
           : distance == 2 ? _mm512_permute_ps(v, 0x4e)
                           : _mm512_permute_ps(v, 0xb1);
}

INLINE vf vf_folded(vf v, vf w) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return _mm512_add_ps(_mm512_permutex2var_ps(v, even, w), _mm512_permutex2var_ps(v, odd, w));
}

#include "kernels/cpu/ops_lanes.h"

/* ---- element by element ---------------------------------------------------------------------- */

static double sum_squares(const float *x, size_t n) {
    __m512d s[4];
#pragma GCC unroll 8
    for (int j = 0; j < 4; j++)
        s[j] = _mm512_setzero_pd();
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
#pragma GCC unroll 8
        for (int j = 0; j < 4; j++) {
            __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + 8 * j));
            s[j] = _mm512_fmadd_pd(v, v, s[j]);
        }
    double sum =
        _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(s[0], s[1]), _mm512_add_pd(s[2], s[3])));
    return i < n ? sum + ops_scalar.sum_squares(x + i, n - i) : sum;
}

static struct ops set;

static void fill(void) {
    set = *ops_avx2();
    set.name = "avx512";
    set.decode = decode;
    set.sum_squares = sum_squares;
    set.scale = scale;
    set.add = add;
    set.swiglu = swiglu;
    set.geglu = geglu;
    set.soft_cap = soft_cap;
    set.decode_rows = decode_rows;
    set.score = score;
    set.soften = soften;
    set.add_weighted = add_weighted;
}

const struct ops *ops_avx512(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &set;
}
#else
const struct ops *ops_avx512(void) {
    return 0;
}
#endif
