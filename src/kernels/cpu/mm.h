/* mm.h - the inner loops of matmul for quantised weights, one implementation an instruction set.
 *
 * Weights are levels of 1 to 8 bits with a scale, and perhaps a minimum, for every 16 or 32 of
 * them: w = scale * level - minimum. They come in packed groups of 16 rows (pack.h). Activations
 * are quantised to 15 bits and a sign, with a scale for every 32. Products of levels are summed as
 * integers, exactly; a sum of 32 is scaled and added up as float. So that all instruction sets give
 * the same sums, and rounding costs a thousandth of what 8-bit activations would.
 *
 * All functions are pure; pointers need no alignment. */
#ifndef KERNELS_CPU_MM_H
#define KERNELS_CPU_MM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/cpu/pack.h"
#include "model/tensor_type.h"

enum {
    MM_BLOCK = 32,            /* elements that share a scale of the activations */
    MM_SLAB = 256,            /* elements of a row that are unpacked at once */
    MM_GROUPS = 2,            /* packed groups that are multiplied at once */
    MM_PANEL = 2 * PACK_ROWS, /* rows of those */
    MM_PAIRS = MM_BLOCK / 2,  /* of elements in a block, see struct mm_row */
    MM_UNITS = MM_SLAB / 16,  /* most scales of a slab */
};

/* One row of quantised activations. The elements 4u .. 4u+3 of a block are stored in the order 0,
 * 2, 1, 3: what lies in the two halves of a 32-bit word meets the same row of the weights. */
struct mm_row {
    const int16_t *level; /* [k] */
    const float *scale;   /* [k / 32] */
    const float *sum;     /* [k / 16]: sums of 16 quantised elements, scaled */
};

/* A slab of 16 rows, unpacked. */
struct mm_tile {
    _Alignas(64) int16_t level[MM_SLAB / 2][2 * PACK_ROWS]; /* [pair][row][2] */
    _Alignas(64) float scale[MM_UNITS][PACK_ROWS];
    _Alignas(64) float min[MM_UNITS][PACK_ROWS];
    unsigned blocks; /* of 32 elements */
    unsigned halves; /* scales a block: 1 or 2 */
    unsigned mins;   /* whether min counts */
};

/* The same for weights that are floats. */
struct mm_float_tile {
    _Alignas(64) float w[MM_SLAB][PACK_ROWS];
};

struct mm_set {
    const char *name;
    /* n floats, a multiple of 32, to a row. */
    void (*quantize)(const float *x, size_t n, int16_t *level, float *scale, float *sum);
    /* out[r] = row r of a packed group . x, for k elements. */
    void (*dot)(enum tensor_type type, const void *group, size_t k, const struct mm_row *x,
                float out[PACK_ROWS]);
    /* Elements [at, at + count) of a packed group; both are multiples of the type's block, count
     * <= MM_SLAB. */
    void (*unpack)(enum tensor_type type, const void *group, size_t k, size_t at, size_t count,
                   struct mm_tile *tile);
    /* sums[t * MM_PANEL + 16 * g + r] += row r of tile g . x of token t. The rows of x are those of
     * the same slab, MM_SLAB elements apart. */
    void (*multiply)(const struct mm_tile tiles[MM_GROUPS], const struct mm_row *x, size_t tokens,
                     float *sums);
    /* out[r] = row r of floats of a type . x, for the 16 rows from `rows` on, `stride` bytes apart.
     */
    void (*dot_floats)(enum tensor_type type, const void *rows, size_t stride, size_t k,
                       const float *x, float out[PACK_ROWS]);
    /* As multiply, for `count` elements of unpacked floats; rows of x lie k floats apart. */
    void (*multiply_floats)(const struct mm_float_tile tiles[MM_GROUPS], size_t count,
                            const float *x, size_t k, size_t tokens, float *sums);
};

/* The best set that this processor has and GRETA_CPU allows. */
const struct mm_set *mm(void);
/* By number, from the plainest on; NULL behind the last. Those this processor lacks are left out.
 */
const struct mm_set *mm_set_at(unsigned i);

#endif
