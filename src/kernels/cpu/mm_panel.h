/* mm_panel.h - the functions of mm.h, written once over the vectors of a vec_*.h.
 *
 * A file that implements mm.h for an instruction set includes its vectors, then this. Each type has
 * one function here that walks over a block of 16 packed rows and hands on quads of levels (put)
 * and the scales that end a run of them (end_16, end_32). The sink decides where they go: in
 * `dot` they are multiplied at once, in registers; in `unpack` they are stored for many tokens.
 *
 * A vector of words in a packed group has 4 bytes of each of 16 rows, so that where a byte has one
 * element, or several in its bits, the vector gives one quad of levels, or several.
 *
 * Some instruction sets sum products of bytes in 16 bits (VEC_NARROW). Then a sum takes only so
 * many steps before it is widened, and levels of 8 bits are kept as two times 4. */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "kernels/cpu/mm.h"
#include "kernels/cpu/mm_floats.h"
#include "model/quant/quant.h"
#include "model/quant/quant_block.h"

/* A step adds two products of a level and 127 at most. */
INLINE int steps_of(int bits) {
    return !VEC_NARROW || bits == 4 || bits == 8 ? 8 : bits == 5 ? 4 : 2;
}

INLINE bool is_split(int bits) {
    return VEC_NARROW && bits == 8;
}

struct sink {
    /* constants wherever this is inlined */
    bool keep, mins; /* unpack, else dot; whether there are minima */
    int bits, zero;
    int run; /* dot: elements that share a scale of the activations */
    /* dot: this block's activations, the sums of runs of 16 elements that are open, and the result
     */
    struct mm_row x;
    vi part[8], high[8], wide[8];
    vf sum;
    /* unpack */
    struct mm_tile *tile;
    int quad, unit; /* of the tile, where this block begins */
};

INLINE void add_quad(struct sink *k, int part, int quad, vi low, vi high) {
    const int steps = steps_of(k->bits);
    vi x = vi_quad(k->x.level + 4 * quad);
    k->part[part] = vi_step(k->part[part], low, x);
    if (is_split(k->bits))
        k->high[part] = vi_step(k->high[part], high, x);
    if (quad % steps != steps - 1 || steps >= 4)
        return;
    k->wide[part] = vi_add(k->wide[part], vi_words(k->part[part], 1));
    k->part[part] = vi_zero();
}

/* Levels of a quad of the block; `part` tells runs apart that are open at the same time. */
INLINE void put(struct sink *k, int part, int quad, vi levels) {
    vi high = levels;
    if (is_split(k->bits)) {
        high = vi_and(vi_right(levels, 4), 0x0f0f);
        levels = vi_and(levels, 0x0f0f);
    }
    if (!k->keep) {
        add_quad(k, part, quad, levels, high);
        return;
    }
    vi_store(k->tile->level[k->quad + quad], levels);
    if (is_split(k->bits))
        vi_store(k->tile->high[k->quad + quad], high);
}

/* The sums of a run; the next one begins. */
INLINE vi take(struct sink *k, int part) {
    const bool widened = steps_of(k->bits) < 4;
    vi sum = widened ? k->wide[part] : vi_words(k->part[part], 1);
    if (is_split(k->bits))
        sum = vi_add(sum, vi_words(k->high[part], 16));
    k->part[part] = k->high[part] = k->wide[part] = vi_zero();
    return sum;
}

/* What levels that are too large, or minima, make of the sum of a run's activations. */
INLINE float offset_of(int zero, bool mins, float sum) {
    return mins ? sum : -(float)zero * sum;
}

/* total + a run's sums, with the scale of its activations, offset_of() it, and the scale and
 * minimum of its weights. One token and many are added up by this, and so give the same bits. */
INLINE vf add_run(vf total, vi sums, vf by, vf offset, vf scale, vf min, bool mins) {
    vf v = vf_words(sums);
    return mins ? vf_fnma(offset, min, vf_fma(vf_mul(v, by), scale, total))
                : vf_fma(vf_fma(v, by, offset), scale, total);
}

/* Runs at and, of 32 elements, at + 1, of the block. */
INLINE void add(struct sink *k, vi sums, int at, int length, vf scale, vf min) {
    const float *sum = k->x.sum + at;
    float offset = offset_of(k->zero, k->mins, length == 32 ? sum[0] + sum[1] : sum[0]);
    k->sum = add_run(k->sum, sums, vf_set(k->x.scale[at]), vf_set(offset), scale, min, k->mins);
}

