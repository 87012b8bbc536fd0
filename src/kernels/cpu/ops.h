/* ops.h - the inner loops of the CPU kernels, one implementation an instruction set.
 *
 * ops() is the best set that this processor has and GRETA_CPU allows (isa.h); every set
 * gives the same results to rounding, and tests compare each with the scalar one. Pointers need no
 * alignment. All functions are pure. */
#ifndef KERNELS_CPU_OPS_H
#define KERNELS_CPU_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/tensor_type.h"

struct ops {
    const char *name;
    /* sum of a[i] * b[i] */
    float (*dot)(const float *a, const float *b, size_t n);
    /* out[i * 2 + j] = dot(x + i * stride, j ? w1 : w0) for four rows of x */
    void (*dot4x2)(const float *x, size_t stride, const float *w0, const float *w1, size_t n,
                   float out[8]);
    /* y += s * x */
    void (*axpy)(float *y, float s, const float *x, size_t n);
    /* Blocks of a type to floats; n is a whole number of blocks. */
    void (*decode)(enum tensor_type type, const void *src, float *dst, size_t n);
    /* F16 halves */
    float (*dot_f16)(const float *a, const uint16_t *b, size_t n);
    void (*axpy_f16)(float *y, float s, const uint16_t *x, size_t n);
};

const struct ops *ops(void);

extern const struct ops ops_scalar;
/* NULL where the compiler cannot make it. */
const struct ops *ops_avx2(void);

#endif
