/* mm.h - the inner loops of matmul, one implementation per instruction set.
 *
 * Weights are levels of 2 to 8 bits with a scale, and perhaps a minimum, for every 16 or 32 of
 * them: w = scale * (level - zero) - minimum, where zero is the same for all weights of a type.
 * They come in packed groups of 16 rows (pack.h). Activations are quantised to 7 bits and a sign,
 * with a scale for every 16 or 32. Products of levels are summed as integers, exactly; their sums
 * are scaled and added up as float. Summing in this order makes all instruction sets agree bit for
 * bit.
 *
 * All functions are pure; pointers need no alignment. */
#ifndef KERNELS_CPU_MM_H
#define KERNELS_CPU_MM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/cpu/pack.h"
#include "model/quant/tensor_type.h"

enum {
    MM_SLAB = 256,            /* elements of a row that are unpacked at once */
    MM_RUN = 16,              /* elements that share a scale, at least */
    MM_RUNS = MM_SLAB / 16,   /* of a slab */
    MM_QUADS = MM_SLAB / 4,   /* of elements in a slab, see struct mm_tile */
    MM_GROUPS = 2,            /* packed groups that are multiplied at once */
    MM_PANEL = 2 * PACK_ROWS, /* rows of these groups */
    MM_FEW = 8,               /* tokens, at most, that floats are multiplied with as they are */
    MM_SHARED = 12,           /* tokens, at most, that share levels as they are read */
    MM_PARTS = 3,             /* of a float, see struct mm_line */
    MM_STEP = 32,             /* elements of a row that are multiplied in parts at once */
    MM_STEPS = MM_SLAB / MM_STEP,
    MM_BLOCK = 32, /* tokens that are multiplied in parts at once */
};

/* One row of quantised activations. */
struct mm_row {
    int8_t *level; /* [k] */
    float *scale;  /* [k / 16] */
    float *sum;    /* [k / 16]: sums of 16 quantised elements, scaled */
};

/* What the sums of the 16 runs of a slab of activations are scaled with, see mm_walk.h; of two runs
 * that share a scale, the first one counts. */
struct mm_ready {
    _Alignas(64) float by[MM_RUNS];   /* the scale, without its last two bits */
    _Alignas(64) float less[MM_RUNS]; /* times by what sums begin with too much */
    _Alignas(64) float more[MM_RUNS]; /* for minima: the scaled sum; else what sums begin with */
};

/* Bytes ahead of the reader that are fetched into the second cache and into the first; 0: none. */
struct mm_ahead {
    unsigned far, near;
};

/* A slab of 16 rows, unpacked. A quad is four elements of each of the 16 rows. */
struct mm_tile {
    _Alignas(64) uint8_t level[MM_QUADS][4 * PACK_ROWS]; /* [quad][row][4] */
    _Alignas(64) uint8_t high[MM_QUADS][4 * PACK_ROWS];  /* their high 4 bits, if kept apart */
    _Alignas(64) float scale[MM_RUNS][PACK_ROWS];
    _Alignas(64) float min[MM_RUNS][PACK_ROWS];
    unsigned count; /* elements */
    unsigned run;   /* elements that share a scale: 16 or 32 */
    unsigned bits;  /* of a level */
    unsigned zero;
    unsigned mins; /* whether min counts */
};

/* The same for weights that are floats. */
struct mm_float_tile {
    _Alignas(64) float w[MM_SLAB][PACK_ROWS];
};

/* Floats in parts: each is the sum of three bfloat16 that have 8 of its 24 bits each, the highest
 * first. Of the 32 elements of a step, i and i + 16 lie side by side.
 *
 * Activations in parts are [slab][block of 32 tokens][part][step][token][32]; the last block has as
 * many tokens as there are. */
struct mm_line {
    uint16_t part[MM_STEP];
};

/* A slab of 16 rows of floats in parts: as many as their type needs. */
struct mm_parts_tile {
    _Alignas(64) uint16_t part[MM_PARTS][MM_STEPS][MM_STEP / 2][2 * PACK_ROWS]; /* [pair][row][2] */
    unsigned parts;
};

/* What a product of a slab and many tokens does beside multiplying. */
struct mm_flow {
    bool first; /* sums begin with this slab */
    bool added; /* out is added to, else written */
    float *out; /* the last slab: where token 0's sums go, not to `sums`; NULL: it is another */
    size_t out_stride;            /* floats between tokens there */
    const char *fetch[MM_GROUPS]; /* bytes that are needed later, of each group of rows: */
    size_t fetch_bytes;           /* fetched into the second cache meanwhile, a few at a time */
};

/* How one token goes through rows of floats. */
struct mm_stream {
    unsigned rows; /* that are multiplied at once: 1, 2 or 4 */
    unsigned far;  /* bytes ahead that are fetched; 0: what follows in these rows and in the next */
};