INLINE void keep_scale(struct sink *k, int run, vf scale, vf min) {
    vf_store(k->tile->scale[k->unit + run], scale);
    if (k->mins)
        vf_store(k->tile->min[k->unit + run], min);
}

/* The scale and the minimum of run `run` of the block, of 16 elements. */
INLINE void end_16(struct sink *k, int part, int run, vf scale, vf min) {
    if (k->keep)
        keep_scale(k, run, scale, min);
    else
        add(k, take(k, part), run, 16, scale, min);
}

/* The same for 32 elements, the first 16 in `part`, the others in `part` + 1. */
INLINE void end_32(struct sink *k, int part, int run, vf scale, vf min) {
    if (k->keep) {
        keep_scale(k, run, scale, min);
        return;
    }
    vi first = take(k, part), second = take(k, part + 1);
    if (k->run == 32) {
        add(k, vi_add(first, second), 2 * run, 32, scale, min);
        return;
    }
    add(k, first, 2 * run, 16, scale, min);
    add(k, second, 2 * run + 1, 16, scale, min);
}

#define NO_MIN vf_set(0)

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

/* 16 bytes per row: low nibbles are elements 0 to 15, high nibbles 16 to 31. */
INLINE void put_nibbles(struct sink *k, const struct block *g, int levels) {
    UNROLL for (int i = 0; i < 4; i++) {
        vi w = WORDS(levels, i);
        put(k, 0, i, NIBBLES(w, 0));
        put(k, 1, i + 4, NIBBLES(w, 1));
    }
}

INLINE void walk_q4_0(struct sink *k, const struct block *g) {
    put_nibbles(k, g, PACK_Q4_0_LEVELS);
    end_32(k, 0, 0, HALVES(PACK_Q4_0_SCALE), NO_MIN);
}

INLINE void walk_q4_1(struct sink *k, const struct block *g) {
    put_nibbles(k, g, PACK_Q4_1_LEVELS);
    end_32(k, 0, 0, HALVES(PACK_Q4_1_SCALE), vf_mul(HALVES(PACK_Q4_1_MIN), vf_set(-1)));
}

/* The fifth bits of quad q are bits q of the bytes of the section `fifth`. */
INLINE void put_fives(struct sink *k, const struct block *g, int levels, int fifth) {
    vi high = WORDS(fifth, 0);
    UNROLL for (int i = 0; i < 4; i++) {
        vi w = WORDS(levels, i);
        UNROLL for (int half = 0; half < 2; half++) {
            int quad = i + 4 * half;
            vi bit = vi_left(vi_and(vi_right(high, quad), 0x0101), 4);
            put(k, half, quad, vi_or(NIBBLES(w, half), bit));
        }
    }
}

INLINE void walk_q5_0(struct sink *k, const struct block *g) {
    put_fives(k, g, PACK_Q5_0_LEVELS, PACK_Q5_0_HIGH);
    end_32(k, 0, 0, HALVES(PACK_Q5_0_SCALE), NO_MIN);
}

INLINE void walk_q5_1(struct sink *k, const struct block *g) {
    put_fives(k, g, PACK_Q5_1_LEVELS, PACK_Q5_1_HIGH);
    end_32(k, 0, 0, HALVES(PACK_Q5_1_SCALE), vf_mul(HALVES(PACK_Q5_1_MIN), vf_set(-1)));
}

INLINE void walk_q8_0(struct sink *k, const struct block *g) {
    UNROLL for (int u = 0; u < 8; u++) put(k, u / 4, u, vi_plus_128(WORDS(PACK_Q8_0_LEVELS, u)));
    end_32(k, 0, 0, HALVES(PACK_Q8_0_SCALE), NO_MIN);
}

INLINE void put_iq4(struct sink *k, const struct block *g, int levels, int word, int quad) {
    UNROLL for (int i = 0; i < 4; i++) {
        vi w = WORDS(levels, word + i);
        UNROLL for (int half = 0; half < 2; half++) {
            vi values = vi_lookup(NIBBLES(w, half), quant_iq4_values);
            put(k, half, quad + i + 4 * half, vi_plus_128(values));
        }
    }
}

