/* mm_panel.h - the functions of mm.h, written once over the vectors of a vec_*.h.
 *
 * A file that implements mm.h for an instruction set includes its vectors, then this. Each type has
 * one function here that walks over a block of 16 packed rows and hands on vectors of levels (put)
 * and the scales that end a run of them (end, end_with_min). Where they go is the sink's matter: in
 * `dot` they are multiplied at once, in registers; in `unpack` they are stored for many tokens.
 *
 * A vector of words in a packed group has 4 bytes of each of 16 rows: elements 4u .. 4u+3 of a run
 * where a byte has one element of it. The low byte of a half-word has elements 4u and 4u+2, the
 * high byte 4u+1 and 4u+3. So a vector gives two of levels, the pairs 2u and 2u+1 of mm.h. */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "kernels/cpu/mm.h"
#include "model/quant.h"
#include "model/quant_block.h"

struct sink {
    bool keep; /* constant wherever this is inlined: unpack, else dot */
    /* dot: this block's activations, and the sums */
    struct mm_row x;
    vi part[4];
    vf sum;
    /* unpack */
    int16_t (*level)[2 * PACK_ROWS];
    float (*scale)[PACK_ROWS], (*min)[PACK_ROWS];
};

/* Levels of pair `pair` of the block, too large by `zero`; `part` counts runs that are open at the
 * same time. */
INLINE void put(struct sink *k, int part, int pair, vi levels, int zero) {
    if (k->keep)
        vi_store(k->level[pair], zero ? vi_minus(levels, (int16_t)zero) : levels);
    else
        k->part[part] = vi_madd(k->part[part], levels, vi_pair(k->x.level + 2 * pair));
}

/* Two pairs from the bytes of half-words. */
INLINE void put_bytes(struct sink *k, int part, int pair, vi bytes, int zero) {
    put(k, part, pair, vi_and(bytes, 0xff), zero);
    put(k, part, pair + 1, vi_right(bytes, 8), zero);
}

INLINE void put_signed_bytes(struct sink *k, int part, int pair, vi bytes) {
    put(k, part, pair, vi_right_signed(vi_left(bytes, 8), 8), 0);
    put(k, part, pair + 1, vi_right_signed(bytes, 8), 0);
}

/* The scale of run `unit` of the block, of `length` (16 or 32) elements; levels were too large by
 * `zero`. */
INLINE void end(struct sink *k, int part, int unit, int length, vf scale, int zero) {
    if (k->keep) {
        vf_store(k->scale[unit], scale);
        return;
    }
    int at = unit * length;
    float sum = k->x.sum[at / 16] + (length == 32 ? k->x.sum[at / 16 + 1] : 0);
    vf t = vf_words(k->part[part]), by = vf_set(k->x.scale[at / 32]);
    t = zero ? vf_fma(t, by, vf_set((float)-zero * sum)) : vf_mul(t, by);
    k->sum = vf_fma(scale, t, k->sum);
    k->part[part] = vi_zero();
}

INLINE void end_with_min(struct sink *k, int part, int unit, int length, vf scale, vf min) {
    if (k->keep)
        vf_store(k->min[unit], min);
    end(k, part, unit, length, scale, 0);
    if (k->keep)
        return;
    int at = unit * length / 16;
    float sum = k->x.sum[at] + (length == 32 ? k->x.sum[at + 1] : 0);
    k->sum = vf_fnma(min, vf_set(sum), k->sum);
}

/* ---- the types ------------------------------------------------------------------------------
 *
 * Sections are those of pack.def, at this block. */

struct block {
    const uint8_t *section[PACK_SECTIONS];
};

#define WORDS(i, word)   vi_load(g->section[i] + 64 * (word))
#define BYTES(i, byte)   vb_load(g->section[i] + 16 * (byte))
#define HALVES(i)        vf_halves(g->section[i])
#define NIBBLES(w, part) vi_and((part) ? vi_right(w, 4) : (w), 0x0f0f)