struct mm_set {
    const char *name;
    /* n floats, a multiple of 32, to a row; run elements share a scale: 16, or 32 for weights of
     * types that have 256 elements per block. */
    void (*quantize)(const float *x, size_t n, unsigned run, const struct mm_row *to);
    /* Prepares `slabs` consecutive slabs of activations that were quantised with this run for
     * weights of a type. The last slab may be shorter; all of its runs are read. */
    void (*prepare)(enum tensor_type type, const struct mm_row *x, size_t slabs, unsigned run,
                    struct mm_ready *to);
    /* out[r] = row r of a packed group . x, for k levels that were quantised with this run and
     * prepared. What is fetched ahead changes the time only. */
    void (*dot)(enum tensor_type type, const void *group, size_t k, const int8_t *x,
                const struct mm_ready *ready, unsigned run, struct mm_ahead ahead,
                float out[PACK_ROWS]);
    /* The same for two groups that follow each other in memory, side by side, bit for bit what dot
     * gives; NULL in sets whose registers hold no more than one. */
    void (*dot_pair)(enum tensor_type type, const void *groups, size_t k, const int8_t *x,
                     const struct mm_ready *ready, unsigned run, struct mm_ahead ahead,
                     float out[MM_PANEL]);
    /* out[t * PACK_ROWS + r] = row r . x of token t, for 2 to MM_SHARED tokens that were prepared,
     * in the order [slab][token]; bit for bit what dot gives for each. False if this is not there
     * for the type and run, and then nothing is done; NULL in sets without any. */
    bool (*dot_few)(enum tensor_type type, const void *group, size_t k, const int8_t *x,
                    const struct mm_ready *ready, unsigned run, size_t tokens,
                    struct mm_ahead ahead, float *out);
    /* The same as dot for 16 rows as they are in the file, `stride` bytes apart, bit for bit. */
    void (*dot_rows)(enum tensor_type type, const void *rows, size_t stride, size_t k,
                     const int8_t *x, const struct mm_ready *ready, unsigned run,
                     float out[PACK_ROWS]);
    /* pack_group() of 16 rows; the buffers do not overlap. */
    void (*pack)(enum tensor_type type, const void *rows, size_t stride, size_t blocks, void *to);
    /* Elements [at, at + count) of a packed group; both are multiples of the type's block, count
     * <= MM_SLAB. What lies ahead of each block is fetched, as by dot. */
    void (*unpack)(enum tensor_type type, const void *group, size_t at, size_t count,
                   struct mm_ahead ahead, struct mm_tile *tile);
    /* sums[t * MM_PANEL + 16 * g + r] += row r of tile g . x of token t, but for what flow says.
     * The levels are those of the same slab, MM_SLAB elements apart, prepared for the tiles' type.
     * Slab by slab this gives bit for bit what dot does. */
    void (*multiply)(const struct mm_tile tiles[MM_GROUPS], const int8_t *x,
                     const struct mm_ready *ready, unsigned run, size_t tokens,
                     const struct mm_flow *flow, float *sums);
    /* out[t * PACK_ROWS + r] = row r of floats of a type . x of token t, for the 16 rows from
     * `rows` on, `stride` bytes apart, and up to MM_FEW tokens, k floats apart. A token's result
     * does not depend on how many there are, nor on `by`, which counts for one token. */
    void (*dot_floats)(enum tensor_type type, const void *rows, size_t stride, size_t k,
                       const float *x, size_t tokens, struct mm_stream by, float *out);
    /* Columns 0 to count - 1 of 16 rows of floats, `stride` bytes apart. */
    void (*unpack_floats)(enum tensor_type type, const void *rows, size_t stride, size_t count,
                          struct mm_float_tile *tile);
    /* As multiply, for `count` elements of unpacked floats; rows of x lie k floats apart. */
    void (*multiply_floats)(const struct mm_float_tile tiles[MM_GROUPS], size_t count,
                            const float *x, size_t k, size_t tokens, float *sums);
    /* Sets that multiply floats in parts have these too, in others they are NULL. The smallest
     * products of parts are left out; what is not finite gives a sum that is not. */
    void (*split)(const float *x, size_t count, struct mm_line *to,
                  size_t stride); /* lines apart */
    void (*unpack_parts)(enum tensor_type type, const void *rows, size_t stride, size_t count,
                         struct mm_parts_tile *tile);
    void (*multiply_parts)(const struct mm_parts_tile tiles[MM_GROUPS], size_t count,
                           const struct mm_line *x, size_t tokens, float *sums);
};

/* The best set that this processor has and GRETA_CPU allows. */
const struct mm_set *mm(void);
/* The best one with vectors of 256 bits, if those of mm() are wider; else NULL. */
const struct mm_set *mm_narrow(void);
/* By number, from the plainest on; NULL after the last. Those this processor lacks are left out.
 */
const struct mm_set *mm_set_at(unsigned i);

#endif