INLINE void walk_iq4_nl(struct sink *k, const struct block *g) {
    put_iq4(k, g, PACK_IQ4_NL_LEVELS, 0, 0);
    end_32(k, 0, 0, HALVES(PACK_IQ4_NL_SCALE), NO_MIN);
}

/* 6-bit scales of Q3_K and IQ4_XS: low nibbles, two per byte, then high bits, four per byte from
 * byte `high` on; they are too large by 32. */
INLINE vf six_bit_scale(vb low, vb high, int unit, vf d) {
    vb s = vb_join(vb_bits(low, unit % 2 * 4, 4), vb_bits(high, unit % 4 * 2, 2));
    return vf_fnma(vf_set(32), d, vf_mul(vf_bytes(s), d));
}

INLINE void walk_iq4_xs(struct sink *k, const struct block *g) {
    const int scales = PACK_IQ4_XS_SCALES;
    vf d = HALVES(PACK_IQ4_XS_SCALE);
    UNROLL for (int s = 0; s < 8; s++) {
        put_iq4(k, g, PACK_IQ4_XS_LEVELS, 4 * s, 8 * s);
        end_32(k, 0, s, six_bit_scale(BYTES(scales, s / 2), BYTES(scales, 4 + s / 4), s, d),
               NO_MIN);
    }
}

/* Scale and minimum of sub-block s of Q4_K and Q5_K. */
INLINE void end_k4(struct sink *k, const struct block *g, int section, int part, int s, vf d,
                   vf dmin) {
    vb low = BYTES(section, s), high = BYTES(section, 8 + s / 2);
    vb scale = vb_join(vb_bits(low, 0, 4), vb_bits(high, s % 2 * 4, 2));
    vb min = vb_join(vb_bits(low, 4, 4), vb_bits(high, s % 2 * 4 + 2, 2));
    end_32(k, part, s, vf_mul(vf_bytes(scale), d), vf_mul(vf_bytes(min), dmin));
}

/* Every 32 bytes are two sub-blocks: low and high nibbles. */
INLINE void walk_q4_k(struct sink *k, const struct block *g) {
    vf d = HALVES(PACK_Q4_K_SCALE), dmin = HALVES(PACK_Q4_K_MIN);
    UNROLL for (int s = 0; s < 8; s += 2) {
        UNROLL for (int u = 0; u < 8; u++) {
            vi w = WORDS(PACK_Q4_K_LEVELS, 4 * s + u);
            put(k, u / 4, 8 * s + u, NIBBLES(w, 0));
            put(k, 2 + u / 4, 8 * s + 8 + u, NIBBLES(w, 1));
        }
        end_k4(k, g, PACK_Q4_K_SCALES, 0, s, d, dmin);
        end_k4(k, g, PACK_Q4_K_SCALES, 2, s + 1, d, dmin);
    }
}

INLINE void walk_q5_k(struct sink *k, const struct block *g) {
    vf d = HALVES(PACK_Q5_K_SCALE), dmin = HALVES(PACK_Q5_K_MIN);
    UNROLL for (int s = 0; s < 8; s += 2) {
        UNROLL for (int u = 0; u < 8; u++) {
            vi w = WORDS(PACK_Q5_K_LEVELS, 4 * s + u), high = WORDS(PACK_Q5_K_HIGH, u);
            UNROLL for (int i = 0; i < 2; i++) {
                vi bit = vi_left(vi_and(vi_right(high, s + i), 0x0101), 4);
                put(k, 2 * i + u / 4, 8 * (s + i) + u, vi_or(NIBBLES(w, i), bit));
            }
        }
        end_k4(k, g, PACK_Q5_K_SCALES, 0, s, d, dmin);
        end_k4(k, g, PACK_Q5_K_SCALES, 2, s + 1, d, dmin);
    }
}

/* The types with a scale for 16 elements have four runs of 32 in a half of the block, in the bits
 * of the same bytes; words 0 to 3 have the first 16 of each, words 4 to 7 the others. */
#define EACH_WORD(u)       UNROLL for (int u = 0; u < 8; u++)
#define EACH_RUN(i)        UNROLL for (int i = 0; i < 8; i++)
#define PUT(half, i, u, v) put(k, 2 * (i) + (u) / 4, 8 * (4 * (half) + (i)) + (u), v)

