/* mm_walk.h - how the blocks of every packed type are walked over, written once over the vectors of
 * a vec_*.h; part of mm_panel.h, which says what for.
 *
 * One group of 16 rows is walked over, or two side by side, which then share the prepared
 * activations, or one with several tokens, which then share the unpacked weights: compilers hoist
 * what is written once per token here but does not depend on it. Parameters are constants wherever
 * this is inlined, so the choice costs nothing at run time. */

/* A step adds two products of a level and 127 at most. */
INLINE int steps_of(int bits) {
    return !VEC_NARROW || bits == 4 || bits == 8 ? 8 : bits == 5 ? 4 : 2;
}

INLINE bool is_split(int bits) {
    return VEC_NARROW && bits == 8;
}

enum { WALK_GROUPS = 2, WALK_TOKENS = 8 }; /* at most */

/* Sums of runs of 16 elements that are open, and the result. */
struct totals {
    vi part[8], high[8], wide[8];
    vf sum;
};

/* ---- scaling ---------------------------------------------------------------------------------
 *
 * The sum of a run's products becomes a float without an instruction that converts it: it is summed
 * up from the bits of MAGIC on, whose last bit is worth 1, so that the bits of the sum are those of
 * the float MAGIC + sum. A multiply-add then takes MAGIC away again and scales what is left:
 *
 *     (MAGIC + sum) * by - MAGIC * by = sum * by
 *
 * This is rounded once, if MAGIC * by is exact: `by`, the scale of the activations, loses its last
 * two bits. Levels that are too large by `zero` are taken care of by beginning with MAGIC - zero *
 * (sum of the run's activations). Sums stay below 2^21 (32 products of 255 and 127).
 *
 * Where sums are narrow (VEC_NARROW), MAGIC takes an addition of its own. It is worth that for
 * types with a `zero`, whose correction comes with it; the sums of the others are converted, which
 * gives the same bits. */

#define MAGIC 12582912.0f /* 1.5 * 2^23 */

INLINE void get_ready(const float *scale, const float *sum, int run, int zero, bool mins,
                      struct mm_ready *to) {
    const vf one = vf_set(1), own = vf_load(scale), by = vf_coarse(own);
    vf total = vf_load(sum);
    if (!mins) /* as a whole number again: sums of levels are below 2^12 */
        total = vf_fma(vf_fma(total, vf_inverse(own), vf_set(MAGIC)), one, vf_set(-MAGIC));
    if (run == 32)
        total = vf_pairs(total);
    vf_store(to->by, by);
    vf_store(to->less, vf_mul(by, vf_set(-MAGIC)));
    vf_store(to->more, mins ? total : vf_fnma(vf_set((float)zero), total, vf_set(MAGIC)));
}

INLINE bool is_converted(bool mins) {
    return VEC_NARROW && mins;
}

/* What the sums of run `at` begin with. */
INLINE vi begin_of(const struct mm_ready *r, size_t at, bool mins) {
    if (is_converted(mins))
        return vi_zero();
    return vi_bits(vf_set(mins ? MAGIC : r->more[at]));
}

/* total + a run's sums, with the scale of its activations and their sum (both from struct
 * mm_ready), and the scale and minimum of its weights. One token and many are added up by this, and
 * so give the same bits. */
INLINE vf add_run(vf total, vi sums, const struct mm_ready *r, size_t at, vf scale, vf min,
                  bool mins) {
    const vf by = vf_set(r->by[at]);
    const vf v = is_converted(mins) ? vf_mul(vf_words(sums), by)
                                    : vf_fma(vf_bits(sums), by, vf_set(r->less[at]));
    total = vf_fma(v, scale, total);
    return mins ? vf_fnma(vf_set(r->more[at]), min, total) : total;
}

/* ---- where levels go ------------------------------------------------------------------------ */

struct sink {
    /* constants wherever this is inlined */
    bool keep, mins;  /* unpack, else dot; whether there are minima */
    int groups, rows; /* of rows side by side; shared: so many tokens, and 1 */
    bool shared;
    int bits, zero;
    int run; /* dot: elements that share a scale of the activations */
    /* dot: this block's activations */
    const int8_t *level;
    const struct mm_ready *ready;
    int first; /* run of the slab that the block begins with */
    struct totals of[WALK_TOKENS];
    /* unpack: one group */
    struct mm_tile *tile;
    int quad, unit; /* of the tile, where this block begins */
};

