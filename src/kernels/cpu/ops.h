/* ops.h - the inner loops of the CPU kernels, one implementation an instruction set.
 *
 * ops() is the best set that this processor has and GRETA_CPU allows (isa.h); every set gives the
 * same results to rounding, and tests compare each with the scalar one. Pointers need no alignment;
 * buffers overlap only where it is said that they may. All functions are pure. */
#ifndef KERNELS_CPU_OPS_H
#define KERNELS_CPU_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/tensor_type.h"

enum { OPS_LANES = 16 }; /* what the sizes of matrices are multiples of, where it is said */

/* Part of a matrix of floats: rows `stride` elements apart. */
struct ops_matrix {
    float *at;
    size_t stride;
};

struct ops {
    const char *name;

    /* Blocks of a type to floats; n is a whole number of blocks. */
    void (*decode)(enum tensor_type type, const void *src, float *dst, size_t n);
    /* To nearest, ties to even. */
    void (*encode_f16)(const float *src, void *dst, size_t n);

    /* sum of x[i] * x[i], in double */
    double (*sum_squares)(const float *x, size_t n);
    /* out[i] = x[i] * factor * weight[i]; out may be x */
    void (*scale)(float *out, const float *x, float factor, const float *weight, size_t n);
    /* out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]; out may be gate or up */
    void (*swiglu)(float *out, const float *gate, const float *up, size_t n);
    /* Turns pair i of x, elements i and i + pairs or 2i and 2i + 1, by the angle whose cosine and
     * sine are given. */
    void (*rotate_halves)(float *x, const float *cosines, const float *sines, size_t pairs);
    void (*rotate_neighbours)(float *x, const float *cosines, const float *sines, size_t pairs);

    /* c[m, n] = a[m, k] . b[k, n], added to what c holds if add; n is a multiple of OPS_LANES */
    void (*multiply)(struct ops_matrix c, struct ops_matrix a, struct ops_matrix b, size_t m,
                     size_t n, size_t k, bool add);
    /* out[j] = x . row j of b[n, k]; k is a multiple of OPS_LANES */
    void (*dot_rows)(float *out, const float *x, struct ops_matrix b, size_t n, size_t k);
    /* to[j, i] = from[i, j] for from[rows, columns] */
    void (*transpose)(struct ops_matrix to, struct ops_matrix from, size_t rows, size_t columns);
    /* x[i] = exp(x[i] - top), top being the greatest of all x and *highest, which becomes it.
     * Returns the sum. A NaN is not the greatest of anything, but is in the sum. */
    float (*exp_below)(float *x, size_t n, float *highest);
};

const struct ops *ops(void);
/* By number, from the plainest on; NULL behind the last. Those this processor lacks are left out.
 */
const struct ops *ops_at(unsigned i);

extern const struct ops ops_scalar;
/* NULL where the compiler cannot make it. */
const struct ops *ops_avx2(void);
const struct ops *ops_avx512(void);

#endif