INLINE void walk_q2_k(struct sink *k, const struct block *g) {
    vf d = HALVES(PACK_Q2_K_SCALE), dmin = HALVES(PACK_Q2_K_MIN);
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(u) {
            vi w = WORDS(PACK_Q2_K_LEVELS, 8 * half + u);
            UNROLL for (int i = 0; i < 4; i++) PUT(half, i, u, vi_and(vi_right(w, 2 * i), 0x0303));
        }
        EACH_RUN(i) {
            vb s = BYTES(PACK_Q2_K_SCALES, 8 * half + i);
            end_16(k, i, 8 * half + i, vf_mul(vf_bytes(vb_bits(s, 0, 4)), d),
                   vf_mul(vf_bytes(vb_bits(s, 4, 4)), dmin));
        }
    }
}

INLINE void walk_q3_k(struct sink *k, const struct block *g) {
    const int scales = PACK_Q3_K_SCALES;
    vf d = HALVES(PACK_Q3_K_SCALE);
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(u) {
            vi w = WORDS(PACK_Q3_K_LEVELS, 8 * half + u), high = WORDS(PACK_Q3_K_HIGH, u);
            UNROLL for (int i = 0; i < 4; i++) {
                vi bit = vi_left(vi_and(vi_right(high, 4 * half + i), 0x0101), 2);
                PUT(half, i, u, vi_or(vi_and(vi_right(w, 2 * i), 0x0303), bit));
            }
        }
        EACH_RUN(i) {
            int run = 8 * half + i;
            end_16(k, i, run,
                   six_bit_scale(BYTES(scales, run / 2), BYTES(scales, 8 + run / 4), run, d),
                   NO_MIN);
        }
    }
}

INLINE void walk_q6_k(struct sink *k, const struct block *g) {
    vf d = HALVES(PACK_Q6_K_SCALE);
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(u) {
            vi high = WORDS(PACK_Q6_K_HIGH, 8 * half + u);
            vi w[2] = { WORDS(PACK_Q6_K_LEVELS, 16 * half + u),
                        WORDS(PACK_Q6_K_LEVELS, 16 * half + 8 + u) };
            UNROLL for (int i = 0; i < 4; i++) {
                vi bits = vi_left(vi_and(vi_right(high, 2 * i), 0x0303), 4);
                PUT(half, i, u, vi_or(NIBBLES(w[i % 2], i / 2), bits));
            }
        }
        EACH_RUN(i)
        end_16(k, i, 8 * half + i,
               vf_mul(vf_signed_bytes(BYTES(PACK_Q6_K_SCALES, 8 * half + i)), d), NO_MIN);
    }
}

/* ---- all types ------------------------------------------------------------------------------
 *
 *   MM_TYPE(type, walk, elements that share a scale, bits of a level, zero, has minima) */
#define MM_TYPES                                                                                   \
    MM_TYPE(Q4_0, walk_q4_0, 32, 4, 8, 0)                                                          \
    MM_TYPE(Q4_1, walk_q4_1, 32, 4, 0, 1)                                                          \
    MM_TYPE(Q5_0, walk_q5_0, 32, 5, 16, 0)                                                         \
    MM_TYPE(Q5_1, walk_q5_1, 32, 5, 0, 1)                                                          \
    MM_TYPE(Q8_0, walk_q8_0, 32, 8, 128, 0)                                                        \
    MM_TYPE(IQ4_NL, walk_iq4_nl, 32, 8, 128, 0)                                                    \
    MM_TYPE(IQ4_XS, walk_iq4_xs, 32, 8, 128, 0)                                                    \
    MM_TYPE(Q2_K, walk_q2_k, 16, 4, 0, 1)                                                          \
    MM_TYPE(Q3_K, walk_q3_k, 16, 4, 4, 0)                                                          \
    MM_TYPE(Q4_K, walk_q4_k, 32, 4, 0, 1)                                                          \
    MM_TYPE(Q5_K, walk_q5_k, 32, 5, 0, 1)                                                          \
    MM_TYPE(Q6_K, walk_q6_k, 16, 6, 32, 0)

INLINE struct block block_at(const uint8_t *p, const struct pack_layout *layout) {
    struct block g;
    UNROLL for (int i = 0; i < PACK_SECTIONS; i++) g.section[i] = p + layout->at[i];
    return g;
}

enum { LINE = 64 };

INLINE void prefetch_block(const uint8_t *p, size_t bytes, struct mm_ahead ahead) {
    if (ahead.far)
        UNROLL for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(p + ahead.far + i, 0, 2);
    if (ahead.near)
        UNROLL for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(p + ahead.near + i);
}