/* 16 bytes a row: low nibbles are elements 0 to 15, high nibbles 16 to 31. */
INLINE void put_nibbles(struct sink *k, vi w, int word, int zero) {
    put(k, 0, 2 * word, vi_and(w, 15), zero);
    put(k, 0, 2 * word + 8, vi_and(vi_right(w, 4), 15), zero);
    put(k, 0, 2 * word + 1, vi_and(vi_right(w, 8), 15), zero);
    put(k, 0, 2 * word + 9, vi_right(w, 12), zero);
}

INLINE void walk_q4_0(struct sink *k, const struct block *g) {
    UNROLL for (int i = 0; i < 4; i++) put_nibbles(k, WORDS(0, i), i, 8);
    end(k, 0, 0, 32, HALVES(1), 8);
}

INLINE void walk_q4_1(struct sink *k, const struct block *g) {
    UNROLL for (int i = 0; i < 4; i++) put_nibbles(k, WORDS(0, i), i, 0);
    end_with_min(k, 0, 0, 32, HALVES(1), vf_mul(HALVES(2), vf_set(-1)));
}

/* The fifth bit of pair p is bit p of the half-words. */
INLINE void put_fives(struct sink *k, vi w, vi high, int word, int zero) {
    const int pairs[] = { 2 * word, 2 * word + 8, 2 * word + 1, 2 * word + 9 };
    UNROLL for (int i = 0; i < 4; i++) {
        vi bit = vi_left(vi_and(vi_right(high, pairs[i]), 1), 4);
        put(k, 0, pairs[i], vi_or(vi_and(vi_right(w, 4 * i), 15), bit), zero);
    }
}

INLINE void walk_q5_0(struct sink *k, const struct block *g) {
    vi high = WORDS(1, 0);
    UNROLL for (int i = 0; i < 4; i++) put_fives(k, WORDS(0, i), high, i, 16);
    end(k, 0, 0, 32, HALVES(2), 16);
}

INLINE void walk_q5_1(struct sink *k, const struct block *g) {
    vi high = WORDS(1, 0);
    UNROLL for (int i = 0; i < 4; i++) put_fives(k, WORDS(0, i), high, i, 0);
    end_with_min(k, 0, 0, 32, HALVES(2), vf_mul(HALVES(3), vf_set(-1)));
}

INLINE void walk_q8_0(struct sink *k, const struct block *g) {
    UNROLL for (int u = 0; u < 8; u++) put_signed_bytes(k, 0, 2 * u, WORDS(0, u));
    end(k, 0, 0, 32, HALVES(1), 0);
}

INLINE void put_iq4(struct sink *k, const struct block *g, int word, int pair) {
    UNROLL for (int i = 0; i < 4; i++) {
        vi w = WORDS(0, word + i);
        put_signed_bytes(k, 0, pair + 2 * i, vi_lookup(NIBBLES(w, 0), quant_iq4_values));
        put_signed_bytes(k, 0, pair + 2 * i + 8, vi_lookup(NIBBLES(w, 1), quant_iq4_values));
    }
}

INLINE void walk_iq4_nl(struct sink *k, const struct block *g) {
    put_iq4(k, g, 0, 0);
    end(k, 0, 0, 32, HALVES(1), 0);
}

/* 6-bit scales of Q3_K and IQ4_XS: low nibbles, two a byte, then high bits, four a byte from byte
 * `high` on; they are too large by 32. */
INLINE vf six_bit_scale(vb low, vb high, int unit, vf d) {
    vb s = vb_join(vb_bits(low, unit % 2 * 4, 4), vb_bits(high, unit % 4 * 2, 2));
    return vf_fnma(vf_set(32), d, vf_mul(vf_bytes(s), d));
}

