/* ops.h - the inner loops of the CPU kernels, one implementation per instruction set.
 *
 * ops() is the best set that this processor has and GRETA_CPU allows (isa.h); every set gives the
 * same results to rounding, and tests compare each with the scalar one. Pointers need no alignment;
 * buffers overlap only where it is said that they may. All functions are pure. */
#ifndef KERNELS_CPU_OPS_H
#define KERNELS_CPU_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/quant/tensor_type.h"

enum { OPS_LANES = 16 }; /* what the sizes of matrices are multiples of, where it is said */

/* Rows of queries lie beside each other, element by element. Where there are fewer rows than lanes,
 * a power of 2 of them, a row has several lanes: share = OPS_SHARE(rows) elements of it are
 * neighbours. Element i of row r is number (i / share * rows + r) * share + i % share. */
#define OPS_SHARE(rows) ((rows) < OPS_LANES ? OPS_LANES / (rows) : 1)

/* Part of a matrix of floats: rows `stride` elements apart. */
struct ops_matrix {
    float *at;
    size_t stride;
};

/* Rows of a type, so many bytes apart. */
struct ops_rows {
    enum tensor_type type;
    const void *at;
    size_t bytes;
};

struct ops {
    const char *name;

    /* Blocks of a type to floats; n is a whole number of blocks. */
    void (*decode)(enum tensor_type type, const void *src, float *dst, size_t n);
    /* To nearest, ties to even. */
    void (*encode_f16)(const float *src, void *dst, size_t n);

    /* sum of x[i], and of x[i] * x[i], in double */
    double (*sum)(const float *x, size_t n);
    double (*sum_squares)(const float *x, size_t n);
    /* out[i] = x[i] * factor * weight[i], or without a weight if that is NULL; out may be x */
    void (*scale)(float *out, const float *x, float factor, const float *weight, size_t n);
    /* out[i] = x[i] + by + more[i], or without more if that is NULL; out may be x or more */
    void (*add)(float *out, const float *x, float by, const float *more, size_t n);
    /* out[i] = activation(gate[i]) * up[i], or without up if that is NULL; out may be gate or up.
     * SiLU is x / (1 + exp(-x)); GELU, in its approximation by tanh, is x / (1 + exp(-2u)) with
     * u = sqrt(2 / pi) (x + 0.044715 x^3). */
    void (*swiglu)(float *out, const float *gate, const float *up, size_t n);
    void (*geglu)(float *out, const float *gate, const float *up, size_t n);
    /* x[i] = cap * tanh(x[i] / cap) */
    void (*soft_cap)(float *x, float cap, size_t n);
    /* Turns pair i of x, elements i and i + pairs or 2i and 2i + 1, by the angle whose cosine and
     * sine are given. */
    void (*rotate_halves)(float *x, const float *cosines, const float *sines, size_t pairs);
    void (*rotate_neighbours)(float *x, const float *cosines, const float *sines, size_t pairs);

    /* dst[rows, n] = src; n is a whole number of blocks */
    void (*decode_rows)(struct ops_matrix dst, struct ops_rows src, size_t rows, size_t n);
    /* to[j, i] = from[i, j] for from[rows, columns]; each is `unit` floats, a power of 2 up to
     * OPS_LANES */
    void (*transpose)(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns,
                      size_t unit);

    /* The steps of attention. rows is a power of 2 or a multiple of OPS_LANES, positions and width
     * are multiples of OPS_LANES.
     *
     * scores[positions, rows] = keys[positions, width] . queries[rows, width], which lie as above
     */
    void (*score)(float *scores, const float *queries, struct ops_matrix keys, size_t rows,
                  size_t positions, size_t width);
    /* scores = exp(scores - top), where top is, row by row, the greatest of them and of highest,
     * which becomes it; shrink = exp(what highest was - top); total = total * shrink + the scores.
     * These three have a number for every row or, if there are fewer, for every lane: those of row
     * r are r, r + rows, …; in highest they are equal, in total they are parts of one sum. A NaN is
     * not the greatest of anything, but is in the sum. */
    void (*soften)(float *scores, float *highest, float *total, float *shrink, size_t rows,
                   size_t positions);
    /* sums[rows, width] = sums * shrink[rows] + the rows of values[positions, width], F32 or F16,
     * each times its number in weights[positions, rows]; any number of rows and positions */
    void (*add_weighted)(struct ops_matrix sums, const float *shrink, struct ops_matrix weights,
                         struct ops_rows values, size_t rows, size_t positions, size_t width);
};

const struct ops *ops(void);
/* By number, from the plainest on; NULL after the last. Those this processor lacks are left out.
 */
const struct ops *ops_at(unsigned i);

extern const struct ops ops_scalar;
/* NULL where the compiler cannot make it. */
const struct ops *ops_avx2(void);
const struct ops *ops_avx512(void);

#endif