#define EACH_GROUP(j) UNROLL for (int j = 0; j < k->groups; j++)
#define EACH_ROWS(j)  UNROLL for (int j = 0; j < k->rows; j++)

/* The rows and the activations that are multiplied for k->of[j]. */
INLINE int rows_of(const struct sink *k, int j) {
    return k->shared ? 0 : j;
}

INLINE int token_of(const struct sink *k, int j) {
    return k->shared ? j : 0;
}

/* Whether 32 elements are summed up as one part instead of two: several tokens leave no registers
 * for more. */
INLINE bool is_joined(const struct sink *k) {
    return k->shared && k->run == 32;
}

/* Whether the sums of a run have what they begin with from their first step on; else it is added to
 * them. */
INLINE bool is_begun(bool raised) {
    return !VEC_NARROW && !raised;
}

/* raised: levels are 16 times too large. */
INLINE void add_quad(struct sink *k, int j, int part, int quad, bool raised, vi low, vi high) {
    const int steps = steps_of(k->bits);
    struct totals *t = &k->of[j];
    vi x = vi_quad(k->level + token_of(k, j) * MM_SLAB + 4 * quad);
    if (is_joined(k))
        part &= ~1;
    if (is_begun(raised) && quad % (k->run / 4) == 0)
        t->part[part] = begin_of(k->ready + token_of(k, j), (size_t)(k->first + quad / 4), k->mins);
    t->part[part] = vi_step(t->part[part], low, x);
    if (is_split(k->bits))
        t->high[part] = vi_step(t->high[part], high, x);
    if (quad % steps != steps - 1 || steps >= 4)
        return;
    t->wide[part] = vi_add(t->wide[part], vi_words(t->part[part], 1));
    t->part[part] = vi_zero();
}

/* Levels of a quad of the block of group j; `part` tells runs apart that are open at the same time.
 */
INLINE void put_raised(struct sink *k, int j, int part, int quad, bool raised, vi levels) {
    vi high = levels;
    if (is_split(k->bits)) {
        high = vi_and(vi_right(levels, 4), 0x0f0f);
        levels = vi_and(levels, 0x0f0f);
    }
    if (!k->keep) {
        add_quad(k, j, part, quad, raised, levels, high);
        return;
    }
    vi_store(k->tile->level[k->quad + quad], levels);
    if (is_split(k->bits))
        vi_store(k->tile->high[k->quad + quad], high);
}

INLINE void put(struct sink *k, int j, int part, int quad, vi levels) {
    put_raised(k, j, part, quad, false, levels);
}

/* Where sums are wide, high nibbles are multiplied where they are: the sum of a run, 16 times too
 * large, is shifted instead of each of its quads. Several tokens have more sums than quads. */
INLINE bool stays_high(const struct sink *k) {
    return !VEC_NARROW && !k->keep && !k->shared;
}

INLINE void put_high(struct sink *k, int j, int part, int quad, vi w) {
    const bool raised = stays_high(k);
    put_raised(k, j, part, quad, raised,
               raised ? vi_and(w, 0xf0f0) : vi_and(vi_right(w, 4), 0x0f0f));
}

/* The sums of a run; the next one begins. */
INLINE vi take(struct sink *k, int j, int part) {
    const bool widened = steps_of(k->bits) < 4;
    struct totals *t = &k->of[j];
    vi sum = widened ? t->wide[part] : vi_words(t->part[part], 1);
    if (is_split(k->bits))
        sum = vi_add(sum, vi_words(t->high[part], 16));
    t->part[part] = t->high[part] = t->wide[part] = vi_zero();
    return sum;
}

/* The sums of levels that put_high() put, if they were. */
INLINE vi lowered(const struct sink *k, bool high, vi sum) {
    return high && stays_high(k) ? vi_sixteenth(sum) : sum;
}

