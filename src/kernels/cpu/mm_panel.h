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

#include "kernels/cpu/mm_walk.h"

#define NOINLINE __attribute__((noinline))

/* Sums continue from `sums`; NULL: they begin. */
INLINE void begin(struct sink *k, const float *sums) {
    EACH_GROUP(j) {
        k->of[j].sum = sums ? vf_load(sums + j * PACK_ROWS) : vf_set(0);
        UNROLL for (int i = 0; i < 8; i++) k->of[j].part[i] = k->of[j].high[i] = k->of[j].wide[i] =
            vi_zero();
    }
}

/* The activations that block b of a row is multiplied with; blocks have `length` elements, and the
 * slabs of `tokens` tokens lie side by side. */
INLINE void at_block(struct sink *k, const int8_t *x, const struct mm_ready *ready, size_t tokens,
                     size_t b, size_t length) {
    const size_t at = b * length, slab = at / MM_SLAB * tokens;
    k->level = x + slab * MM_SLAB + at % MM_SLAB;
    k->ready = ready + slab;
    k->first = (int)(at % MM_SLAB / MM_RUN);
}

/* Whether blocks have 256 elements, so that activations usually have a scale for 32. */
#define IS_LONG(type) (pack_layout(TENSOR_TYPE_##type).bytes >= PACK_ROWS * 256 * 2 / 8)

/* Whether several tokens can share the weights of a type that has a scale for `run` elements: types
 * with one for 16 have too many runs open at a time. */
#define IS_SHARED(run) (VEC_SHARES && (run) == 32)

