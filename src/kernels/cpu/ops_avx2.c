/* ops_avx2.c - AVX2 with FMA and F16C. Compiled with these instructions on; only called where
 * cpu_features() has CPU_AVX2. */
#include "kernels/cpu/ops.h"
#include "model/quant.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

static float sum8(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

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

static void dot4x2(const float *x, size_t stride, const float *w0, const float *w1, size_t n,
                   float out[8]) {
    const float *x0 = x, *x1 = x + stride, *x2 = x + 2 * stride, *x3 = x + 3 * stride;
    __m256 s[8];
    for (int i = 0; i < 8; i++)
        s[i] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 a = _mm256_loadu_ps(w0 + i), b = _mm256_loadu_ps(w1 + i);
        __m256 v = _mm256_loadu_ps(x0 + i);
        s[0] = _mm256_fmadd_ps(v, a, s[0]);
        s[1] = _mm256_fmadd_ps(v, b, s[1]);
        v = _mm256_loadu_ps(x1 + i);
        s[2] = _mm256_fmadd_ps(v, a, s[2]);
        s[3] = _mm256_fmadd_ps(v, b, s[3]);
        v = _mm256_loadu_ps(x2 + i);
        s[4] = _mm256_fmadd_ps(v, a, s[4]);
        s[5] = _mm256_fmadd_ps(v, b, s[5]);
        v = _mm256_loadu_ps(x3 + i);
        s[6] = _mm256_fmadd_ps(v, a, s[6]);
        s[7] = _mm256_fmadd_ps(v, b, s[7]);
    }
    for (size_t r = 0; r < 4; r++) {
        const float *row = x + r * stride;
        float rest0 = 0, rest1 = 0;
        for (size_t j = i; j < n; j++) {
            rest0 += row[j] * w0[j];
            rest1 += row[j] * w1[j];
        }
        out[2 * r] = sum8(s[2 * r]) + rest0;
        out[2 * r + 1] = sum8(s[2 * r + 1]) + rest1;
    }
}

static void axpy(float *y, float s, const float *x, size_t n) {
    __m256 v = _mm256_set1_ps(s);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(v, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; i++)
        y[i] += s * x[i];
}

static __m256 load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static float dot_f16(const float *a, const uint16_t *b, size_t n) {
    __m256 s0 = _mm256_setzero_ps(), s1 = s0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), load_f16(b + i), s0);
        s1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), load_f16(b + i + 8), s1);
    }
    float rest = i < n ? ops_scalar.dot_f16(a + i, b + i, n - i) : 0;
    return sum8(_mm256_add_ps(s0, s1)) + rest;
}

static void axpy_f16(float *y, float s, const uint16_t *x, size_t n) {
    __m256 v = _mm256_set1_ps(s);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(v, load_f16(x + i), _mm256_loadu_ps(y + i)));
    if (i < n)
        ops_scalar.axpy_f16(y + i, s, x + i, n - i);
}

static void decode_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, load_f16(src + i));
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

static const struct ops set = { "avx2", dot, dot4x2, axpy, decode, dot_f16, axpy_f16 };

const struct ops *ops_avx2(void) {
    return &set;
}
#else
const struct ops *ops_avx2(void) {
    return 0;
}
#endif