/* Run `at` of the block. high: put_high() put its levels. */
INLINE void add(struct sink *k, int j, vi sums, bool high, int at, vf scale, vf min) {
    const size_t run = (size_t)(k->first + at);
    const struct mm_ready *ready = k->ready + token_of(k, j);
    if (!is_begun(high && stays_high(k)))
        sums = vi_add(sums, begin_of(ready, run, k->mins));
    k->of[j].sum = add_run(k->of[j].sum, sums, ready, run, scale, min, k->mins);
}

INLINE void keep_scale(struct sink *k, int run, vf scale, vf min) {
    vf_store(k->tile->scale[k->unit + run], scale);
    if (k->mins)
        vf_store(k->tile->min[k->unit + run], min);
}

/* The scale and the minimum of run `run` of the block, of 16 elements. */
INLINE void end_16(struct sink *k, int j, int part, int run, vf scale, vf min) {
    if (k->keep)
        keep_scale(k, run, scale, min);
    else
        add(k, j, take(k, j, part), false, run, scale, min);
}

/* Which of the two halves of 32 elements put_high() put. */
enum { HIGH_NONE, HIGH_SECOND, HIGH_BOTH };

/* The same for 32 elements, the first 16 in `part`, the others in `part` + 1. */
INLINE void end_32(struct sink *k, int j, int part, int high, int run, vf scale, vf min) {
    if (k->keep) {
        keep_scale(k, run, scale, min);
        return;
    }
    const bool both = high == HIGH_BOTH;
    vi first = take(k, j, part), second = take(k, j, part + 1);
    if (high == HIGH_SECOND)
        second = lowered(k, true, second);
    if (k->run == 32) {
        vi sum = is_joined(k) ? first : vi_add(first, second);
        add(k, j, lowered(k, both, sum), both, 2 * run, scale, min);
        return;
    }
    add(k, j, lowered(k, both, first), both, 2 * run, scale, min);
    add(k, j, lowered(k, both, second), high != HIGH_NONE, 2 * run + 1, scale, min);
}

#define NO_MIN vf_set(0)

/* ---- the types ------------------------------------------------------------------------------
 *
 * Sections are those of pack.def, at this block. */

struct block {
    const uint8_t *section[PACK_SECTIONS];
    size_t bytes;
    struct mm_ahead ahead;
};

enum { LINE = 64 };

/* Fetches a part of what is as far ahead of the blocks as is asked for. Parts are spread over the
 * walk: all lines of a large block at once would keep its own loads waiting. */
INLINE void fetch(const struct sink *k, const struct block *g, int part, int parts) {
    EACH_ROWS(j) {
        const size_t lines = (g[j].bytes + LINE - 1) / LINE;
        const size_t from = lines * (size_t)part / (size_t)parts * LINE;
        const size_t to = lines * (size_t)(part + 1) / (size_t)parts * LINE;
        const uint8_t *p = g[j].section[0];
        if (g[j].ahead.far)
            UNROLL for (size_t i = from; i < to; i += LINE)
                __builtin_prefetch(p + g[j].ahead.far + i, 0, 2);
        if (g[j].ahead.near)
            UNROLL for (size_t i = from; i < to; i += LINE)
                __builtin_prefetch(p + g[j].ahead.near + i);
    }
}

#define WORDS(j, i, word) vi_load(g[rows_of(k, j)].section[i] + 64 * (word))
#define BYTES(j, i, byte) vb_load(g[rows_of(k, j)].section[i] + 16 * (byte))
#define HALVES(j, i)      vf_halves(g[rows_of(k, j)].section[i])
#define NIBBLES(w, half)  vi_and((half) ? vi_right(w, 4) : (w), 0x0f0f)

/* Bits `from` and up of every byte at bit `to`, as far as the mask goes. */
INLINE vi move_bits(vi v, int from, int to, uint16_t mask) {
    return vi_and(from > to ? vi_right(v, from - to) : from < to ? vi_left(v, to - from) : v, mask);
}

/* 16 bytes per row: low nibbles are elements 0 to 15, high nibbles 16 to 31. */
INLINE void put_nibbles(struct sink *k, const struct block *g, int levels) {
    fetch(k, g, 0, 1);
    UNROLL for (int i = 0; i < 4; i++) EACH_GROUP(j) {
        vi w = WORDS(j, levels, i);
        put(k, j, 0, i, NIBBLES(w, 0));
        put_high(k, j, 1, i + 4, w);
    }
}

