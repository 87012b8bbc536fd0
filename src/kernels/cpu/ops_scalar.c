/* ops_scalar.c - plain C, the definition of every function of ops.h. */
#include <math.h>

#include "kernels/cpu/exp_terms.h"
#include "kernels/cpu/ops.h"
#include "model/quant/quant.h"

static void decode(enum tensor_type type, const void *src, float *dst, size_t n) {
    quant_decoder(type)(src, dst, n);
}

static void encode_f16(const float *src, void *dst, size_t n) {
    quant_encoder(TENSOR_TYPE_F16)(src, dst, n, QUANT_FAST);
}

/* ---- element by element ---------------------------------------------------------------------- */

static double sum(const float *x, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)x[i];
    return total;
}

static double sum_squares(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static void scale(float *out, const float *x, float factor, const float *weight, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * factor * (weight ? weight[i] : 1);
}

static void add(float *out, const float *x, float by, const float *more, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] + by + (more ? more[i] : 0);
}

static void swiglu(float *out, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = gate[i] / (1 + expf(-gate[i])) * (up ? up[i] : 1);
}

static void geglu(float *out, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float g = gate[i], u = g * GELU_LINEAR * (1 + GELU_CUBIC * g * g);
        out[i] = g / (1 + expf(-2 * u)) * (up ? up[i] : 1);
    }
}

static void soft_cap(float *x, float cap, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = cap * tanhf(x[i] / cap);
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

static const void *row_of(struct ops_rows rows, size_t i) {
    return (const char *)rows.at + i * rows.bytes;
}

static void decode_rows(struct ops_matrix dst, struct ops_rows src, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++)
        decode(src.type, row_of(src, i), dst.at + i * dst.stride, n);
}

static void transpose(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns,
                      size_t unit) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            for (size_t k = 0; k < unit; k++)
                to.at[j * to.stride + i * unit + k] = from.at[i * from.stride + j * unit + k];
}

/* One key's scores of as many rows as have these lanes. */
static void score_lanes(float *scores, const float *queries, size_t lanes, const float *key,
                        size_t width, size_t share) {
    float sum[OPS_LANES] = { 0 };
    for (size_t i = 0; i < width; i += share, queries += lanes)
        for (size_t k = 0; k < share; k++) {
            float element = key[i + k];
            for (size_t l = k; l < OPS_LANES; l += share)
                sum[l] += queries[l] * element;
        }
    for (size_t l = 0; l < OPS_LANES; l += share, scores++) {
        *scores = sum[l];
        for (size_t k = 1; k < share; k++)
            *scores += sum[l + k];
    }
}

static void score(float *scores, const float *queries, struct ops_matrix keys, size_t rows,
                  size_t positions, size_t width) {
    size_t share = OPS_SHARE(rows), lanes = rows * share;
    for (size_t p = 0; p < positions; p++, scores += rows)
        for (size_t l = 0; l < lanes; l += OPS_LANES)
            score_lanes(scores + l, queries + l, lanes, keys.at + p * keys.stride, width, share);
}

static void soften(float *scores, float *highest, float *total, float *shrink, size_t rows,
                   size_t positions) {
    size_t lanes = rows * OPS_SHARE(rows), count = positions * rows;
    for (size_t r = 0; r < rows; r++) {
        float before = highest[r], top = before;
        for (size_t i = r; i < count; i += rows)
            top = scores[i] > top ? scores[i] : top;
        for (size_t l = r; l < lanes; l += rows) {
            highest[l] = top;
            shrink[l] = expf(before - top);
            total[l] *= shrink[l];
        }
    }
    for (size_t i = 0; i < count; i += lanes)
        for (size_t l = 0; l < lanes; l++)
            total[l] += scores[i + l] = expf(scores[i + l] - highest[l]);
}

static void add_weighted(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                         struct ops_rows values, size_t rows, size_t positions, size_t width) {
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < width; i++)
            sums.at[r * sums.stride + i] *= shrink[r];
    for (size_t p = 0; p < positions; p++)
        for (size_t i = 0; i < width; i += OPS_LANES) {
            float value[OPS_LANES];
            const char *at =
                (const char *)row_of(values, p) + tensor_type_row_bytes(values.type, i);
            decode(values.type, at, value, OPS_LANES);
            for (size_t r = 0; r < rows; r++) {
                float weight = weights.at[p * weights.stride + r];
                for (size_t k = 0; k < OPS_LANES; k++)
                    sums.at[r * sums.stride + i + k] += weight * value[k];
            }
        }
}

const struct ops ops_scalar = {
    .name = "scalar",
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