#define MM_TYPE(type, walk, run_, bits_, zero_, mins_)                                             \
    INLINE void dot_run_##type(const uint8_t *p, size_t blocks, size_t length, int run,            \
                               const struct mm_row *x, struct mm_ahead ahead, float *out) {        \
        const struct pack_layout layout = pack_layout(TENSOR_TYPE_##type);                         \
        struct sink k = {                                                                          \
            .mins = (mins_), .bits = (bits_), .zero = (zero_), .run = run, .x = *x                 \
        };                                                                                         \
        k.sum = vf_set(0);                                                                         \
        UNROLL for (int i = 0; i < 8; i++) k.part[i] = k.high[i] = k.wide[i] = vi_zero();          \
        for (size_t b = 0; b < blocks; b++, p += layout.bytes) {                                   \
            const struct block g = block_at(p, &layout);                                           \
            prefetch_block(p, layout.bytes, ahead);                                                \
            walk(&k, &g);                                                                          \
            k.x.level += length;                                                                   \
            k.x.scale += length / MM_RUN;                                                          \
            k.x.sum += length / MM_RUN;                                                            \
        }                                                                                          \
        vf_store(out, k.sum);                                                                      \
    }                                                                                              \
    static void dot_##type(const uint8_t *p, size_t blocks, size_t length, unsigned run,           \
                           const struct mm_row *x, struct mm_ahead ahead, float *out) {            \
        if (run == 32 && (run_) == 32)                                                             \
            dot_run_##type(p, blocks, length, 32, x, ahead, out);                                  \
        else                                                                                       \
            dot_run_##type(p, blocks, length, 16, x, ahead, out);                                  \
    }                                                                                              \
    static void unpack_##type(const uint8_t *p, size_t blocks, size_t length, struct mm_tile *t) { \
        const struct pack_layout layout = pack_layout(TENSOR_TYPE_##type);                         \
        struct sink k = { .keep = true, .mins = (mins_), .bits = (bits_), .tile = t };             \
        for (size_t b = 0; b < blocks; b++, p += layout.bytes) {                                   \
            const struct block g = block_at(p, &layout);                                           \
            prefetch_block(p, layout.bytes, (struct mm_ahead){ 8192, 2048 });                      \
            walk(&k, &g);                                                                          \
            k.quad += (int)length / 4;                                                             \
            k.unit += (int)length / (run_);                                                        \
        }                                                                                          \
        t->count = (unsigned)(blocks * length);                                                    \
        t->run = (run_);                                                                           \
        t->bits = (bits_);                                                                         \
        t->zero = (zero_);                                                                         \
        t->mins = (mins_);                                                                         \
    }
MM_TYPES
#undef MM_TYPE