INLINE void walk_q4_0(struct sink *k, const struct block *g) {
    put_nibbles(k, g, PACK_Q4_0_LEVELS);
    EACH_GROUP(j) end_32(k, j, 0, HIGH_SECOND, 0, HALVES(j, PACK_Q4_0_SCALE), NO_MIN);
}

INLINE void walk_q4_1(struct sink *k, const struct block *g) {
    put_nibbles(k, g, PACK_Q4_1_LEVELS);
    EACH_GROUP(j)
    end_32(k, j, 0, HIGH_SECOND, 0, HALVES(j, PACK_Q4_1_SCALE),
           vf_mul(HALVES(j, PACK_Q4_1_MIN), vf_set(-1)));
}

/* The fifth bits of quad q are bits q of the bytes of the section `fifth`. */
INLINE void put_fives(struct sink *k, const struct block *g, int levels, int fifth) {
    fetch(k, g, 0, 1);
    UNROLL for (int i = 0; i < 4; i++) EACH_GROUP(j) {
        vi w = WORDS(j, levels, i), high = WORDS(j, fifth, 0);
        UNROLL for (int half = 0; half < 2; half++) {
            int quad = i + 4 * half;
            put(k, j, half, quad, vi_or(NIBBLES(w, half), move_bits(high, quad, 4, 0x1010)));
        }
    }
}

INLINE void walk_q5_0(struct sink *k, const struct block *g) {
    put_fives(k, g, PACK_Q5_0_LEVELS, PACK_Q5_0_HIGH);
    EACH_GROUP(j) end_32(k, j, 0, HIGH_NONE, 0, HALVES(j, PACK_Q5_0_SCALE), NO_MIN);
}

INLINE void walk_q5_1(struct sink *k, const struct block *g) {
    put_fives(k, g, PACK_Q5_1_LEVELS, PACK_Q5_1_HIGH);
    EACH_GROUP(j)
    end_32(k, j, 0, HIGH_NONE, 0, HALVES(j, PACK_Q5_1_SCALE),
           vf_mul(HALVES(j, PACK_Q5_1_MIN), vf_set(-1)));
}

INLINE void walk_q8_0(struct sink *k, const struct block *g) {
    fetch(k, g, 0, 1);
    UNROLL for (int u = 0; u < 8; u++) EACH_GROUP(j)
        put(k, j, u / 4, u, vi_plus_128(WORDS(j, PACK_Q8_0_LEVELS, u)));
    EACH_GROUP(j) end_32(k, j, 0, HIGH_NONE, 0, HALVES(j, PACK_Q8_0_SCALE), NO_MIN);
}

INLINE void put_iq4(struct sink *k, const struct block *g, int levels, int word, int quad) {
    UNROLL for (int i = 0; i < 4; i++) EACH_GROUP(j) {
        vi w = WORDS(j, levels, word + i);
        UNROLL for (int half = 0; half < 2; half++) {
            vi values = vi_lookup(NIBBLES(w, half), quant_iq4_values);
            put(k, j, half, quad + i + 4 * half, vi_plus_128(values));
        }
    }
}

INLINE void walk_iq4_nl(struct sink *k, const struct block *g) {
    fetch(k, g, 0, 1);
    put_iq4(k, g, PACK_IQ4_NL_LEVELS, 0, 0);
    EACH_GROUP(j) end_32(k, j, 0, HIGH_NONE, 0, HALVES(j, PACK_IQ4_NL_SCALE), NO_MIN);
}

/* 6-bit scales of Q3_K and IQ4_XS: low nibbles, two per byte, then high bits, four per byte from
 * byte `high` on; they are too large by 32. */
INLINE vf six_bit_scale(vb low, vb high, int unit, vf d) {
    vb s = vb_join(vb_bits(low, unit % 2 * 4, 4), vb_bits(high, unit % 4 * 2, 2));
    return vf_fnma(vf_set(32), d, vf_mul(vf_bytes(s), d));
}