INLINE void walk_iq4_xs(struct sink *k, const struct block *g) {
    vf d = HALVES(2);
    UNROLL for (int s = 0; s < 8; s++) {
        put_iq4(k, g, 4 * s, MM_PAIRS * s);
        end(k, 0, s, 32, six_bit_scale(BYTES(1, s / 2), BYTES(1, 4 + s / 4), s, d), 0);
    }
}

/* Scale and minimum of sub-block s of Q4_K and Q5_K. */
INLINE void end_k4(struct sink *k, const struct block *g, int section, int part, int s, vf d,
                   vf dmin) {
    vb low = BYTES(section, s), high = BYTES(section, 8 + s / 2);
    vb scale = vb_join(vb_bits(low, 0, 4), vb_bits(high, s % 2 * 4, 2));
    vb min = vb_join(vb_bits(low, 4, 4), vb_bits(high, s % 2 * 4 + 2, 2));
    end_with_min(k, part, s, 32, vf_mul(vf_bytes(scale), d), vf_mul(vf_bytes(min), dmin));
}

/* Every 32 bytes are two sub-blocks: low and high nibbles. */
INLINE void walk_q4_k(struct sink *k, const struct block *g) {
    vf d = HALVES(2), dmin = HALVES(3);
    UNROLL for (int s = 0; s < 8; s += 2) {
        UNROLL for (int u = 0; u < 8; u++) {
            vi w = WORDS(0, 4 * s + u);
            int pair = MM_PAIRS * s + 2 * u;
            put(k, 0, pair, vi_and(w, 15), 0);
            put(k, 1, pair + MM_PAIRS, vi_and(vi_right(w, 4), 15), 0);
            put(k, 0, pair + 1, vi_and(vi_right(w, 8), 15), 0);
            put(k, 1, pair + MM_PAIRS + 1, vi_right(w, 12), 0);
        }
        end_k4(k, g, 1, 0, s, d, dmin);
        end_k4(k, g, 1, 1, s + 1, d, dmin);
    }
}

INLINE void walk_q5_k(struct sink *k, const struct block *g) {
    vf d = HALVES(3), dmin = HALVES(4);
    UNROLL for (int s = 0; s < 8; s += 2) {
        UNROLL for (int u = 0; u < 8; u++) {
            vi w = WORDS(0, 4 * s + u), high = WORDS(1, u);
            UNROLL for (int i = 0; i < 2; i++) {
                vi bit = vi_left(vi_and(vi_right(high, s + i), 0x0101), 4);
                put_bytes(k, i, MM_PAIRS * (s + i) + 2 * u, vi_or(NIBBLES(w, i), bit), 0);
            }
        }
        end_k4(k, g, 2, 0, s, d, dmin);
        end_k4(k, g, 2, 1, s + 1, d, dmin);
    }
}

/* The types with a scale for 16 elements have four runs of 32 in a half of the block, in the bits
 * of the same bytes; words 0 to 3 have the first 16 of each, words 4 to 7 the others. */
#define EACH_QUARTER(half, part)                                                                   \
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int part = 0; part < 2; part++)
#define EACH_WORD(u, part)    UNROLL for (int u = 4 * (part); u < 4 * (part) + 4; u++)
#define PAIR(half, run, u)    (MM_PAIRS * (4 * (half) + (run)) + 2 * (u))
#define UNIT(half, run, part) (2 * (4 * (half) + (run)) + (part))

INLINE void walk_q2_k(struct sink *k, const struct block *g) {
    vf d = HALVES(2), dmin = HALVES(3);
    EACH_QUARTER(half, part) {
        EACH_WORD(u, part) {
            vi w = WORDS(0, 8 * half + u);
            UNROLL for (int run = 0; run < 4; run++)
                put_bytes(k, run, PAIR(half, run, u), vi_and(vi_right(w, 2 * run), 0x0303), 0);
        }
        UNROLL for (int run = 0; run < 4; run++) {
            int unit = UNIT(half, run, part);
            vb s = BYTES(1, unit);
            end_with_min(k, run, unit, 16, vf_mul(vf_bytes(vb_bits(s, 0, 4)), d),
                         vf_mul(vf_bytes(vb_bits(s, 4, 4)), dmin));
        }
    }
}

