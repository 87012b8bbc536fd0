/* ops_avx2.c - AVX2 with FMA and F16C. Compiled with these instructions on; only called where
 * cpu_features() has CPU_AVX2. */
#include "kernels/cpu/ops.h"
#include "model/quant.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#include <math.h>

#include "kernels/cpu/exp_terms.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- parts ----------------------------------------------------------------------------------- */

INLINE float sum8(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Lane i is the sum of s[i]. */
INLINE __m256 sum8x8(const __m256 s[8]) {
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(s[4], s[5]), _mm256_hadd_ps(s[6], s[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

INLINE float max8(__m256 v) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* All bits of the first n lanes, n <= 8. */
INLINE __m256i first(size_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}

/* 2^n for whole n from -126 to 127 */
INLINE __m256 power_of_2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* e^x = 2^n e^r. Two steps of 2^(n/2) reach the denormals and infinity. */
INLINE __m256 exp8(__m256 x) {
    x = _mm256_max_ps(_mm256_set1_ps(EXP_LEAST), x); /* in this order a NaN stays */
    x = _mm256_min_ps(_mm256_set1_ps(EXP_MOST), x);
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_LOG2E)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(EXP_C6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1));
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    p = _mm256_mul_ps(p, power_of_2(half));
    return _mm256_mul_ps(p, power_of_2(_mm256_sub_epi32(whole, half)));
}

/* ---- a product of rows ------------------------------------------------------------------------
 */

static float dot(const float *a, const float *b, size_t n) {
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        s0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), s0);
        s1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), s1);
        s2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16), s2);
        s3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24), s3);
    }
    for (; i + 8 <= n; i += 8)
        s0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), s0);
    float rest = 0;
    for (; i < n; i++)
        rest += a[i] * b[i];
    return sum8(_mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3))) + rest;
}

/* ---- types ----------------------------------------------------------------------------------- */

static void decode_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
    if (i < n)
        ops_scalar.decode(TENSOR_TYPE_F16, src + i, dst + i, n - i);
}

/* 16 signed bytes times d */
static void store_scaled(float *dst, __m128i bytes, __m256 d) {
    __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
    _mm256_storeu_ps(dst, _mm256_mul_ps(low, d));
    _mm256_storeu_ps(dst + 8, _mm256_mul_ps(high, d));
}

static __m256 scale_f16(const unsigned char *p) {
    return _mm256_set1_ps(_cvtsh_ss((unsigned short)(p[0] | p[1] << 8)));
}

static void decode_q8_0(const unsigned char *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 32, src += 34, dst += 32) {
        __m256 d = scale_f16(src);
        store_scaled(dst, _mm_loadu_si128((const __m128i *)(src + 2)), d);
        store_scaled(dst + 16, _mm_loadu_si128((const __m128i *)(src + 18)), d);
    }
}

static void decode_q4_0(const unsigned char *src, float *dst, size_t n) {
    const __m128i nibble = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    for (size_t i = 0; i < n; i += 32, src += 18, dst += 32) {
        __m256 d = scale_f16(src);
        __m128i q = _mm_loadu_si128((const __m128i *)(src + 2));
        __m128i low = _mm_sub_epi8(_mm_and_si128(q, nibble), eight);
        __m128i high = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(q, 4), nibble), eight);
        store_scaled(dst, low, d);
        store_scaled(dst + 16, high, d);
    }
}

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    switch (type) {
    case TENSOR_TYPE_F16:
        decode_f16(src, dst, n);
        break;
    case TENSOR_TYPE_Q8_0:
        decode_q8_0(src, dst, n);
        break;
    case TENSOR_TYPE_Q4_0:
        decode_q4_0(src, dst, n);
        break;
    default:
        quant_decoder(type)(src, dst, n);
    }
}

static void encode_f16(const float *src, void *dst, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)((char *)dst + 2 * i), halves);
    }
    if (i < n)
        ops_scalar.encode_f16(src + i, (char *)dst + 2 * i, n - i);
}

/* ---- element by element ---------------------------------------------------------------------- */

static double sum_squares(const float *x, size_t n) {
    __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x + i));
        __m256d b = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4));
        __m256d c = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 8));
        __m256d d = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 12));
        s0 = _mm256_fmadd_pd(a, a, s0);
        s1 = _mm256_fmadd_pd(b, b, s1);
        s2 = _mm256_fmadd_pd(c, c, s2);
        s3 = _mm256_fmadd_pd(d, d, s3);
    }
    s0 = _mm256_add_pd(_mm256_add_pd(s0, s1), _mm256_add_pd(s2, s3));
    __m128d s = _mm_add_pd(_mm256_castpd256_pd128(s0), _mm256_extractf128_pd(s0, 1));
    double sum = _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
    return i < n ? sum + ops_scalar.sum_squares(x + i, n - i) : sum;
}