INLINE void walk_iq4_xs(struct sink *k, const struct block *g) {
    const int scales = PACK_IQ4_XS_SCALES;
    UNROLL for (int s = 0; s < 8; s++) {
        fetch(k, g, s, 8);
        put_iq4(k, g, PACK_IQ4_XS_LEVELS, 4 * s, 8 * s);
        EACH_GROUP(j)
        end_32(k, j, 0, HIGH_NONE, s,
               six_bit_scale(BYTES(j, scales, s / 2), BYTES(j, scales, 4 + s / 4), s,
                             HALVES(j, PACK_IQ4_XS_SCALE)),
               NO_MIN);
    }
}

/* The scales and minima of a block of Q4_K or Q5_K, a byte each. */
struct k4 {
    _Alignas(64) uint8_t scale[8][PACK_ROWS], min[8][PACK_ROWS];
};

/* Four sub-blocks at a time: their low nibbles, and what the high bits are in: of a sub-block with
 * an even number in the low nibbles of a byte, of the next one in the high nibbles. */
INLINE void find_k4(const uint8_t *scales, struct k4 *to) {
    vi high = vi_load(scales + 8 * PACK_ROWS), next = vi_right(high, 4);
    UNROLL for (int half = 0; half < 2; half++) {
        vi low = vi_load(scales + 4 * half * PACK_ROWS), more = vi_alternate(high, next, half);
        vi_store(to->scale[4 * half], vi_or(vi_and(low, 0x0f0f), move_bits(more, 0, 4, 0x3030)));
        vi_store(to->min[4 * half],
                 vi_or(vi_and(vi_right(low, 4), 0x0f0f), move_bits(more, 2, 4, 0x3030)));
    }
    __asm__("" : "+m"(*to)); /* reading them back is cheaper than taking registers apart */
}

INLINE void end_k4(struct sink *k, int j, const struct k4 *s4, int part, int high, int s, vf d,
                   vf dmin) {
    end_32(k, j, part, high, s, vf_mul(vf_bytes(vb_load(s4->scale[s])), d),
           vf_mul(vf_bytes(vb_load(s4->min[s])), dmin));
}

/* Every 32 bytes are two sub-blocks: low and high nibbles. */
INLINE void walk_q4_k(struct sink *k, const struct block *g) {
    struct k4 s4[WALK_GROUPS];
    EACH_ROWS(j) find_k4(g[j].section[PACK_Q4_K_SCALES], &s4[j]);
    UNROLL for (int s = 0; s < 8; s += 2) {
        fetch(k, g, s, 8);
        fetch(k, g, s + 1, 8);
        UNROLL for (int u = 0; u < 8; u++) EACH_GROUP(j) {
            vi w = WORDS(j, PACK_Q4_K_LEVELS, 4 * s + u);
            put(k, j, u / 4, 8 * s + u, NIBBLES(w, 0));
            put_high(k, j, 2 + u / 4, 8 * s + 8 + u, w);
        }
        EACH_GROUP(j) {
            vf d = HALVES(j, PACK_Q4_K_SCALE), dmin = HALVES(j, PACK_Q4_K_MIN);
            end_k4(k, j, &s4[rows_of(k, j)], 0, HIGH_NONE, s, d, dmin);
            end_k4(k, j, &s4[rows_of(k, j)], 2, HIGH_BOTH, s + 1, d, dmin);
        }
    }
}

INLINE void walk_q5_k(struct sink *k, const struct block *g) {
    struct k4 s4[WALK_GROUPS];
    EACH_ROWS(j) find_k4(g[j].section[PACK_Q5_K_SCALES], &s4[j]);
    UNROLL for (int s = 0; s < 8; s += 2) {
        fetch(k, g, s, 8);
        fetch(k, g, s + 1, 8);
        UNROLL for (int u = 0; u < 8; u++) EACH_GROUP(j) {
            vi w = WORDS(j, PACK_Q5_K_LEVELS, 4 * s + u), high = WORDS(j, PACK_Q5_K_HIGH, u);
            UNROLL for (int i = 0; i < 2; i++)
                put(k, j, 2 * i + u / 4, 8 * (s + i) + u,
                    vi_or(NIBBLES(w, i), move_bits(high, s + i, 4, 0x1010)));
        }
        EACH_GROUP(j) {
            vf d = HALVES(j, PACK_Q5_K_SCALE), dmin = HALVES(j, PACK_Q5_K_MIN);
            end_k4(k, j, &s4[rows_of(k, j)], 0, HIGH_NONE, s, d, dmin);
            end_k4(k, j, &s4[rows_of(k, j)], 2, HIGH_NONE, s + 1, d, dmin);
        }
    }
}