INLINE void walk_q3_k(struct sink *k, const struct block *g) {
    vf d = HALVES(3);
    EACH_QUARTER(half, part) {
        EACH_WORD(u, part) {
            vi w = WORDS(0, 8 * half + u), high = WORDS(1, u);
            UNROLL for (int run = 0; run < 4; run++) {
                vi bit = vi_left(vi_and(vi_right(high, 4 * half + run), 0x0101), 2);
                vi low = vi_and(vi_right(w, 2 * run), 0x0303);
                put_bytes(k, run, PAIR(half, run, u), vi_or(low, bit), 4);
            }
        }
        UNROLL for (int run = 0; run < 4; run++) {
            int unit = UNIT(half, run, part);
            end(k, run, unit, 16,
                six_bit_scale(BYTES(2, unit / 2), BYTES(2, 8 + unit / 4), unit, d), 4);
        }
    }
}

INLINE void walk_q6_k(struct sink *k, const struct block *g) {
    vf d = HALVES(3);
    EACH_QUARTER(half, part) {
        EACH_WORD(u, part) {
            vi high = WORDS(1, 8 * half + u);
            vi w[2] = { WORDS(0, 16 * half + u), WORDS(0, 16 * half + 8 + u) };
            UNROLL for (int run = 0; run < 4; run++) {
                vi bits = vi_left(vi_and(vi_right(high, 2 * run), 0x0303), 4);
                put_bytes(k, run, PAIR(half, run, u), vi_or(NIBBLES(w[run % 2], run / 2), bits),
                          32);
            }
        }
        UNROLL for (int run = 0; run < 4; run++) {
            int unit = UNIT(half, run, part);
            end(k, run, unit, 16, vf_mul(vf_signed_bytes(BYTES(2, unit)), d), 32);
        }
    }
}

/* ---- all types ------------------------------------------------------------------------------
 *
 *   MM_TYPE(type, walk, scales a 32, has minima) */
#define MM_TYPES                                                                                   \
    MM_TYPE(Q4_0, walk_q4_0, 1, 0)                                                                 \
    MM_TYPE(Q4_1, walk_q4_1, 1, 1)                                                                 \
    MM_TYPE(Q5_0, walk_q5_0, 1, 0)                                                                 \
    MM_TYPE(Q5_1, walk_q5_1, 1, 1)                                                                 \
    MM_TYPE(Q8_0, walk_q8_0, 1, 0)                                                                 \
    MM_TYPE(IQ4_NL, walk_iq4_nl, 1, 0)                                                             \
    MM_TYPE(IQ4_XS, walk_iq4_xs, 1, 0)                                                             \
    MM_TYPE(Q2_K, walk_q2_k, 2, 1)                                                                 \
    MM_TYPE(Q3_K, walk_q3_k, 2, 0)                                                                 \
    MM_TYPE(Q4_K, walk_q4_k, 1, 1)                                                                 \
    MM_TYPE(Q5_K, walk_q5_k, 1, 1)                                                                 \
    MM_TYPE(Q6_K, walk_q6_k, 2, 0)

/* Steps from a block to the next one. */
struct strides {
    size_t section[PACK_SECTIONS];
};

INLINE void advance(struct block *g, const struct strides *by) {
    for (int i = 0; i < PACK_SECTIONS; i++)
        g->section[i] += by->section[i];
}

static struct strides strides_of(enum tensor_type type) {
    const struct pack_layout one = pack_layout(type, 1);
    struct strides by;
    for (int i = 0; i < PACK_SECTIONS; i++)
        by.section[i] = (i + 1 < PACK_SECTIONS ? one.at[i + 1] : one.bytes) - one.at[i];
    return by;
}

