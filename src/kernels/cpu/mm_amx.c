/* mm_amx.c - mm.h for this instruction set: that of avx512vnni, and floats in parts by AMX tiles.
 *
 * A tile has 16 rows of 64 bytes. One instruction multiplies a tile of activations (16 tokens by 32
 * elements) with one of weights (16 pairs of elements by 16 rows) and adds to a tile of 16 by 16
 * float sums: 16 times what a multiply-add of vectors does. Its factors are bfloat16, with 8 bits
 * where a float has 24. So a float is the sum of three of them, an F16 of two, and a BF16 is one.
 *
 * The product of parts i and j is at most 2^-8(i+j) of the whole. With F32, i + j goes up to 2,
 * which leaves out less than the sums of floats lose. With F16 and BF16 it goes up to 1: a product
 * is off by 2^-18 on average, 60 times less than if activations were rounded to F16 (ADR 0032). */
#include "kernels/cpu/mm_sets.h"

#if defined(__AMX_BF16__) && defined(__AVX512BW__)
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/cpu/vec_avx512.h"

#include "kernels/cpu/mm_floats.h"

/* ---- parts ---------------------------------------------------------------------------------- */

/* v rounded to 8 bits, as a float; v keeps the rest. A NaN stays one, and an infinity leaves NaN as
 * its rest. */
INLINE vi take_part(vf *v) {
    const __mmask16 is_number = _mm512_cmp_ps_mask(*v, *v, _CMP_ORD_Q);
    vi part = _mm512_castps_si512(*v);
    part = _mm512_mask_add_epi32(part, is_number, part, _mm512_set1_epi32(0x8000));
    part = _mm512_and_si512(part, _mm512_set1_epi32((int)0xffff0000));
    *v = _mm512_sub_ps(*v, _mm512_castsi512_ps(part));
    return part;
}

/* The same of two vectors, as pairs of bfloat16. */
INLINE vi take_pairs(vf *first, vf *second) {
    return vi_or(_mm512_srli_epi32(take_part(first), 16), take_part(second));
}

static void split(const float *x, size_t count, struct mm_line *to, size_t stride) {
    for (size_t s = 0; s * MM_STEP < count; s++) {
        const size_t left = count - s * MM_STEP;
        float last[MM_STEP] = { 0 };
        const float *from = x + s * MM_STEP;
        if (left < MM_STEP)
            from = memcpy(last, from, left * sizeof *last);
        vf first = vf_load(from), second = vf_load(from + 16);
        UNROLL for (size_t p = 0; p < MM_PARTS; p++)
            vi_store(to + (p * MM_STEPS + s) * stride, take_pairs(&first, &second));
    }
}

INLINE void unpack_step(enum tensor_type type, unsigned parts, const char *rows, size_t stride,
                        size_t step, struct mm_parts_tile *tile) {
    vf first[PACK_ROWS], second[PACK_ROWS];
    UNROLL for (size_t r = 0; r < PACK_ROWS; r++) {
        first[r] = load_floats(type, rows + r * stride);
        second[r] = load_floats(type, rows + r * stride + 16 * float_size(type));
    }
    UNROLL for (unsigned p = 0; p < parts; p++) {
        vf pairs[PACK_ROWS];
        UNROLL for (int r = 0; r < PACK_ROWS; r++) pairs[r] =
            _mm512_castsi512_ps(take_pairs(&first[r], &second[r]));
        vf_turn(pairs);
        UNROLL for (int r = 0; r < PACK_ROWS; r++)
            vi_store(tile->part[p][step][r], _mm512_castps_si512(pairs[r]));
    }
}

INLINE void unpack_all(enum tensor_type type, unsigned parts, const char *rows, size_t stride,
                       size_t count, struct mm_parts_tile *tile) {
    const size_t size = float_size(type), whole = count / MM_STEP, left = count % MM_STEP;
    tile->parts = parts;
    for (size_t s = 0; s < whole; s++)
        unpack_step(type, parts, rows + s * MM_STEP * size, stride, s, tile);
    if (!left)
        return;
    char last[PACK_ROWS][MM_STEP * sizeof(float)] = { { 0 } };
    for (size_t r = 0; r < PACK_ROWS; r++)
        memcpy(last[r], rows + r * stride + whole * MM_STEP * size, left * size);
    unpack_step(type, parts, last[0], sizeof last[0], whole, tile);
}

static void unpack_parts(enum tensor_type type, const void *rows, size_t stride, size_t count,
                         struct mm_parts_tile *tile) {
    if (type == TENSOR_TYPE_F16)
        unpack_all(TENSOR_TYPE_F16, 2, rows, stride, count, tile);
    else if (type == TENSOR_TYPE_BF16)
        unpack_all(TENSOR_TYPE_BF16, 1, rows, stride, count, tile);
    else
        unpack_all(TENSOR_TYPE_F32, 3, rows, stride, count, tile);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* Tiles 0 and 1 are the sums of up to 16 tokens with the two groups of rows, 2 and 3 those of up to
 * 16 more; 4 and 5 are weights of the groups, 6 and 7 activations of the first and the others. */
enum { TILE_TOKENS = MM_BLOCK / 2 };

struct configuration {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct configuration) == 64, "what ldtilecfg reads");