#define MM_TYPE(type, walk, run_, bits_, zero_, mins_)                                             \
    INLINE void dot_run_##type(int groups, bool shared, const uint8_t *p, size_t apart,            \
                               size_t blocks, size_t length, int run, const int8_t *x,             \
                               const struct mm_ready *ready, size_t tokens, struct mm_ahead ahead, \
                               bool more, float *out) {                                            \
        const struct pack_layout layout = pack_layout(TENSOR_TYPE_##type);                         \
        struct sink sink = { .mins = (mins_),                                                      \
                             .groups = groups,                                                     \
                             .rows = shared ? 1 : groups,                                          \
                             .shared = shared,                                                     \
                             .bits = (bits_),                                                      \
                             .zero = (zero_),                                                      \
                             .run = run },                                                         \
                    *k = &sink;                                                                    \
        begin(k, more ? out : NULL);                                                               \
        for (size_t b = 0; b < blocks; b++, p += layout.bytes) {                                   \
            struct block g[WALK_GROUPS];                                                           \
            at_block(k, x, ready, tokens, b, length);                                              \
            EACH_ROWS(j) g[j] = block_at(p + (size_t)j * apart, &layout, ahead);                   \
            walk(k, g);                                                                            \
        }                                                                                          \
        EACH_GROUP(j) vf_store(out + j * PACK_ROWS, k->of[j].sum);                                 \
    }                                                                                              \
    static void dot_##type(const uint8_t *p, size_t blocks, size_t length, unsigned run,           \
                           const int8_t *x, const struct mm_ready *ready, struct mm_ahead ahead,   \
                           bool more, float *out) {                                                \
        if (run == 32 && (run_) == 32)                                                             \
            dot_run_##type(1, false, p, 0, blocks, length, 32, x, ready, 1, ahead, more, out);     \
        else                                                                                       \
            dot_run_##type(1, false, p, 0, blocks, length, 16, x, ready, 1, ahead, more, out);     \
    }                                                                                              \
    static void dot_pair_##type(const uint8_t *p, size_t apart, size_t blocks, size_t length,      \
                                unsigned run, const int8_t *x, const struct mm_ready *ready,       \
                                struct mm_ahead ahead, float *out) {                               \
        const int usual = IS_LONG(type) && (run_) == 32 ? 32 : 16;                                 \
        if (VEC_GROUPS == 2 && (run == 32 && (run_) == 32 ? 32 : 16) == usual) {                   \
            dot_run_##type(VEC_GROUPS, false, p, apart, blocks, length, usual, x, ready, 1, ahead, \
                           false, out);                                                            \
            return;                                                                                \
        }                                                                                          \
        dot_##type(p, blocks, length, run, x, ready, ahead, false, out);                           \
        dot_##type(p + apart, blocks, length, run, x, ready, ahead, false, out + PACK_ROWS);       \
    }                                                                                              \
    /* An odd last token comes with the one before it, which is done twice. */                     \
    static bool dot_few_##type(const uint8_t *p, size_t blocks, size_t length, unsigned run,       \
                               const int8_t *x, const struct mm_ready *ready, size_t tokens,       \
                               struct mm_ahead ahead, float *out) {                                \
        const int usual = IS_LONG(type) ? 32 : 16;                                                 \
        if (!IS_SHARED(run_) || run != (unsigned)usual)                                            \
            return false;                                                                          \
        size_t t = 0;                                                                              \
        UNROLL for (int some = WALK_TOKENS; some > 1; some /= 2) {                                 \
            for (; t + (size_t)(some > 2 ? some : 1) <= tokens; t += (size_t)some) {               \
                const size_t at = t + (size_t)some <= tokens ? t : tokens - (size_t)some;          \
                dot_run_##type(some, true, p, 0, blocks, length, usual, x + at * MM_SLAB,          \
                               ready + at, tokens, ahead, false, out + at * PACK_ROWS);            \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static void unpack_##type(const uint8_t *p, size_t blocks, size_t length,                      \
                              struct mm_ahead ahead, struct mm_tile *t) {                          \
        const struct pack_layout layout = pack_layout(TENSOR_TYPE_##type);                         \
        struct sink k = {                                                                          \
            .keep = true, .mins = (mins_), .groups = 1, .rows = 1, .bits = (bits_), .tile = t      \
        };                                                                                         \
        for (size_t b = 0; b < blocks; b++, p += layout.bytes) {                                   \
            const struct block g = block_at(p, &layout, ahead);                                    \
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

static void prepare(enum tensor_type type, const struct mm_row *x, size_t slabs, unsigned run,
                    struct mm_ready *to) {
    int zero = 0, own = 16, mins = 0;
    switch (type) {
#define MM_TYPE(type, walk, run_, bits_, zero_, mins_)                                             \
    case TENSOR_TYPE_##type:                                                                       \
        zero = (zero_);                                                                            \
        own = (run_);                                                                              \
        mins = (mins_);                                                                            \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        return;
    }
    const int least = run == 32 && own == 32 ? 32 : 16;
    for (size_t i = 0; i < slabs; i++)
        get_ready(x->scale + i * MM_RUNS, x->sum + i * MM_RUNS, least, zero, mins, to + i);
}

/* Whole slabs of a packed group, added to out if there is more of the row before them. */
static NOINLINE void dot_slabs(enum tensor_type type, const void *group, size_t n, const int8_t *x,
                               const struct mm_ready *ready, unsigned run, struct mm_ahead ahead,
                               bool more, float out[PACK_ROWS]) {
    const size_t length = tensor_type_find(type)->block_elements;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        dot_##type(group, n / length, length, run, x, ready, ahead, more, out);                    \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

static void dot(enum tensor_type type, const void *group, size_t n, const int8_t *x,
                const struct mm_ready *ready, unsigned run, struct mm_ahead ahead,
                float out[PACK_ROWS]) {
    dot_slabs(type, group, n, x, ready, run, ahead, false, out);
}

static void dot_pair(enum tensor_type type, const void *groups, size_t n, const int8_t *x,
                     const struct mm_ready *ready, unsigned run, struct mm_ahead ahead,
                     float out[MM_PANEL]) {
    const struct tensor_type_info *t = tensor_type_find(type);
    const size_t length = t->block_elements, blocks = n / length;
    const size_t apart = blocks * t->block_bytes * PACK_ROWS;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        dot_pair_##type(groups, apart, blocks, length, run, x, ready, ahead, out);                 \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

static bool dot_few(enum tensor_type type, const void *group, size_t n, const int8_t *x,
                    const struct mm_ready *ready, unsigned run, size_t tokens,
                    struct mm_ahead ahead, float *out) {
    const size_t length = tensor_type_find(type)->block_elements;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        return dot_few_##type(group, n / length, length, run, x, ready, tokens, ahead, out);
        MM_TYPES
#undef MM_TYPE
    default:
        return false;
    }
}

static void unpack(enum tensor_type type, const void *group, size_t at, size_t count,
                   struct mm_ahead ahead, struct mm_tile *tile) {
    const struct tensor_type_info *t = tensor_type_find(type);
    const uint8_t *p = (const uint8_t *)group + at / t->block_elements * t->block_bytes * PACK_ROWS;
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        unpack_##type(p, count / t->block_elements, t->block_elements, ahead, tile);               \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

/* ---- many tokens ---------------------------------------------------------------------------- */

typedef vi sums_of_run[VEC_GROUPS][VEC_TOKENS];

#define EACH_SUM(g, t)                                                                             \
    UNROLL for (int g = 0; g < groups; g++) UNROLL for (int t = 0; t < tokens; t++)

/* Adds the products of quads [from, from + count) of tiles to sums, in one piece. */
INLINE void step_over(const struct mm_tile *tile, bool high, int groups, const int8_t *level,
                      int tokens, size_t from, int count, sums_of_run sum) {
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

/* Adds a run of `quads` quads from `from` on, as words: of the levels or of their high bits. */
INLINE void sum_run(const struct mm_tile *tile, bool high, int bits, int groups,
                    const int8_t *level, int tokens, size_t from, int quads, sums_of_run sum) {
    if (!VEC_NARROW) {
        step_over(tile, high, groups, level, tokens, from, quads, sum);
        return;
    }
    const int steps = steps_of(bits) < quads ? steps_of(bits) : quads;
    for (int q = 0; q < quads; q += steps) {
        sums_of_run piece;
        EACH_SUM(g, t) piece[g][t] = vi_zero();
        step_over(tile, high, groups, level + 4 * q, tokens, from + (size_t)q, steps, piece);
        EACH_SUM(g, t) sum[g][t] = vi_add(sum[g][t], vi_words(piece[g][t], high ? 16 : 1));
    }
}

/* Where the sums of a tile's rows with a token are kept between the slabs. */
#define SUM_AT(g, t) (sums + (t)*MM_PANEL + (g)*PACK_ROWS)

/* The sums of a slab go where they are wanted: `out` is NULL, or where those of the first token and
 * group are. */
INLINE void end_sum(vf total, float *at, float *out, bool added) {
    if (!out)
        vf_store(at, total);
    else
        vf_store(out, added ? vf_fma(total, vf_set(1), vf_load(out)) : total);
}

/* `groups` tiles by `tokens` rows of activations, run by run; all of these are constants where this
 * is inlined, so that the sums of a run, and those of all runs where there are registers enough
 * (VEC_HOLDS), stay in registers. */
INLINE void multiply_some(const struct mm_tile *tile, int groups, const int8_t *x,
                          const struct mm_ready *ready, int tokens, int bits, int run, bool mins,
                          const struct mm_flow *flow, float *out, float *restrict sums) {
    const unsigned halves = run == 16 && tile->run == 32; /* of the runs of the weights */
    vf total[VEC_GROUPS][VEC_TOKENS];
    if (flow->first)
        EACH_SUM(g, t) total[g][t] = vf_set(0);
    else
        EACH_SUM(g, t) total[g][t] = vf_load(SUM_AT(g, t));
    if (!VEC_HOLDS && flow->first)
        EACH_SUM(g, t) vf_store(SUM_AT(g, t), total[g][t]);
    for (unsigned r = 0; r < tile->count / (unsigned)run; r++) {
        const size_t from = (size_t)r * (unsigned)run, own = r >> halves;
        sums_of_run sum;
        EACH_SUM(g, t) sum[g][t] = begin_of(&ready[t], from / MM_RUN, mins);
        sum_run(tile, false, bits, groups, x + from, tokens, from / 4, run / 4, sum);
        if (is_split(bits))
            sum_run(tile, true, bits, groups, x + from, tokens, from / 4, run / 4, sum);
        UNROLL for (int g = 0; g < groups; g++) {
            vf scale = vf_load(tile[g].scale[own]), min = vf_load(tile[g].min[own]);
            UNROLL for (int t = 0; t < tokens; t++) {
                vf so_far = VEC_HOLDS ? total[g][t] : vf_load(SUM_AT(g, t));
                total[g][t] =
                    add_run(so_far, sum[g][t], &ready[t], from / MM_RUN, scale, min, mins);
                if (!VEC_HOLDS)
                    vf_store(SUM_AT(g, t), total[g][t]);
            }
        }
    }
    if (!VEC_HOLDS && !out)
        return;
    EACH_SUM(g, t) {
        const vf all = VEC_HOLDS ? total[g][t] : vf_load(SUM_AT(g, t));
        end_sum(all, SUM_AT(g, t),
                out ? out + (size_t)t * flow->out_stride + (size_t)g * PACK_ROWS : NULL,
                flow->added);
    }
}

/* Prefetches the share of `at_once` tokens from t on. */
INLINE void fetch_share(const struct mm_flow *flow, int groups, size_t t, size_t at_once,
                        size_t tokens) {
    const size_t from = flow->fetch_bytes * t / tokens,
                 to = flow->fetch_bytes * (t + at_once) / tokens;
    for (size_t i = (from + LINE - 1) / LINE * LINE; i < to; i += LINE)
        UNROLL for (int g = 0; g < groups; g++) __builtin_prefetch(flow->fetch[g] + i, 0, 2);
}

/* Multiplies tokens from t on, `at_once` at a time; returns where that ends. */
INLINE size_t multiply_by(int at_once, const struct mm_tile *tile, const int8_t *x,
                          const struct mm_ready *ready, size_t t, size_t tokens, int bits, int run,
                          bool mins, const struct mm_flow *flow, float *sums) {
    for (; t + (size_t)at_once <= tokens; t += (size_t)at_once) {
        fetch_share(flow, VEC_GROUPS, t, (size_t)at_once, tokens);
        multiply_some(tile, VEC_GROUPS, x + t * MM_SLAB, ready + t, at_once, bits, run, mins, flow,
                      flow->out ? flow->out + t * flow->out_stride : NULL, sums + t * MM_PANEL);
    }
    return t;
}

/* Tokens that are multiplied side by side. */
INLINE int tokens_of(int bits) {
    return is_split(bits) ? VEC_SPLIT : VEC_TOKENS;
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
        const struct mm_tile *tile, const int8_t *x, const struct mm_ready *ready, size_t tokens,  \
        const struct mm_flow *flow, float *sums) {                                                 \
        return multiply_by(tokens_of(bits), tile, x, ready, 0, tokens, bits, run, mins, flow,      \
                           sums);                                                                  \
    }                                                                                              \
    static NOINLINE void few_##bits##_##run##_##mins(                                              \
        const struct mm_tile *tile, const int8_t *x, const struct mm_ready *ready, size_t t,       \
        size_t tokens, const struct mm_flow *flow, float *sums) {                                  \
        UNROLL for (int n = VEC_FEW; n > 0; n /= 2) t =                                            \
            multiply_by(n, tile, x, ready, t, tokens, bits, run, mins, flow, sums);                \
    }
MM_PRODUCTS
#undef MM_PRODUCT

static void multiply(const struct mm_tile tiles[MM_GROUPS], const int8_t *x,
                     const struct mm_ready *ready, unsigned run, size_t tokens,
                     const struct mm_flow *all, float *sums) {
    const unsigned bits = VEC_NARROW ? tiles->bits : 4, mins = tiles->mins;
    const unsigned least = run < tiles->run ? run : tiles->run;
    for (int g = 0; g < MM_GROUPS; g += VEC_GROUPS) {
        float *to = sums + (size_t)g * PACK_ROWS;
        struct mm_flow flow = *all;
        flow.out = all->out ? all->out + (size_t)g * PACK_ROWS : NULL;
        for (int i = 0; i < VEC_GROUPS; i++)
            flow.fetch[i] = all->fetch[g + i];
#define MM_PRODUCT(bits_, run_, mins_)                                                             \
    if ((VEC_NARROW || (bits_) == 4) && bits == (bits_) && least == (run_) && mins == (mins_)) {   \
        size_t t = many_##bits_##_##run_##_##mins_(tiles + g, x, ready, tokens, &flow, to);        \
        if (t < tokens)                                                                            \
            few_##bits_##_##run_##_##mins_(tiles + g, x, ready, t, tokens, &flow, to);             \
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
            UNROLL for (int g = 0; g < groups; g++) part[g][t] = vf_mla(w[g], v, part[g][t]);
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

/* Prefetches the same columns of the next `count` rows and, less far ahead, the next columns of
 * these. */
INLINE void prefetch_rows(const char *rows, size_t stride, int count, size_t bytes) {
    enum { COLUMNS = 512 };
    UNROLL for (size_t r = 0; r < (size_t)count; r++) for (size_t i = 0; i < bytes; i += LINE) {
        __builtin_prefetch(rows + (r + (size_t)count) * stride + i, 0, 2);
        __builtin_prefetch(rows + r * stride + COLUMNS + i);
    }
}

/* Prefetches `bytes` of each of `count` rows. */
INLINE void prefetch_ahead(const char *rows, size_t stride, int count, size_t bytes) {
    UNROLL for (size_t r = 0; r < (size_t)count; r++) for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(rows + r * stride + i, 0, 2);
}

enum { DOT_STEP = 32, DOT_ROWS = 4 }; /* columns and rows that are multiplied at once, at most */

/* Adds to part, which is [row][MM_FEW tokens][16], the products of `count` rows and `tokens`
 * tokens, lane by lane, in columns [0, n), a multiple of DOT_STEP. Rows of x lie `apart` floats
 * apart. Each token and row is summed up in the same order, whatever goes beside it. What lies
 * `far` bytes ahead is fetched; 0: what follows in these rows and in the next ones. */
INLINE void add_products(enum tensor_type type, const char *rows, size_t stride, int count,
                         size_t far, size_t n, const float *x, size_t apart, int tokens,
                         float *part) {
    const size_t size = float_size(type);
    vf sum[DOT_ROWS][VEC_DOT_TOKENS];
    UNROLL for (int r = 0; r < count; r++) UNROLL for (int t = 0; t < tokens; t++) sum[r][t] =
        vf_load(part + (r * MM_FEW + t) * 16);
    for (size_t i = 0; i < n; i += DOT_STEP) {
        if (far)
            prefetch_ahead(rows + i * size + far, stride, count, DOT_STEP * size);
        else
            prefetch_rows(rows + i * size, stride, count, DOT_STEP * size);
        UNROLL for (size_t j = i; j < i + DOT_STEP; j += 16) {
            vf v[VEC_DOT_TOKENS];
            UNROLL for (int t = 0; t < tokens; t++) v[t] = vf_load(x + (size_t)t * apart + j);
            UNROLL for (size_t r = 0; r < (size_t)count; r++) {
                vf w = load_floats(type, rows + r * stride + j * size);
                UNROLL for (int t = 0; t < tokens; t++) sum[r][t] = vf_mla(w, v[t], sum[r][t]);
            }
        }
    }
    UNROLL for (int r = 0; r < count; r++) UNROLL for (int t = 0; t < tokens; t++)
        vf_store(part + (r * MM_FEW + t) * 16, sum[r][t]);
}

/* out[t * PACK_ROWS + r]: the lanes of the sums added up, and the columns from `from` on. */
INLINE void end_products(enum tensor_type type, const char *row, size_t from, size_t n,
                         const float *x, const float *part, size_t tokens, float *out) {
    float w[DOT_STEP];
    if (from < n)
        quant_decoder(type)(row + from * float_size(type), w, n - from);
    for (size_t t = 0; t < tokens; t++) {
        float total = vf_total(vf_load(part + t * 16));
        for (size_t j = 0; from + j < n; j++)
            total += w[j] * x[t * n + from + j];
        out[t * PACK_ROWS] = total;
    }
}

/* Adds the products of PACK_ROWS rows and one token to part, `count` rows at once. */
INLINE void add_rows_of_one(enum tensor_type type, const char *rows, size_t stride, int count,
                            size_t far, size_t n, const float *x,
                            float part[PACK_ROWS][MM_FEW * 16]) {
    for (size_t r = 0; r < PACK_ROWS; r += (size_t)count)
        add_products(type, rows + r * stride, stride, count, far, n, x, n, 1, part[r]);
}

INLINE void add_one(enum tensor_type type, const char *rows, size_t stride, struct mm_stream by,
                    size_t n, const float *x, float part[PACK_ROWS][MM_FEW * 16]) {
    if (by.rows == 1)
        add_rows_of_one(type, rows, stride, 1, by.far, n, x, part);
    else if (by.rows == 2)
        add_rows_of_one(type, rows, stride, 2, by.far, n, x, part);
    else
        add_rows_of_one(type, rows, stride, DOT_ROWS, by.far, n, x, part);
}

/* Columns [0, whole) of several tokens. They go in blocks: those of all tokens stay in the first
 * cache while all rows are multiplied with them. */
INLINE void add_few(enum tensor_type type, const char *rows, size_t stride, size_t whole,
                    const float *x, size_t apart, size_t tokens,
                    float part[PACK_ROWS][MM_FEW * 16]) {
    enum { COLUMNS = 512 };
    for (size_t at = 0; at < whole; at += COLUMNS)
        for (size_t r = 0; r < PACK_ROWS; r += DOT_ROWS) {
            const char *p = rows + r * stride + at * float_size(type);
            const size_t columns = whole - at < COLUMNS ? whole - at : COLUMNS;
            size_t t = 0;
            UNROLL for (int some = VEC_DOT_TOKENS; some > 0;
                        some /= 2) for (; t + (size_t)some <= tokens; t += (size_t)some)
                add_products(type, p, stride, DOT_ROWS, 0, columns, x + t * apart + at, apart, some,
                             part[r] + t * 16);
        }
}

INLINE void dot_few_floats(enum tensor_type type, const char *rows, size_t stride, size_t n,
                           const float *x, size_t tokens, struct mm_stream by, float *out) {
    const size_t whole = n - n % DOT_STEP;
    float part[PACK_ROWS][MM_FEW * 16];
    for (size_t r = 0; r < PACK_ROWS; r++)
        memset(part[r], 0, tokens * 16 * sizeof part[r][0]);
    if (tokens == 1)
        add_one(type, rows, stride, by, whole, x, part);
    else
        add_few(type, rows, stride, whole, x, n, tokens, part);
    for (size_t r = 0; r < PACK_ROWS; r++)
        end_products(type, rows + r * stride, whole, n, x, part[r], tokens, out + r);
}

static void dot_floats(enum tensor_type type, const void *rows, size_t stride, size_t n,
                       const float *x, size_t tokens, struct mm_stream by, float *out) {
    if (type == TENSOR_TYPE_F16)
        dot_few_floats(TENSOR_TYPE_F16, rows, stride, n, x, tokens, by, out);
    else if (type == TENSOR_TYPE_BF16)
        dot_few_floats(TENSOR_TYPE_BF16, rows, stride, n, x, tokens, by, out);
    else
        dot_few_floats(TENSOR_TYPE_F32, rows, stride, n, x, tokens, by, out);
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
                                       .prepare = prepare,                                         \
                                       .dot = dot,                                                 \
                                       .dot_pair = VEC_GROUPS == 2 ? dot_pair : NULL,              \
                                       .dot_few = VEC_SHARES ? dot_few : NULL,                     \
                                       .dot_rows = dot_rows,                                       \
                                       .pack = pack,                                               \
                                       .unpack = unpack,                                           \
                                       .multiply = multiply,                                       \
                                       .dot_floats = dot_floats,                                   \
                                       .unpack_floats = unpack_floats,                             \
                                       .multiply_floats = multiply_floats }
