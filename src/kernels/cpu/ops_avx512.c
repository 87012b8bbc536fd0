/* ops_avx512.c - AVX-512 (F, BW, DQ, VL) where it beats AVX2; the rest is AVX2's. Only called where
 * cpu_features() has CPU_AVX512. */
#include "kernels/cpu/ops.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>
#include <math.h>
#include <pthread.h>

#include "kernels/cpu/exp_terms.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- parts ----------------------------------------------------------------------------------- */

/* The first n lanes, n <= 16. */
INLINE __mmask16 first(size_t n) {
    return (__mmask16)((1u << n) - 1);
}

INLINE __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(EXP_LEAST), x); /* in this order a NaN stays */
    x = _mm512_min_ps(_mm512_set1_ps(EXP_MOST), x);
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(EXP_LOG2E)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_HIGH), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_LOW), r);
    __m512 p = _mm512_set1_ps(EXP_C6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C2));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, r), r, r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

/* ---- types ----------------------------------------------------------------------------------- */

static void decode_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
    if (i < n) {
        __m256i halves = _mm256_maskz_loadu_epi16(first(n - i), src + i);
        _mm512_mask_storeu_ps(dst + i, first(n - i), _mm512_cvtph_ps(halves));
    }
}

static void decode_q8_0(const unsigned char *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 32, src += 34, dst += 32) {
        __m512 d = _mm512_set1_ps(_cvtsh_ss((unsigned short)(src[0] | src[1] << 8)));
        __m512i low = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(src + 2)));
        __m512i high = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(src + 18)));
        _mm512_storeu_ps(dst, _mm512_mul_ps(_mm512_cvtepi32_ps(low), d));
        _mm512_storeu_ps(dst + 16, _mm512_mul_ps(_mm512_cvtepi32_ps(high), d));
    }
}

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    if (type == TENSOR_TYPE_F16)
        decode_f16(src, dst, n);
    else if (type == TENSOR_TYPE_Q8_0)
        decode_q8_0(src, dst, n);
    else
        ops_avx2()->decode(type, src, dst, n);
}

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

static void swiglu(float *out, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first(n - i < 16 ? n - i : 16);
        __m512 g = _mm512_maskz_loadu_ps(lanes, gate + i), u = _mm512_maskz_loadu_ps(lanes, up + i);
        __m512 e = exp16(_mm512_xor_ps(g, _mm512_set1_ps(-0.0f)));
        __m512 silu = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1), e));
        _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(silu, u));
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* c[rows, 16 * vectors] in registers over all of k. */
INLINE void multiply_block(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t k,
                           bool add, const int rows, const int vectors) {
    __m512 s[4][8];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            s[i][j] =
                add ? _mm512_loadu_ps(c.at + (size_t)i * c.stride + 16 * j) : _mm512_setzero_ps();
    for (size_t l = 0; l < k; l++) {
        __m512 w[8];
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            w[j] = _mm512_loadu_ps(b.at + l * b.stride + 16 * j);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            __m512 v = _mm512_set1_ps(a.at[(size_t)i * a.stride + l]);
#pragma GCC unroll 8
            for (int j = 0; j < vectors; j++)
                s[i][j] = _mm512_fmadd_ps(v, w[j], s[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(c.at + (size_t)i * c.stride + 16 * j, s[i][j]);
}

/* All columns of some rows: as many at once as there are registers for, then 16. */
INLINE void multiply_rows(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t n,
                          size_t k, bool add, const int rows, const int vectors) {
    size_t step = 16 * (size_t)vectors;
    for (; n >= step; n -= step, c.at += step, b.at += step)
        multiply_block(c, a, b, k, add, rows, vectors);
    for (; n > 0; n -= OPS_LANES, c.at += OPS_LANES, b.at += OPS_LANES)
        multiply_block(c, a, b, k, add, rows, 1);
}

static void multiply(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t m,
                     size_t n, size_t k, bool add) {
    for (; m >= 4; m -= 4, c.at += 4 * c.stride, a.at += 4 * a.stride)
        multiply_rows(c, a, b, n, k, add, 4, 4);
    if (m == 3)
        multiply_rows(c, a, b, n, k, add, 3, 4);
    else if (m == 2)
        multiply_rows(c, a, b, n, k, add, 2, 4);
    else if (m == 1)
        multiply_rows(c, a, b, n, k, add, 1, 4);
}

static float exp_below(float *x, size_t n, float *highest) {
    __m512 none = _mm512_set1_ps(-INFINITY), most = none, sum = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first(n - i < 16 ? n - i : 16);
        /* in this order a NaN is passed over */
        most = _mm512_max_ps(_mm512_mask_loadu_ps(none, lanes, x + i), most);
    }
    float greatest = _mm512_reduce_max_ps(most);
    *highest = greatest > *highest ? greatest : *highest;
    __m512 top = _mm512_set1_ps(*highest);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first(n - i < 16 ? n - i : 16);
        __m512 e = exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, x + i), top));
        _mm512_mask_storeu_ps(x + i, lanes, e);
        sum = _mm512_mask_add_ps(sum, lanes, sum, e);
    }
    return _mm512_reduce_add_ps(sum);
}

static struct ops set;

static void fill(void) {
    set = *ops_avx2();
    set.name = "avx512";
    set.decode = decode;
    set.sum_squares = sum_squares;
    set.swiglu = swiglu;
    set.multiply = multiply;
    set.exp_below = exp_below;
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