/* For blocks of this many tokens, at most 32. */
static void configure(size_t tokens) {
    const size_t first = tokens < TILE_TOKENS ? tokens : TILE_TOKENS, others = tokens - first;
    const size_t rows[8] = { first, first, others, others, PACK_ROWS, PACK_ROWS, first, others };
    struct configuration c = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)rows[i];
        c.row_bytes[i] = rows[i] ? 64 : 0;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

enum { SUMS_STRIDE = MM_PANEL * sizeof(float), LINE_BYTES = sizeof(struct mm_line) };

/* Prefetches the lines that are needed some steps from here. */
INLINE void prefetch(const struct mm_line *x, size_t tokens) {
    enum { AHEAD = 2 };
    for (size_t t = 0; t < tokens; t++)
        __builtin_prefetch(x + AHEAD * tokens + t);
}

/* A block of tokens, more than 16 if `more`. */
INLINE void multiply_block(const struct mm_parts_tile *tiles, unsigned parts, size_t steps,
                           const struct mm_line *x, size_t tokens, bool more, float *sums) {
    const unsigned orders = parts < 3 ? 2 : 3; /* i + j below this */
    float *others = sums + TILE_TOKENS * MM_PANEL;
    _tile_loadd(0, sums, SUMS_STRIDE);
    _tile_loadd(1, sums + PACK_ROWS, SUMS_STRIDE);
    if (more) {
        _tile_loadd(2, others, SUMS_STRIDE);
        _tile_loadd(3, others + PACK_ROWS, SUMS_STRIDE);
    }
    for (size_t s = 0; s < steps; s++)
        UNROLL for (unsigned w = 0; w < parts; w++) {
            _tile_loadd(4, tiles[0].part[w][s], LINE_BYTES);
            _tile_loadd(5, tiles[1].part[w][s], LINE_BYTES);
            UNROLL for (unsigned i = 0; i + w < orders; i++) {
                const unsigned p = w == 0 ? orders - 1 - i : i; /* part 0 stays for w == 1 */
                const struct mm_line *line = x + (p * MM_STEPS + s) * tokens;
                if (w == 0)
                    prefetch(line, tokens);
                if (w != 1 || p != 0) {
                    _tile_loadd(6, line, LINE_BYTES);
                    if (more)
                        _tile_loadd(7, line + TILE_TOKENS, LINE_BYTES);
                }
                _tile_dpbf16ps(0, 6, 4);
                _tile_dpbf16ps(1, 6, 5);
                if (more) {
                    _tile_dpbf16ps(2, 7, 4);
                    _tile_dpbf16ps(3, 7, 5);
                }
            }
        }
    _tile_stored(0, sums, SUMS_STRIDE);
    _tile_stored(1, sums + PACK_ROWS, SUMS_STRIDE);
    if (more) {
        _tile_stored(2, others, SUMS_STRIDE);
        _tile_stored(3, others + PACK_ROWS, SUMS_STRIDE);
    }
}

INLINE void multiply_all(const struct mm_parts_tile *tiles, unsigned parts, size_t steps,
                         const struct mm_line *x, size_t tokens, float *sums) {
    const size_t whole = tokens / MM_BLOCK * MM_BLOCK, left = tokens - whole;
    const struct mm_line *last = x + whole * MM_STEPS * MM_PARTS;
    if (whole)
        configure(MM_BLOCK);
    for (size_t t = 0; t < whole; t += MM_BLOCK)
        multiply_block(tiles, parts, steps, x + t * MM_STEPS * MM_PARTS, MM_BLOCK, true,
                       sums + t * MM_PANEL);
    if (left)
        configure(left);
    if (left > TILE_TOKENS)
        multiply_block(tiles, parts, steps, last, left, true, sums + whole * MM_PANEL);
    else if (left)
        multiply_block(tiles, parts, steps, last, left, false, sums + whole * MM_PANEL);
}

/* The tiles are given back at the end: a thread that has none is switched faster. */
static void multiply_parts(const struct mm_parts_tile tiles[MM_GROUPS], size_t count,
                           const struct mm_line *x, size_t tokens, float *sums) {
    const size_t steps = (count + MM_STEP - 1) / MM_STEP;
    __asm__ volatile("" ::: "memory"); /* the compiler does not see what tiles are loaded from */
    if (tiles->parts == 1)
        multiply_all(tiles, 1, steps, x, tokens, sums);
    else if (tiles->parts == 2)
        multiply_all(tiles, 2, steps, x, tokens, sums);
    else
        multiply_all(tiles, 3, steps, x, tokens, sums);
    _tile_release();
}

static struct mm_set set;

static void make(void) {
    set = *mm_avx512vnni();
    set.name = "amx";
    set.split = split;
    set.unpack_parts = unpack_parts;
    set.multiply_parts = multiply_parts;
}

const struct mm_set *mm_amx(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!mm_avx512vnni())
        return 0;
    pthread_once(&once, make);
    return &set;
}
#else
const struct mm_set *mm_amx(void) {
    return 0;
}
#endif