static void dot(enum tensor_type type, const void *group, size_t n, const struct mm_row *x,
                unsigned run, struct mm_ahead ahead, float out[PACK_ROWS]) {
    const size_t length = tensor_type_find(type)->block_elements;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        dot_##type(group, n / length, length, run, x, ahead, out);                                 \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

static void unpack(enum tensor_type type, const void *group, size_t at, size_t count,
                   struct mm_tile *tile) {
    const struct tensor_type_info *t = tensor_type_find(type);
    const uint8_t *p = (const uint8_t *)group + at / t->block_elements * t->block_bytes * PACK_ROWS;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        unpack_##type(p, count / t->block_elements, t->block_elements, tile);                      \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

#define NOINLINE __attribute__((noinline))

/* ---- many tokens ---------------------------------------------------------------------------- */

typedef vi sums_of_run[VEC_GROUPS][VEC_TOKENS];

#define EACH_SUM(g, t)                                                                             \
    UNROLL for (int g = 0; g < groups; g++) UNROLL for (int t = 0; t < tokens; t++)

/* Quads [from, from + count) of tiles, multiplied and summed in one piece. */
INLINE void step_over(const struct mm_tile *tile, bool high, int groups, const int8_t *level,
                      int tokens, size_t from, int count, sums_of_run sum) {
    EACH_SUM(g, t) sum[g][t] = vi_zero();
    UNROLL for (int q = 0; q < count; q++) {
        vi w[VEC_GROUPS];
        UNROLL for (int g = 0; g < groups; g++) w[g] =
            vi_load((high ? tile[g].high : tile[g].level)[from + (size_t)q]);
        UNROLL for (int t = 0; t < tokens; t++) {
            vi v = vi_quad(level + t * MM_SLAB + 4 * q);
            UNROLL for (int g = 0; g < groups; g++) sum[g][t] = vi_step(sum[g][t], w[g], v);
        }
    }
}

/* Adds up, as words, a run of `quads` quads from `from` on: of the levels or of their high bits. */
INLINE void sum_run(const struct mm_tile *tile, bool high, int bits, int groups,
                    const int8_t *level, int tokens, size_t from, int quads, sums_of_run sum) {
    const int steps = steps_of(bits) < quads ? steps_of(bits) : quads;
    for (int q = 0; q < quads; q += steps) {
        sums_of_run piece;
        step_over(tile, high, groups, level + 4 * q, tokens, from + (size_t)q, steps, piece);
        EACH_SUM(g, t) sum[g][t] = vi_add(sum[g][t], vi_words(piece[g][t], high ? 16 : 1));
    }
}

/* offset_of() every token and run. */
INLINE void find_offsets(const struct mm_tile *tile, const float *sum, int tokens, int run,
                         bool mins, float offset[VEC_TOKENS * MM_RUNS]) {
    const int count = tokens * MM_SLAB / run, zero = (int)tile->zero;
    for (int i = 0; i < count; i++)
        offset[i] = offset_of(zero, mins, run == 32 ? sum[2 * i] + sum[2 * i + 1] : sum[i]);
}

/* `groups` tiles by `tokens` rows of activations, run by run; all of these are constants where this
 * is inlined, so that the sums of a run stay in registers. */
INLINE void multiply_some(const struct mm_tile *tile, int groups, const struct mm_row *x,
                          int tokens, int bits, int run, bool mins, float *restrict sums) {
    const unsigned own_runs = tile->run == 32 && run == 16 ? 2 : 1; /* to one of the weights */
    float offset[VEC_TOKENS * MM_RUNS];
    find_offsets(tile, x->sum, tokens, run, mins, offset);
    for (unsigned r = 0; r < tile->count / (unsigned)run; r++) {
        const size_t from = (size_t)r * (unsigned)run, own = own_runs == 2 ? r / 2 : r;
        const float *scale = x->scale + from / MM_RUN;
        sums_of_run sum;
        EACH_SUM(g, t) sum[g][t] = vi_zero();
        sum_run(tile, false, bits, groups, x->level + from, tokens, from / 4, run / 4, sum);
        if (is_split(bits))
            sum_run(tile, true, bits, groups, x->level + from, tokens, from / 4, run / 4, sum);
        UNROLL for (int g = 0; g < groups; g++) {
            vf own_scale = vf_load(tile[g].scale[own]), own_min = vf_load(tile[g].min[own]);
            float *to = sums + g * PACK_ROWS;
            UNROLL for (int t = 0; t < tokens; t++) {
                vf by = vf_set(scale[t * MM_RUNS]);
                vf more = vf_set(offset[(unsigned)t * (MM_SLAB / (unsigned)run) + r]);
                vf_store(to + t * MM_PANEL, add_run(vf_load(to + t * MM_PANEL), sum[g][t], by, more,
                                                    own_scale, own_min, mins));
            }
        }
    }
}

static struct mm_row row_at(const struct mm_row *x, size_t t) {
    return (struct mm_row){ x->level + t * MM_SLAB, x->scale + t * MM_RUNS, x->sum + t * MM_RUNS };
}

/* Tokens from t on, `at_once` by `at_once`; where that ends. */
INLINE size_t multiply_by(int at_once, const struct mm_tile *tile, const struct mm_row *x, size_t t,
                          size_t tokens, int bits, int run, bool mins, float *sums) {
    for (; t + (size_t)at_once <= tokens; t += (size_t)at_once) {
        struct mm_row row = row_at(x, t);
        multiply_some(tile, VEC_GROUPS, &row, at_once, bits, run, mins, sums + t * MM_PANEL);
    }
    return t;
}

/* The combinations of bits, run and mins that occur; where sums are wide, bits makes no difference
 * and 4 serves for all. Two functions each, as compilers keep more in registers in small ones:
 * whole blocks of tokens, and the last few. */
#define MM_PRODUCTS                                                                                \
    MM_PRODUCT(4, 16, 0)                                                                           \
    MM_PRODUCT(4, 16, 1)                                                                           \
    MM_PRODUCT(4, 32, 0)                                                                           \
    MM_PRODUCT(4, 32, 1)                                                                           \
    MM_PRODUCT(5, 16, 0)                                                                           \
    MM_PRODUCT(5, 16, 1)                                                                           \
    MM_PRODUCT(5, 32, 1)                                                                           \
    MM_PRODUCT(6, 16, 0)                                                                           \
    MM_PRODUCT(8, 16, 0)                                                                           \
    MM_PRODUCT(8, 32, 0)

#define MM_PRODUCT(bits, run, mins)                                                                \
    static NOINLINE size_t many_##bits##_##run##_##mins(                                           \
        const struct mm_tile *tile, const struct mm_row *x, size_t tokens, float *sums) {          \
        return multiply_by(VEC_TOKENS, tile, x, 0, tokens, bits, run, mins, sums);                 \
    }                                                                                              \
    static NOINLINE void few_##bits##_##run##_##mins(const struct mm_tile *tile,                   \
                                                     const struct mm_row *x, size_t t,             \
                                                     size_t tokens, float *sums) {                 \
        UNROLL for (int n = VEC_TOKENS / 2; n > 0; n /= 2) t =                                     \
            multiply_by(n, tile, x, t, tokens, bits, run, mins, sums);                             \
    }
