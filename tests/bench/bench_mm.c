/* The inner loops of matmul: every type on every instruction set, for one token (with data in the
 * L1 cache, so that only the arithmetic is timed) and for many. Each is checked against the plain
 * one before it is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/mm.h"
#include "model/quant/quant.h"

enum { K = 2048, TOKENS = 64 };

static const enum tensor_type types[] = {
#define S(kind, at, bytes)
#define PACK(type, sections) TENSOR_TYPE_##type,
#include "kernels/cpu/pack.def"
#undef PACK
#undef S
};
enum { TYPES = sizeof types / sizeof *types };
static const enum tensor_type floats[] = { TENSOR_TYPE_F32, TENSOR_TYPE_F16, TENSOR_TYPE_BF16 };

static struct {
    float x[TOKENS * K], scale[TOKENS * K / MM_RUN], sum[TOKENS * K / MM_RUN],
        weights[PACK_ROWS * K];
    int8_t level[TOKENS * K];
    _Alignas(64) char rows[PACK_ROWS * K * 4];
    _Alignas(64) char packed[PACK_ROWS * K * 4];
    struct mm_tile tiles[MM_GROUPS];
    struct mm_float_tile float_tiles[MM_GROUPS];
    struct mm_parts_tile parts_tiles[MM_GROUPS];
    struct mm_line lines[TOKENS * MM_PARTS * MM_STEPS];
    struct mm_ready ready[K / MM_SLAB > TOKENS ? K / MM_SLAB : TOKENS];
    float sums[TOKENS * MM_PANEL];
} m;

static const struct mm_set *set;
static enum tensor_type type;
static float out[PACK_ROWS];

/* As the engine does it. */
static unsigned run(void) {
    return tensor_type_find(type)->block_elements < 256 ? 16 : 32;
}

static void one_token(void) {
    set->dot(type, m.packed, K, m.level, m.ready, run(), (struct mm_ahead){ 0, 0 }, out);
}

static void one_token_of_rows(void) {
    set->dot_rows(type, m.rows, tensor_type_row_bytes(type, K), K, m.level, m.ready, run(), out);
}

static void many_tokens(void) {
    for (int g = 0; g < MM_GROUPS; g++)
        set->unpack(type, m.packed, 0, MM_SLAB, (struct mm_ahead){ 0, 0 }, &m.tiles[g]);
    set->multiply(m.tiles, m.level, m.ready, run(), TOKENS, &(struct mm_flow){ .first = false },
                  m.sums);
}

static void one_token_of_floats(void) {
    set->dot_floats(type, m.rows, tensor_type_row_bytes(type, K), K, m.x, 1,
                    (struct mm_stream){ 4, 0 }, out);
}

/* With activations that are split already, where the set wants that. */
static void many_tokens_of_floats(void) {
    const size_t row = tensor_type_row_bytes(type, K);
    for (int g = 0; g < MM_GROUPS; g++)
        if (set->split)
            set->unpack_parts(type, m.rows, row, MM_SLAB, &m.parts_tiles[g]);
        else
            set->unpack_floats(type, m.rows, row, MM_SLAB, &m.float_tiles[g]);
    if (set->split)
        set->multiply_parts(m.parts_tiles, MM_SLAB, m.lines, TOKENS, m.sums);
    else
        set->multiply_floats(m.float_tiles, MM_SLAB, m.x, K, TOKENS, m.sums);
}

static void split_all(void) {
    for (size_t t = 0; t < TOKENS && set->split; t++) {
        size_t stride;
        struct mm_line *to = levels_lines(m.lines, TOKENS, 0, t, &stride);
        set->split(m.x + t * K, MM_SLAB, to, stride);
    }
}

/* Nanoseconds of a call: the best of several rounds. */
static double time_of(void (*call)(void)) {
    double best = INFINITY;
    for (int round = 0; round < 7; round++) {
        enum { CALLS = 64 };
        uint64_t start = clock_now_ns();
        for (int i = 0; i < CALLS; i++)
            call();
        double ns = (double)(clock_now_ns() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    return best;
}

static bool agrees(const float *plain) {
    for (int r = 0; r < PACK_ROWS; r++)
        if (!(fabsf(out[r] - plain[r]) <= 1e-3f * (1 + fabsf(plain[r]))))
            return false;
    return true;
}

static void prepare(enum tensor_type t) {
    size_t row = tensor_type_row_bytes(t, K);
    type = t;
    for (int r = 0; r < PACK_ROWS; r++)
        quant_encoder(t)(m.weights + r * K, m.rows + (size_t)r * row, K, QUANT_FAST);
    if (pack_is_possible(t))
        pack_group(t, m.rows, row, PACK_ROWS, K / tensor_type_find(t)->block_elements, m.packed);
}

/* Times a set whose result of `one` is in out already. */
static bool report(const float *plain, void (*one)(void), void (*rows)(void), void (*many)(void)) {
    bool same = agrees(plain);
    double one_ns = time_of(one), rows_ns = time_of(rows), many_ns = time_of(many);
    double bytes = (double)tensor_type_row_bytes(type, K) * PACK_ROWS;
    printf("%-11s %-8s %16.1f %6.1f %19.1f %22.1f%s\n", set->name, tensor_type_name(type),
           (double)PACK_ROWS * K / one_ns, bytes / one_ns, bytes / rows_ns,
           (double)MM_PANEL * MM_SLAB * TOKENS / many_ns, same ? "" : "  WRONG");
    return same;
}

static void quantize_all(void) {
    for (int t = 0; t < TOKENS; t++) {
        struct mm_row row = { m.level + t * K, m.scale + t * K / MM_RUN, m.sum + t * K / MM_RUN };
        set->quantize(m.x + t * K, K, run(), &row);
    }
    struct mm_row all = { m.level, m.scale, m.sum };
    set->prepare(type, &all, sizeof m.ready / sizeof *m.ready, run(), m.ready);
}

/* A type on every set. */
static bool measure(enum tensor_type t, void (*ready)(void), void (*one)(void), void (*rows)(void),
                    void (*many)(void)) {
    float plain[PACK_ROWS];
    bool good = true;
    prepare(t);
    for (unsigned s = 0; (set = mm_set_at(s)); s++) {
        ready();
        one();
        if (s == 0)
            memcpy(plain, out, sizeof plain);
        good &= report(plain, one, rows, many);
    }
    return good;
}

int main(void) {
    bool good = true;
    for (int i = 0; i < TOKENS * K; i++)
        m.x[i] = sinf((float)i);
    for (int i = 0; i < PACK_ROWS * K; i++)
        m.weights[i] = cosf((float)i * 0.7f);
    puts("set         type     one token: MAC/ns  GB/s  rows of the file: GB/s  many tokens: "
         "MAC/ns");
    for (int i = 0; i < TYPES; i++)
        good &= measure(types[i], quantize_all, one_token, one_token_of_rows, many_tokens);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        good &= measure(floats[i], split_all, one_token_of_floats, one_token_of_floats,
                        many_tokens_of_floats);
    return good ? 0 : 1;
}
