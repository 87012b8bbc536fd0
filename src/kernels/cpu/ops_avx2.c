/* ops_avx2.c - AVX2 with FMA and F16C. Compiled with these instructions on; only called where
 * cpu_features() has CPU_AVX2. */
#include "kernels/cpu/ops.h"
#include "model/quant/quant.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/cpu/vec_avx2.h"

enum { BLOCK = 4, ACROSS = 1 };

INLINE vf vf_add(vf v, vf w) {
    return (vf){ _mm256_add_ps(v.a, w.a), _mm256_add_ps(v.b, w.b) };
}

INLINE vf vf_sub(vf v, vf w) {
    return (vf){ _mm256_sub_ps(v.a, w.a), _mm256_sub_ps(v.b, w.b) };
}

INLINE vf vf_div(vf v, vf w) {
    return (vf){ _mm256_div_ps(v.a, w.a), _mm256_div_ps(v.b, w.b) };
}

INLINE vf vf_max(vf v, vf w) {
    return (vf){ _mm256_max_ps(v.a, w.a), _mm256_max_ps(v.b, w.b) };
}

INLINE vf vf_min(vf v, vf w) {
    return (vf){ _mm256_min_ps(v.a, w.a), _mm256_min_ps(v.b, w.b) };
}

INLINE vf vf_round(vf v) {
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (vf){ _mm256_round_ps(v.a, NEAREST), _mm256_round_ps(v.b, NEAREST) };
}

/* 2^n for whole n from -126 to 127 */
INLINE __m256 power_of_2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* Two steps of 2^(n/2) reach the denormals and infinity. */
INLINE __m256 scale8(__m256 v, __m256 n) {
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    v = _mm256_mul_ps(v, power_of_2(half));
    return _mm256_mul_ps(v, power_of_2(_mm256_sub_epi32(whole, half)));
}

INLINE vf vf_scale(vf v, vf n) {
    return (vf){ scale8(v.a, n.a), scale8(v.b, n.b) };
}

INLINE vf vf_repeat(const float *p, int count) {
    if (count == 16)
        return vf_load(p);
    double pair = 0;
    memcpy(&pair, p, count == 2 ? sizeof pair : 0);
    __m256 v = count == 1   ? _mm256_broadcast_ss(p)
               : count == 2 ? _mm256_castpd_ps(_mm256_set1_pd(pair))
               : count == 4 ? _mm256_broadcast_ps((const __m128 *)p)
                            : _mm256_loadu_ps(p);
    return (vf){ v, v };
}

INLINE vf vf_swap(vf v, int distance) {
    if (distance == 8)
        return (vf){ v.b, v.a };
    if (distance == 4)
        return (vf){ _mm256_permute2f128_ps(v.a, v.a, 1), _mm256_permute2f128_ps(v.b, v.b, 1) };
    if (distance == 2)
        return (vf){ _mm256_permute_ps(v.a, 0x4e), _mm256_permute_ps(v.b, 0x4e) };
    return (vf){ _mm256_permute_ps(v.a, 0xb1), _mm256_permute_ps(v.b, 0xb1) };
}

INLINE __m256 pairs8(__m256 v, __m256 w) {
    __m256d sums = _mm256_castps_pd(_mm256_hadd_ps(v, w));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(sums, 0xd8));
}

INLINE vf vf_folded(vf v, vf w) {
    return (vf){ pairs8(v.a, v.b), pairs8(w.a, w.b) };
}

#include "kernels/cpu/ops_lanes.h"

/* ---- types ----------------------------------------------------------------------------------- */

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

INLINE double total_of(__m256d v) {
    __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

static double sum(const float *x, size_t n) {
    __m256d s0 = _mm256_setzero_pd(), s1 = s0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        s0 = _mm256_add_pd(s0, _mm256_cvtps_pd(_mm_loadu_ps(x + i)));
        s1 = _mm256_add_pd(s1, _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4)));
    }
    return total_of(_mm256_add_pd(s0, s1)) + ops_scalar.sum(x + i, n - i);
}

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
    double squares = total_of(s0);
    return i < n ? squares + ops_scalar.sum_squares(x + i, n - i) : squares;
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

static void transpose_floats(struct ops_matrix to, struct ops_matrix from, size_t rows,
                             size_t columns) {
    size_t i = 0;
    for (; i + 8 <= rows; i += 8, to.at += 8, from.at += 8 * from.stride) {
        size_t j = 0;
        for (; j + 4 <= columns; j += 4)
            transpose8x4((struct ops_matrix){ to.at + j * to.stride, to.stride },
                         (struct ops_matrix){ from.at + j, from.stride });
        ops_scalar.transpose((struct ops_matrix){ to.at + j * to.stride, to.stride },
                             (struct ops_matrix){ from.at + j, from.stride }, 8, columns - j, 1);
    }
    ops_scalar.transpose(to, from, rows - i, columns, 1);
}

INLINE void transpose_units(struct ops_matrix to, struct ops_matrix from, size_t rows,
                            size_t columns, const size_t unit) {
    for (size_t j = 0; j < columns; j++, to.at += to.stride, from.at += unit)
        for (size_t i = 0; i < rows; i++)
            memcpy(to.at + i * unit, from.at + i * from.stride, unit * sizeof *to.at);
}

static void transpose(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns,
                      size_t unit) {
    if (unit == 1)
        transpose_floats(to, from, rows, columns);
    else if (unit == 2)
        transpose_units(to, from, rows, columns, 2);
    else if (unit == 4)
        transpose_units(to, from, rows, columns, 4);
    else if (unit == 8)
        transpose_units(to, from, rows, columns, 8);
    else
        transpose_units(to, from, rows, columns, 16);
}

static const struct ops set = {
    .name = "avx2",
    .decode = decode,
    .encode_f16 = encode_f16,
    .sum = sum,
    .sum_squares = sum_squares,
    .scale = scale,
    .add = add,
    .swiglu = swiglu,
    .geglu = geglu,
    .soft_cap = soft_cap,
    .rotate_halves = rotate_halves,
    .rotate_neighbours = rotate_neighbours,
    .decode_rows = decode_rows,
    .transpose = transpose,
    .score = score,
    .soften = soften,
    .add_weighted = add_weighted,
};

const struct ops *ops_avx2(void) {
    return &set;
}
#else
const struct ops *ops_avx2(void) {
    return 0;
}
#endif