MM_PRODUCTS
#undef MM_PRODUCT

static void multiply(const struct mm_tile tiles[MM_GROUPS], const struct mm_row *x, unsigned run,
                     size_t tokens, float *sums) {
    const unsigned bits = VEC_NARROW ? tiles->bits : 4, mins = tiles->mins;
    const unsigned least = run < tiles->run ? run : tiles->run;
    for (int g = 0; g < MM_GROUPS; g += VEC_GROUPS) {
        float *to = sums + (size_t)g * PACK_ROWS;
#define MM_PRODUCT(bits_, run_, mins_)                                                             \
    if ((VEC_NARROW || (bits_) == 4) && bits == (bits_) && least == (run_) && mins == (mins_)) {   \
        size_t t = many_##bits_##_##run_##_##mins_(tiles + g, x, tokens, to);                      \
        if (t < tokens)                                                                            \
            few_##bits_##_##run_##_##mins_(tiles + g, x, t, tokens, to);                           \
    }
        MM_PRODUCTS
#undef MM_PRODUCT
    }
}

/* ---- floats --------------------------------------------------------------------------------- */

INLINE void multiply_some_floats(const struct mm_float_tile *tile, int groups, size_t count,
                                 const float *x, size_t k, int tokens, float *sums) {
    vf part[VEC_GROUPS][VEC_FLOAT_TOKENS];
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

INLINE size_t multiply_floats_by(int at_once, const struct mm_float_tile *tile, size_t count,
                                 const float *x, size_t k, size_t t, size_t tokens, float *sums) {
    for (; t + (size_t)at_once <= tokens; t += (size_t)at_once)
        multiply_some_floats(tile, VEC_GROUPS, count, x + t * k, k, at_once, sums + t * MM_PANEL);
    return t;
}

static void multiply_floats(const struct mm_float_tile tiles[MM_GROUPS], size_t count,
                            const float *x, size_t k, size_t tokens, float *sums) {
    for (int g = 0; g < MM_GROUPS; g += VEC_GROUPS) {
        const struct mm_float_tile *tile = tiles + g;
        float *to = sums + (size_t)g * PACK_ROWS;
        size_t t = multiply_floats_by(VEC_FLOAT_TOKENS, tile, count, x, k, 0, tokens, to);
        t = multiply_floats_by(4, tile, count, x, k, t, tokens, to);
        t = multiply_floats_by(2, tile, count, x, k, t, tokens, to);
        multiply_floats_by(1, tile, count, x, k, t, tokens, to);
    }
}

INLINE void turn(enum tensor_type type, const char *rows, size_t stride, size_t count,
                 struct mm_float_tile *tile) {
    size_t c = 0;
    for (; c + 16 <= count; c += 16) {
        vf v[PACK_ROWS];
        UNROLL for (size_t r = 0; r < PACK_ROWS; r++) /* the next slab */
            __builtin_prefetch(rows + r * stride + (MM_SLAB + c) * float_size(type), 0, 2);
        UNROLL for (size_t r = 0; r < PACK_ROWS; r++) v[r] =
            load_floats(type, rows + r * stride + c * float_size(type));
        vf_turn(v);
        UNROLL for (size_t r = 0; r < PACK_ROWS; r++) vf_store(tile->w[c + r], v[r]);
    }
    for (size_t r = 0; r < PACK_ROWS && c < count; r++) {
        float rest[16];
        quant_decoder(type)(rows + r * stride + c * float_size(type), rest, count - c);
        for (size_t i = 0; c + i < count; i++)
            tile->w[c + i][r] = rest[i];
    }
}

/* Prefetches the same columns of the next rows and, less far ahead, the next columns of these. */
INLINE void prefetch_rows(const char *rows, size_t stride, size_t bytes) {
    enum { COLUMNS = 512 };
    UNROLL for (size_t r = 0; r < 4; r++) for (size_t i = 0; i < bytes; i += LINE) {
        __builtin_prefetch(rows + (r + 4) * stride + i, 0, 2);
        __builtin_prefetch(rows + r * stride + COLUMNS + i);
    }
}

INLINE void dot_four(enum tensor_type type, const char *rows, size_t stride, size_t n,
                     const float *x, float *out) {
    enum { STEP = 32 };
    const size_t size = float_size(type);
    vf part[4];
    size_t i = 0;
    UNROLL for (int r = 0; r < 4; r++) part[r] = vf_set(0);
    for (; i + STEP <= n; i += STEP) {
        prefetch_rows(rows + i * size, stride, STEP * size);
        UNROLL for (size_t j = i; j < i + STEP; j += 16) {
            vf v = vf_load(x + j);
            UNROLL for (size_t r = 0; r < 4; r++) part[r] =
                vf_fma(load_floats(type, rows + r * stride + j * size), v, part[r]);
        }
    }
    for (size_t r = 0; r < 4; r++) {
        float w[STEP];
        out[r] = vf_total(part[r]);
        if (i < n)
            quant_decoder(type)(rows + r * stride + i * size, w, n - i);
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

static void unpack_floats(enum tensor_type type, const void *rows, size_t stride, size_t count,
                          struct mm_float_tile *tile) {
    if (type == TENSOR_TYPE_F16)
        turn(TENSOR_TYPE_F16, rows, stride, count, tile);
    else if (type == TENSOR_TYPE_BF16)
        turn(TENSOR_TYPE_BF16, rows, stride, count, tile);
    else
        turn(TENSOR_TYPE_F32, rows, stride, count, tile);
}

/* ---- activations ---------------------------------------------------------------------------- */

/* Sixteen elements whose largest magnitude, or that of their run, is `peak`. */
INLINE void quantize_run(const float *x, float peak, int8_t *level, float *scale, float *sum) {
    enum { LEVELS = 127 };
    /* Something that is not finite, or too small to divide by, must come out as what it is. */
    float by = peak > 1e-30f && peak <= FLT_MAX ? LEVELS / peak : 0;
    int32_t total = vec_quantize(x, by, level);
    *scale = by > 0 || peak <= 1e-30f ? peak / LEVELS : (float)NAN;
    *sum = *scale * (float)total;
}

/* The larger of two magnitudes; what is not a number is larger than all. */
INLINE float larger(float a, float b) {
    return a >= b || a != a ? a : b;
}

static void quantize(const float *x, size_t n, unsigned run, const struct mm_row *to) {
    for (size_t i = 0; i < n / MM_RUN; i += 2) {
        const float *at = x + i * MM_RUN;
        float peak[2] = { vec_peak(at), vec_peak(at + MM_RUN) };
        if (run == 32)
            peak[0] = peak[1] = larger(peak[0], peak[1]);
        for (size_t half = 0; half < 2; half++)
            quantize_run(at + half * MM_RUN, peak[half], to->level + (i + half) * MM_RUN,
                         to->scale + i + half, to->sum + i + half);
    }
}

#include "kernels/cpu/mm_rows.h"

#define MM_SET(name_)                                                                              \
    static const struct mm_set set = { .name = name_,                                              \
                                       .quantize = quantize,                                       \
                                       .dot = dot,                                                 \
                                       .dot_rows = dot_rows,                                       \
                                       .pack = pack,                                               \
                                       .unpack = unpack,                                           \
                                       .multiply = multiply,                                       \
                                       .dot_floats = dot_floats,                                   \
                                       .unpack_floats = unpack_floats,                             \
                                       .multiply_floats = multiply_floats }