static struct block block_at(const void *group, const struct strides *by, size_t index,
                             size_t blocks) {
    struct block g;
    const uint8_t *section = group;
    for (int i = 0; i < PACK_SECTIONS; i++) {
        g.section[i] = section + index * by->section[i];
        section += blocks * by->section[i];
    }
    return g;
}

enum { PREFETCH = 4096 }; /* bytes ahead */

#define MM_TYPE(type, walk, halves_, mins_)                                                        \
    static void dot_##type(struct block g, const struct strides *by, size_t blocks, size_t length, \
                           const struct mm_row *x, float *out) {                                   \
        struct sink k = { .keep = false, .x = *x, .sum = vf_set(0) };                              \
        UNROLL for (int i = 0; i < 4; i++) k.part[i] = vi_zero();                                  \
        for (size_t b = 0; b < blocks; b++) {                                                      \
            for (size_t i = 0; i < by->section[0]; i += 64)                                        \
                __builtin_prefetch(g.section[0] + PREFETCH + i);                                   \
            walk(&k, &g);                                                                          \
            advance(&g, by);                                                                       \
            k.x.level += length;                                                                   \
            k.x.scale += length / 32;                                                              \
            k.x.sum += length / 16;                                                                \
        }                                                                                          \
        vf_store(out, k.sum);                                                                      \
    }                                                                                              \
    static void unpack_##type(struct block g, const struct strides *by, size_t blocks,             \
                              size_t length, struct mm_tile *t) {                                  \
        struct sink k = { .keep = true, .level = t->level, .scale = t->scale, .min = t->min };     \
        for (size_t b = 0; b < blocks; b++) {                                                      \
            walk(&k, &g);                                                                          \
            advance(&g, by);                                                                       \
            k.level += length / 2;                                                                 \
            k.scale += length / 32 * (halves_);                                                    \
            k.min += length / 32 * (halves_);                                                      \
        }                                                                                          \
        t->blocks = (unsigned)(blocks * length / 32);                                              \
        t->halves = (halves_);                                                                     \
        t->mins = (mins_);                                                                         \
    }
MM_TYPES
#undef MM_TYPE

