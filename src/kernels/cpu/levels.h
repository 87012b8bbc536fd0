/* levels.h - quantised activations in a buffer: where the rows of mm.h lie.
 *
 * A row is cut into slabs of 256 elements. All levels come first, then all scales, then all sums;
 * in each the order is [slab][token]. Activations that are split instead (KERN_SPLIT) are in the
 * order of struct mm_line. */
#ifndef KERNELS_CPU_LEVELS_H
#define KERNELS_CPU_LEVELS_H

#include "kernels/cpu/mm.h"

static inline size_t levels_slabs(size_t k) {
    return (k + MM_SLAB - 1) / MM_SLAB;
}

/* A token's part of a slab, in a buffer for `tokens` rows of k elements. */
struct mm_row levels_row(void *buffer, size_t tokens, size_t k, size_t slab, size_t token);

/* A token's first line of a slab; the others are *stride apart. */
struct mm_line *levels_lines(void *buffer, size_t tokens, size_t slab, size_t token,
                             size_t *stride);

/* Quantises a token's k floats into the buffer; run (16 or 32) elements share a scale. KERN_SPLIT:
 * splits them, if this instruction set multiplies floats in parts. */
void levels_put(void *buffer, size_t tokens, size_t k, unsigned run, size_t token, const float *x);

/* The same for the n elements of the row from `at` on, both multiples of 32. */
void levels_put_part(void *buffer, size_t tokens, size_t k, unsigned run, size_t token, size_t at,
                     const float *x, size_t n);

#endif
