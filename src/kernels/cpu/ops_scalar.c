/* ops_scalar.c - plain C, the definition of every function of ops.h. */
#include <math.h>

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

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    quant_decoder(type)(src, dst, n);
}

static void encode_f16(const float *src, void *dst, size_t n) {
    quant_encoder(TENSOR_TYPE_F16)(src, dst, n, QUANT_FAST);
}

/* ---- element by element ---------------------------------------------------------------------- */

static double sum_squares(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static void scale(float *out, const float *x, float factor, const float *weight, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * factor * weight[i];
}

static void swiglu(float *out, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

static void rotate(float *a, float *b, float cosine, float sine) {
    float x = *a, y = *b;
    *a = x * cosine - y * sine;
    *b = x * sine + y * cosine;
}

static void rotate_halves(float *x, const float *cosines, const float *sines, size_t pairs) {
    for (size_t i = 0; i < pairs; i++)
        rotate(&x[i], &x[i + pairs], cosines[i], sines[i]);
}

static void rotate_neighbours(float *x, const float *cosines, const float *sines, size_t pairs) {
    for (size_t i = 0; i < pairs; i++)
        rotate(&x[2 * i], &x[2 * i + 1], cosines[i], sines[i]);
}

/* ---- attention ------------------------------------------------------------------------------- */

static void multiply(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t m,
                     size_t n, size_t k, bool add) {
    for (size_t i = 0; i < m; i++) {
        float *row = c.at + i * c.stride;
        for (size_t j = 0; j < n && !add; j++)
            row[j] = 0;
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++)
                row[j] += a.at[i * a.stride + l] * b.at[l * b.stride + j];
    }
}

static void dot_rows(float *out, const float *x, struct ops_matrix b, size_t n, size_t k) {
    for (size_t j = 0; j < n; j++)
        out[j] = dot(x, b.at + j * b.stride, k);
}

static void transpose(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            to.at[j * to.stride + i] = from.at[i * from.stride + j];
}

static float exp_below(float *x, size_t n, float *highest) {
    float top = *highest, sum = 0;
    for (size_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - top);
    *highest = top;
    return sum;
}

const struct ops ops_scalar = {
    .name = "scalar",
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