static void dot(enum tensor_type type, const void *group, size_t n, const struct mm_row *x,
                float out[PACK_ROWS]) {
    const size_t length = tensor_type_find(type)->block_elements, blocks = n / length;
    const struct strides by = strides_of(type);
    struct block g = block_at(group, &by, 0, blocks);
    switch (type) {
#define MM_TYPE(type, walk, halves, mins)                                                          \
    case TENSOR_TYPE_##type:                                                                       \
        dot_##type(g, &by, blocks, length, x, out);                                                \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

static void unpack(enum tensor_type type, const void *group, size_t n, size_t at, size_t count,
                   struct mm_tile *tile) {
    const size_t length = tensor_type_find(type)->block_elements, blocks = n / length;
    const struct strides by = strides_of(type);
    struct block g = block_at(group, &by, at / length, blocks);
    switch (type) {
#define MM_TYPE(type, walk, halves, mins)                                                          \
    case TENSOR_TYPE_##type:                                                                       \
        unpack_##type(g, &by, count / length, length, tile);                                       \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

/* ---- many tokens ---------------------------------------------------------------------------- */

/* `groups` tiles by `tokens` rows of activations; both are constants where this is inlined, so that
 * the sums of a run stay in registers. */
INLINE void multiply_some(const struct mm_tile *tile, int groups, const struct mm_row *x,
                          int tokens, float *sums) {
    const unsigned halves = tile->halves, pairs = MM_PAIRS / halves;
    for (unsigned unit = 0; unit < tile->blocks * halves; unit++) {
        const int16_t *level = x->level + (size_t)unit * pairs * 2;
        vi part[VEC_GROUPS][VEC_TOKENS];
        UNROLL for (int g = 0; g < groups; g++) UNROLL for (int t = 0; t < tokens; t++) part[g][t] =
            vi_zero();
        for (unsigned p = 0; p < pairs; p++) {
            vi w[VEC_GROUPS];
            UNROLL for (int g = 0; g < groups; g++) w[g] = vi_load(tile[g].level[unit * pairs + p]);
            UNROLL for (int t = 0; t < tokens; t++) {
                vi v = vi_pair(level + (size_t)t * MM_SLAB + 2 * p);
                UNROLL for (int g = 0; g < groups; g++) part[g][t] = vi_madd(part[g][t], w[g], v);
            }
        }
        UNROLL for (int t = 0; t < tokens; t++) {
            vf by = vf_set(x->scale[(size_t)t * (MM_SLAB / 32) + unit / halves]);
            UNROLL for (int g = 0; g < groups; g++) {
                float *to = sums + (size_t)t * MM_PANEL + (size_t)g * PACK_ROWS;
                vf v = vf_mul(vf_words(part[g][t]), by);
                vf_store(to, vf_fma(v, vf_load(tile[g].scale[unit]), vf_load(to)));
            }
        }
        if (!tile->mins)
            continue;
        UNROLL for (int t = 0; t < tokens; t++) {
            const float *sum = x->sum + (size_t)t * MM_UNITS + (size_t)unit * (2 / halves);
            vf by = vf_set(halves == 2 ? sum[0] : sum[0] + sum[1]);
            UNROLL for (int g = 0; g < groups; g++) {
                float *to = sums + (size_t)t * MM_PANEL + (size_t)g * PACK_ROWS;
                vf_store(to, vf_fnma(by, vf_load(tile[g].min[unit]), vf_load(to)));
            }
        }
    }
}

static struct mm_row row_at(const struct mm_row *x, size_t t) {
    return (struct mm_row){ x->level + t * MM_SLAB, x->scale + t * (MM_SLAB / MM_BLOCK),
                            x->sum + t * MM_UNITS };
}

static void multiply(const struct mm_tile tiles[MM_GROUPS], const struct mm_row *x, size_t tokens,
                     float *sums) {
    for (int g = 0; g < MM_GROUPS; g += VEC_GROUPS) {
        float *to = sums + (size_t)g * PACK_ROWS;
        size_t t = 0;
        for (; t + VEC_TOKENS <= tokens; t += VEC_TOKENS) {
            struct mm_row row = row_at(x, t);
            multiply_some(tiles + g, VEC_GROUPS, &row, VEC_TOKENS, to + t * MM_PANEL);
        }
        for (; t + 2 <= tokens; t += 2) {
            struct mm_row row = row_at(x, t);
            multiply_some(tiles + g, VEC_GROUPS, &row, 2, to + t * MM_PANEL);
        }
        for (; t < tokens; t++) {
            struct mm_row row = row_at(x, t);
            multiply_some(tiles + g, VEC_GROUPS, &row, 1, to + t * MM_PANEL);
        }
    }
}

INLINE void multiply_some_floats(const struct mm_float_tile *tile, int groups, size_t count,
                                 const float *x, size_t k, int tokens, float *sums) {
    vf part[VEC_GROUPS][VEC_TOKENS];
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int g = 0; g < groups; g++) part[g][t] =
        vf_load(sums + (size_t)t * MM_PANEL + (size_t)g * PACK_ROWS);
    for (size_t i = 0; i < count; i++) {
        vf w[VEC_GROUPS];
        UNROLL for (int g = 0; g < groups; g++) w[g] = vf_load(tile[g].w[i]);
        UNROLL for (int t = 0; t < tokens; t++) {
            vf v = vf_set(x[(size_t)t * k + i]);
            UNROLL for (int g = 0; g < groups; g++) part[g][t] = vf_fma(w[g], v, part[g][t]);
        }
    }
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int g = 0; g < groups; g++)
        vf_store(sums + (size_t)t * MM_PANEL + (size_t)g * PACK_ROWS, part[g][t]);
}

static void multiply_floats(const struct mm_float_tile tiles[MM_GROUPS], size_t count,
                            const float *x, size_t k, size_t tokens, float *sums) {
    for (int g = 0; g < MM_GROUPS; g += VEC_GROUPS) {
        float *to = sums + (size_t)g * PACK_ROWS;
        size_t t = 0;
        for (; t + VEC_TOKENS <= tokens; t += VEC_TOKENS)
            multiply_some_floats(tiles + g, VEC_GROUPS, count, x + t * k, k, VEC_TOKENS,
                                 to + t * MM_PANEL);
        for (; t < tokens; t++)
            multiply_some_floats(tiles + g, VEC_GROUPS, count, x + t * k, k, 1, to + t * MM_PANEL);
    }
}

/* ---- one token, floats ---------------------------------------------------------------------- */

INLINE vf load_floats(enum tensor_type type, const char *p) {
    return type == TENSOR_TYPE_F16    ? vf_halves(p)
           : type == TENSOR_TYPE_BF16 ? vf_brain_halves(p)
                                      : vf_load((const float *)(const void *)p);
}

INLINE void dot_four(enum tensor_type type, const char *rows, size_t stride, size_t n,
                     const float *x, float *out) {
    const size_t size = type == TENSOR_TYPE_F32 ? 4 : 2;
    vf part[4];
    size_t i = 0;
    UNROLL for (int r = 0; r < 4; r++) part[r] = vf_set(0);
    for (; i + 16 <= n; i += 16) {
        vf v = vf_load(x + i);
        UNROLL for (int r = 0; r < 4; r++) part[r] =
            vf_fma(load_floats(type, rows + (size_t)r * stride + i * size), v, part[r]);
    }
    for (int r = 0; r < 4; r++) {
        const char *rest = rows + (size_t)r * stride + i * size;
        float w[16];
        out[r] = vf_total(part[r]);
        if (i < n)
            quant_decoder(type)(rest, w, n - i);
        for (size_t j = 0; i + j < n; j++)
            out[r] += w[j] * x[i + j];
    }
}

static void dot_floats(enum tensor_type type, const void *rows, size_t stride, size_t n,
                       const float *x, float out[PACK_ROWS]) {
    for (int r = 0; r < PACK_ROWS; r += 4) {
        const char *at = (const char *)rows + (size_t)r * stride;
        if (type == TENSOR_TYPE_F16)
            dot_four(TENSOR_TYPE_F16, at, stride, n, x, out + r);
        else if (type == TENSOR_TYPE_BF16)
            dot_four(TENSOR_TYPE_BF16, at, stride, n, x, out + r);
        else
            dot_four(TENSOR_TYPE_F32, at, stride, n, x, out + r);
    }
}

/* ---- activations ---------------------------------------------------------------------------- */

static void quantize(const float *x, size_t n, int16_t *level, float *scale, float *sum) {
    enum { LEVELS = 32767 };
    for (size_t b = 0; b < n / MM_BLOCK; b++) {
        float peak = vec_peak(x + b * MM_BLOCK), d = peak / LEVELS;
        int32_t sums[2];
        /* Something that is not finite, or too small to divide by, must come out as what it is. */
        float by = peak > 1e-30f && peak <= FLT_MAX ? LEVELS / peak : 0;
        vec_quantize(x + b * MM_BLOCK, by, level + b * MM_BLOCK, sums);
        scale[b] = by > 0 || peak <= 1e-30f ? d : (float)NAN;
        sum[2 * b] = scale[b] * (float)sums[0];
        sum[2 * b + 1] = scale[b] * (float)sums[1];
    }
}

#define MM_SET(name)                                                                               \
    static const struct mm_set set = { name,       quantize,       dot, unpack, multiply,          \
                                       dot_floats, multiply_floats }
