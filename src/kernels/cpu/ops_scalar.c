#include "kernels/cpu/ops.h"
#include "model/quant.h"

static float dot(const float *a, const float *b, size_t n) {
    float sum[8] = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sum[j] += a[i + (size_t)j] * b[i + (size_t)j];
    float rest = 0;
    for (; i < n; i++)
        rest += a[i] * b[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])) + rest;
}

static void dot4x2(const float *x, size_t stride, const float *w0, const float *w1, size_t n,
                   float out[8]) {
    for (size_t i = 0; i < 4; i++) {
        out[2 * i] = dot(x + i * stride, w0, n);
        out[2 * i + 1] = dot(x + i * stride, w1, n);
    }
}

static void axpy(float *y, float s, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] += s * x[i];
}

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    quant_decoder(type)(src, dst, n);
}

static float dot_f16(const float *a, const uint16_t *b, size_t n) {
    float part[64], sum = 0;
    for (size_t i = 0; i < n; i += 64) {
        size_t m = n - i < 64 ? n - i : 64;
        decode(TENSOR_TYPE_F16, b + i, part, m);
        sum += dot(a + i, part, m);
    }
    return sum;
}

static void axpy_f16(float *y, float s, const uint16_t *x, size_t n) {
    float part[64];
    for (size_t i = 0; i < n; i += 64) {
        size_t m = n - i < 64 ? n - i : 64;
        decode(TENSOR_TYPE_F16, x + i, part, m);
        axpy(y + i, s, part, m);
    }
}

const struct ops ops_scalar = { "scalar", dot, dot4x2, axpy, decode, dot_f16, axpy_f16 };