/* The types with a scale for 16 elements have four runs of 32 in a half of the block, in the bits
 * of the same bytes; words 0 to 3 have the first 16 of each, words 4 to 7 the others. */
#define EACH_WORD(half, u) UNROLL for (int u = 0; u < 8; u++, fetch(k, g, 8 * (half) + u - 1, 16))
#define EACH_RUN(i)        UNROLL for (int i = 0; i < 8; i++)
#define PUT(half, i, u, v) put(k, j, 2 * (i) + (u) / 4, 8 * (4 * (half) + (i)) + (u), v)

INLINE void walk_q2_k(struct sink *k, const struct block *g) {
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(half, u) EACH_GROUP(j) {
            vi w = WORDS(j, PACK_Q2_K_LEVELS, 8 * half + u);
            UNROLL for (int i = 0; i < 4; i++) PUT(half, i, u, vi_and(vi_right(w, 2 * i), 0x0303));
        }
        EACH_RUN(i) EACH_GROUP(j) {
            vf d = HALVES(j, PACK_Q2_K_SCALE), dmin = HALVES(j, PACK_Q2_K_MIN);
            vb s = BYTES(j, PACK_Q2_K_SCALES, 8 * half + i);
            end_16(k, j, i, 8 * half + i, vf_mul(vf_bytes(vb_bits(s, 0, 4)), d),
                   vf_mul(vf_bytes(vb_bits(s, 4, 4)), dmin));
        }
    }
}

INLINE void walk_q3_k(struct sink *k, const struct block *g) {
    const int scales = PACK_Q3_K_SCALES;
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(half, u) EACH_GROUP(j) {
            vi w = WORDS(j, PACK_Q3_K_LEVELS, 8 * half + u), high = WORDS(j, PACK_Q3_K_HIGH, u);
            UNROLL for (int i = 0; i < 4; i++) PUT(half, i, u,
                                                   vi_or(vi_and(vi_right(w, 2 * i), 0x0303),
                                                         move_bits(high, 4 * half + i, 2, 0x0404)));
        }
        EACH_RUN(i) EACH_GROUP(j) {
            int run = 8 * half + i;
            end_16(k, j, i, run,
                   six_bit_scale(BYTES(j, scales, run / 2), BYTES(j, scales, 8 + run / 4), run,
                                 HALVES(j, PACK_Q3_K_SCALE)),
                   NO_MIN);
        }
    }
}

INLINE void walk_q6_k(struct sink *k, const struct block *g) {
    UNROLL for (int half = 0; half < 2; half++) {
        EACH_WORD(half, u) EACH_GROUP(j) {
            vi high = WORDS(j, PACK_Q6_K_HIGH, 8 * half + u);
            vi w[2] = { WORDS(j, PACK_Q6_K_LEVELS, 16 * half + u),
                        WORDS(j, PACK_Q6_K_LEVELS, 16 * half + 8 + u) };
            UNROLL for (int i = 0; i < 4; i++)
                PUT(half, i, u, vi_or(NIBBLES(w[i % 2], i / 2), move_bits(high, 2 * i, 4, 0x3030)));
        }
        EACH_RUN(i)
        EACH_GROUP(j)
        end_16(k, j, i, 8 * half + i,
               vf_mul(vf_signed_bytes(BYTES(j, PACK_Q6_K_SCALES, 8 * half + i)),
                      HALVES(j, PACK_Q6_K_SCALE)),
               NO_MIN);
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

INLINE struct block block_at(const uint8_t *p, const struct pack_layout *layout,
                             struct mm_ahead ahead) {
    struct block g = { .bytes = layout->bytes, .ahead = ahead };
    UNROLL for (int i = 0; i < PACK_SECTIONS; i++) g.section[i] = p + layout->at[i];
    return g;
}