static void scale(float *out, const float *x, float factor, const float *weight, size_t n) {
    __m256 f = _mm256_set1_ps(factor);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), f),
                                                _mm256_loadu_ps(weight + i)));
    if (i < n)
        ops_scalar.scale(out + i, x + i, factor, weight + i, n - i);
}

INLINE __m256 swiglu8(__m256 gate, __m256 up) {
    __m256 e = exp8(_mm256_xor_ps(gate, _mm256_set1_ps(-0.0f)));
    return _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(_mm256_set1_ps(1), e)), up);
}

static void swiglu(float *out, const float *gate, const float *up, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, swiglu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
    if (i < n) {
        __m256i rest = first(n - i);
        _mm256_maskstore_ps(
            out + i, rest,
            swiglu8(_mm256_maskload_ps(gate + i, rest), _mm256_maskload_ps(up + i, rest)));
    }
}

static void rotate_halves(float *x, const float *cosines, const float *sines, size_t pairs) {
    size_t i = 0;
    for (; i + 8 <= pairs; i += 8) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + pairs + i);
        __m256 c = _mm256_loadu_ps(cosines + i), s = _mm256_loadu_ps(sines + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(x + pairs + i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
    for (; i < pairs; i++) {
        float a = x[i], b = x[pairs + i];
        x[i] = a * cosines[i] - b * sines[i];
        x[pairs + i] = a * sines[i] + b * cosines[i];
    }
}

static void rotate_neighbours(float *x, const float *cosines, const float *sines, size_t pairs) {
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    size_t i = 0;
    for (; i + 4 <= pairs; i += 4) {
        __m256 v = _mm256_loadu_ps(x + 2 * i), swapped = _mm256_permute_ps(v, 0xb1);
        __m256 c = _mm256_castps128_ps256(_mm_loadu_ps(cosines + i));
        __m256 s = _mm256_castps128_ps256(_mm_loadu_ps(sines + i));
        c = _mm256_permutevar8x32_ps(c, twice);
        s = _mm256_permutevar8x32_ps(s, twice);
        _mm256_storeu_ps(x + 2 * i, _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(swapped, s)));
    }
    if (i < pairs)
        ops_scalar.rotate_neighbours(x + 2 * i, cosines + i, sines + i, pairs - i);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* c[rows, 8 * vectors] in registers over all of k. */
INLINE void multiply_block(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t k,
                           bool add, const int rows, const int vectors) {
    __m256 s[4][8];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            s[i][j] =
                add ? _mm256_loadu_ps(c.at + (size_t)i * c.stride + 8 * j) : _mm256_setzero_ps();
    for (size_t l = 0; l < k; l++) {
        __m256 w[8];
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            w[j] = _mm256_loadu_ps(b.at + l * b.stride + 8 * j);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            __m256 v = _mm256_broadcast_ss(a.at + (size_t)i * a.stride + l);
#pragma GCC unroll 8
            for (int j = 0; j < vectors; j++)
                s[i][j] = _mm256_fmadd_ps(v, w[j], s[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            _mm256_storeu_ps(c.at + (size_t)i * c.stride + 8 * j, s[i][j]);
}

/* All columns of some rows: as many at once as there are registers for, then 16. */
INLINE void multiply_rows(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t n,
                          size_t k, bool add, const int rows, const int vectors) {
    size_t step = 8 * (size_t)vectors;
    for (; n >= step; n -= step, c.at += step, b.at += step)
        multiply_block(c, a, b, k, add, rows, vectors);
    for (; vectors > 2 && n > 0; n -= OPS_LANES, c.at += OPS_LANES, b.at += OPS_LANES)
        multiply_block(c, a, b, k, add, rows, 2);
}

static void multiply(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t m,
                     size_t n, size_t k, bool add) {
    for (; m >= 4; m -= 4, c.at += 4 * c.stride, a.at += 4 * a.stride)
        multiply_rows(c, a, b, n, k, add, 4, 2);
    if (m == 3)
        multiply_rows(c, a, b, n, k, add, 3, 2);
    else if (m == 2)
        multiply_rows(c, a, b, n, k, add, 2, 4);
    else if (m == 1)
        multiply_rows(c, a, b, n, k, add, 1, 8);
}

static void dot_rows(float *out, const float *x, struct ops_matrix b, size_t n, size_t k) {
    size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        __m256 s[8];
#pragma GCC unroll 8
        for (size_t r = 0; r < 8; r++)
            s[r] = _mm256_setzero_ps();
        for (size_t i = 0; i < k; i += 8) {
            __m256 v = _mm256_loadu_ps(x + i);
#pragma GCC unroll 8
            for (size_t r = 0; r < 8; r++)
                s[r] = _mm256_fmadd_ps(v, _mm256_loadu_ps(b.at + (j + r) * b.stride + i), s[r]);
        }
        _mm256_storeu_ps(out + j, sum8x8(s));
    }
    for (; j < n; j++)
        out[j] = dot(x, b.at + j * b.stride, k);
}

/* 8 rows of 4 columns to 4 rows of 8 columns */
INLINE void transpose8x4(struct ops_matrix to, struct ops_matrix from) {
    __m256 v[4];
#pragma GCC unroll 8
    for (size_t i = 0; i < 4; i++)
        v[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from.at + i * from.stride)),
                                    _mm_loadu_ps(from.at + (i + 4) * from.stride), 1);
    __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
    __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
    _mm256_storeu_ps(to.at, _mm256_shuffle_ps(a, c, 0x44));
    _mm256_storeu_ps(to.at + to.stride, _mm256_shuffle_ps(a, c, 0xee));
    _mm256_storeu_ps(to.at + 2 * to.stride, _mm256_shuffle_ps(b, d, 0x44));
    _mm256_storeu_ps(to.at + 3 * to.stride, _mm256_shuffle_ps(b, d, 0xee));
}

static void transpose(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns) {
    size_t i = 0;
    for (; i + 8 <= rows; i += 8, to.at += 8, from.at += 8 * from.stride) {
        size_t j = 0;
        for (; j + 4 <= columns; j += 4)
            transpose8x4((struct ops_matrix){ to.at + j * to.stride, to.stride },
                         (struct ops_matrix){ from.at + j, from.stride });
        ops_scalar.transpose((struct ops_matrix){ to.at + j * to.stride, to.stride },
                             (struct ops_matrix){ from.at + j, from.stride }, 8, columns - j);
    }
    ops_scalar.transpose(to, from, rows - i, columns);
}

static float exp_below(float *x, size_t n, float *highest) {
    size_t whole = n / 8 * 8;
    __m256i rest = first(n - whole);
    __m256 none = _mm256_set1_ps(-INFINITY), most = none;
    for (size_t i = 0; i < whole; i += 8)
        most = _mm256_max_ps(_mm256_loadu_ps(x + i), most); /* in this order a NaN is passed over */
    if (whole < n)
        most = _mm256_max_ps(
            _mm256_blendv_ps(none, _mm256_maskload_ps(x + whole, rest), _mm256_castsi256_ps(rest)),
            most);
    float greatest = max8(most);
    *highest = greatest > *highest ? greatest : *highest;
    __m256 top = _mm256_set1_ps(*highest), sum = _mm256_setzero_ps();
    for (size_t i = 0; i < whole; i += 8) {
        __m256 e = exp8(_mm256_sub_ps(_mm256_loadu_ps(x + i), top));
        _mm256_storeu_ps(x + i, e);
        sum = _mm256_add_ps(sum, e);
    }
    if (whole < n) {
        __m256 e = exp8(_mm256_sub_ps(_mm256_maskload_ps(x + whole, rest), top));
        _mm256_maskstore_ps(x + whole, rest, e);
        sum = _mm256_add_ps(sum, _mm256_and_ps(e, _mm256_castsi256_ps(rest)));
    }
    return sum8(sum);
}

static const struct ops set = {
    .name = "avx2",
    .decode = decode,
    .encode_f16 = encode_f16,
    .sum_squares = sum_squares,
    .scale = scale,
    .swiglu = swiglu,
    .rotate_halves = rotate_halves,
    .rotate_neighbours = rotate_neighbours,
    .multiply = multiply,
    .dot_rows = dot_rows,
    .transpose = transpose,
    .exp_below = exp_below,
};

const struct ops *ops_avx2(void) {
    return &set;
}
#else
const struct ops *ops_avx2(void) {
    return 0;
}
#endif
