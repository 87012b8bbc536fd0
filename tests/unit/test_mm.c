/* mm.h and pack.h: packing moves bits and loses none; every instruction set multiplies as exact
 * arithmetic over the decoded weights does, for every type. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/levels.h"
#include "kernels/cpu/mm.h"
#include "kernels/cpu/native.h"
#include "kernels/cpu/scratch.h"
#include "model/quant/quant.h"

enum { K = 1024, TOKENS = 13 };

static uint32_t seed = 1;

static float noise(void) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        sum += (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    return sum;
}

static const enum tensor_type types[] = {
#define S(kind, at, bytes)
#define PACK(type, sections) TENSOR_TYPE_##type,
#include "kernels/cpu/pack.def"
#undef PACK
#undef S
};
enum { TYPES = sizeof types / sizeof *types };

/* Rows of a type, with what they decode to. */
struct rows {
    size_t row_bytes, blocks;
    char *bytes;
    float *floats;
};

static struct rows make_rows(enum tensor_type type, unsigned rows, size_t k) {
    struct rows r = { .row_bytes = tensor_type_row_bytes(type, k) };
    assert_true(r.row_bytes > 0);
    r.blocks = k / tensor_type_find(type)->block_elements;
    r.bytes = malloc(rows * r.row_bytes);
    r.floats = malloc(rows * k * sizeof *r.floats);
    assert_non_null(r.bytes);
    assert_non_null(r.floats);
    for (size_t i = 0; i < rows * k; i++)
        r.floats[i] = noise();
    for (unsigned i = 0; i < rows; i++) {
        quant_encoder(type)(r.floats + i * k, r.bytes + i * r.row_bytes, k, QUANT_FAST);
        quant_decoder(type)(r.bytes + i * r.row_bytes, r.floats + i * k, k);
    }
    return r;
}

static void free_rows(struct rows *r) {
    free(r->bytes);
    free(r->floats);
}

static void packing_loses_no_bit(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct rows r = make_rows(types[i], PACK_ROWS, K);
        for (size_t b = 0; b < PACK_ROWS * r.row_bytes; b++) /* any bits, not only encoded ones */
            r.bytes[b] = (char)(seed = seed * 1664525u + 1013904223u, seed >> 24);
        char *packed = malloc(PACK_ROWS * r.row_bytes), *row = malloc(r.row_bytes);
        assert_int_equal(pack_layout(types[i]).bytes * r.blocks, PACK_ROWS * r.row_bytes);
        pack_group(types[i], r.bytes, r.row_bytes, PACK_ROWS, r.blocks, packed);
        for (unsigned j = 0; j < PACK_ROWS; j++) {
            pack_row(types[i], packed, j, r.blocks, row);
            assert_memory_equal(row, r.bytes + j * r.row_bytes, r.row_bytes);
        }
        free(row);
        free(packed);
        free_rows(&r);
    }
}

/* Any bits, between bytes that belong to nobody, so that a read past the rows is seen. */
static void every_set_packs_as_the_plain_code_does(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        const size_t row = tensor_type_row_bytes(types[i], K), all = PACK_ROWS * row;
        const size_t blocks = K / tensor_type_find(types[i])->block_elements;
        char *rows = malloc(all), *plain = malloc(all), *packed = malloc(all + 1);
        for (size_t b = 0; b < all; b++)
            rows[b] = (char)(seed = seed * 1664525u + 1013904223u, seed >> 24);
        pack_group(types[i], rows, row, PACK_ROWS, blocks, plain);
        for (unsigned s = 0; mm_set_at(s); s++) {
            memset(packed, 0x55, all + 1);
            mm_set_at(s)->pack(types[i], rows, row, blocks, packed);
            if (memcmp(packed, plain, all) != 0 || packed[all] != 0x55)
                fail_msg("%s packs %s otherwise", mm_set_at(s)->name, tensor_type_name(types[i]));
        }
        free(rows);
        free(plain);
        free(packed);
    }
}

static void rows_that_are_missing_become_zero(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct rows r = make_rows(types[i], 5, K);
        char *packed = malloc(PACK_ROWS * r.row_bytes), *row = malloc(r.row_bytes);
        pack_group(types[i], r.bytes, r.row_bytes, 5, r.blocks, packed);
        for (unsigned j = 0; j < PACK_ROWS; j++) {
            pack_row(types[i], packed, j, r.blocks, row);
            for (size_t b = 0; j >= 5 && b < r.row_bytes; b++)
                assert_int_equal(row[b], 0);
            if (j < 5)
                assert_memory_equal(row, r.bytes + j * r.row_bytes, r.row_bytes);
        }
        free(row);
        free(packed);
        free_rows(&r);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

struct input {
    float x[TOKENS * K];
    int8_t level[TOKENS * K];
    float scale[TOKENS * K / MM_RUN], sum[TOKENS * K / MM_RUN];
};

/* In the order [slab][token] that multiply reads. */
static struct mm_row input_row(struct input *in, size_t tokens, size_t slab, size_t t) {
    size_t at = slab * tokens + t;
    return (struct mm_row){ in->level + at * MM_SLAB, in->scale + at * MM_RUNS,
                            in->sum + at * MM_RUNS };
}

/* x becomes what its levels stand for. */
static struct input *make_input(const struct mm_set *set, size_t tokens, unsigned run) {
    struct input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    for (size_t i = 0; i < tokens * K; i++)
        in->x[i] = noise() * (i % 97 == 0 ? 20 : 1);
    for (size_t slab = 0; slab < K / MM_SLAB; slab++)
        for (size_t t = 0; t < tokens; t++) {
            struct mm_row row = input_row(in, tokens, slab, t);
            float *x = in->x + t * K + slab * MM_SLAB;
            set->quantize(x, MM_SLAB, run, &row);
            for (size_t i = 0; i < MM_SLAB; i++)
                x[i] = (float)row.level[i] * row.scale[i / MM_RUN];
        }
    return in;
}

static double exact(const float *w, const float *x, size_t n, double *size) {
    double sum = 0;
    *size = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)w[i] * x[i];
        *size += fabs((double)w[i] * x[i]);
    }
    return sum;
}

static void assert_near(const char *set, enum tensor_type type, double found, const float *w,
                        const float *x, size_t n, double limit) {
    double size, wanted = exact(w, x, n, &size);
    if (!(fabs(found - wanted) <= limit * size))
        fail_msg("%s, %s: %g, expected %g", set, tensor_type_name(type), found, wanted);
}

static void assert_product(const char *set, enum tensor_type type, double found, const float *w,
                           const float *x, size_t n) {
    assert_near(set, type, found, w, x, n, 2e-6);
}

/* A panel of one type, packed. */
struct panel {
    struct rows r;
    char *packed;
};

static struct panel make_panel(enum tensor_type type) {
    struct panel p = { .r = make_rows(type, MM_PANEL, K) };
    const size_t group = PACK_ROWS * p.r.row_bytes;
    p.packed = malloc(MM_GROUPS * group);
    assert_non_null(p.packed);
    for (size_t g = 0; g < MM_GROUPS; g++)
        pack_group(type, p.r.bytes + g * group, p.r.row_bytes, PACK_ROWS, p.r.blocks,
                   p.packed + g * group);
    return p;
}

static void free_panel(struct panel *p) {
    free(p->packed);
    free_rows(&p->r);
}

/* The sums; those of the last slab go where `last` says. */
static void multiply(const struct mm_set *set, enum tensor_type type, const struct panel *p,
                     struct input *in, unsigned run, const struct mm_flow *last, float *sums) {
    struct mm_tile *tiles = aligned_alloc(64, MM_GROUPS * sizeof *tiles);
    assert_non_null(tiles);
    memset(sums, 0xff, TOKENS * MM_PANEL * sizeof *sums);
    for (size_t slab = 0; slab < K / MM_SLAB; slab++) {
        for (size_t g = 0; g < MM_GROUPS; g++)
            set->unpack(type, p->packed + g * PACK_ROWS * p->r.row_bytes, slab * MM_SLAB, MM_SLAB,
                        (struct mm_ahead){ 8192, 2048 }, &tiles[g]);
        struct mm_row row = input_row(in, TOKENS, slab, 0);
        struct mm_ready ready[TOKENS];
        set->prepare(type, &row, TOKENS, run, ready);
        struct mm_flow flow = slab == K / MM_SLAB - 1 ? *last : (struct mm_flow){ 0 };
        flow.first = slab == 0; /* what sums begin with does not count then */
        set->multiply(tiles, row.level, ready, run, TOKENS, &flow, sums);
    }
    free(tiles);
}

/* What multiply made of a panel, on a set, for a run. */
struct products {
    const struct mm_set *set;
    unsigned run;
    enum tensor_type type;
    struct panel p;
    struct input *in;
    float sums[TOKENS * MM_PANEL];
};

/* For every set, run and type that go together. */
static void check_products(void (*check)(const struct products *m)) {
    struct products *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (unsigned s = 0; (m->set = mm_set_at(s)); s++)
        for (m->run = 16; m->run <= 32; m->run *= 2) {
            m->in = make_input(m->set, TOKENS, m->run);
            for (int i = 0; i < TYPES; i++) {
                m->type = types[i];
                if (m->run > 16 && tensor_type_find(m->type)->block_elements < 256)
                    continue;
                m->p = make_panel(m->type);
                multiply(m->set, m->type, &m->p, m->in, m->run, &(struct mm_flow){ 0 }, m->sums);
                check(m);
                free_panel(&m->p);
            }
            free(m->in);
        }
    free(m);
}

static void check_sums(const struct products *m) {
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t j = 0; j < MM_PANEL; j++)
            assert_product(m->set->name, m->type, m->sums[t * MM_PANEL + j], m->p.r.floats + j * K,
                           m->in->x + t * K, K);
}

/* The same sums go to rows that lie apart, and are added to what is there, while something is
 * fetched. */
static void check_out(const struct products *m) {
    enum { STRIDE = MM_PANEL + 5 };
    float sums[TOKENS * MM_PANEL], out[TOKENS * STRIDE];
    for (int added = 0; added < 2; added++) {
        const struct mm_flow last = { .out = out,
                                      .out_stride = STRIDE,
                                      .added = added,
                                      .fetch = { m->p.packed, m->p.packed + 64 },
                                      .fetch_bytes = 500 };
        for (size_t i = 0; i < TOKENS * STRIDE; i++)
            out[i] = (float)i;
        multiply(m->set, m->type, &m->p, m->in, m->run, &last, sums);
        for (size_t i = 0; i < TOKENS * STRIDE; i++) {
            const size_t t = i / STRIDE, j = i % STRIDE;
            const float sum = j < MM_PANEL ? m->sums[t * MM_PANEL + j] : 0;
            const float wanted = j >= MM_PANEL ? (float)i : added ? (float)i + sum : sum;
            assert_memory_equal(&out[i], &wanted, sizeof wanted);
        }
    }
}

static void sums_go_where_they_are_wanted(void **state) {
    (void)state;
    check_products(check_out);
}

static void many_tokens_are_multiplied(void **state) {
    (void)state;
    check_products(check_sums);
}

/* Token `token` of an input as the only one. */
static struct input *take_token(struct input *in, size_t token) {
    struct input *one = calloc(1, sizeof *one);
    assert_non_null(one);
    for (size_t slab = 0; slab < K / MM_SLAB; slab++) {
        struct mm_row from = input_row(in, TOKENS, slab, token), to = input_row(one, 1, slab, 0);
        memcpy(to.level, from.level, MM_SLAB);
        memcpy(to.scale, from.scale, MM_RUNS * sizeof(float));
        memcpy(to.sum, from.sum, MM_RUNS * sizeof(float));
    }
    return one;
}

/* A token on its own. */
struct token {
    struct input *in;
    struct mm_row row;
    struct mm_ready ready[K / MM_SLAB];
};

/* Two groups side by side, with everything fetched ahead, give the sums of the whole panel. */
static void check_pair(const struct products *m, const struct token *one, const float *sums) {
    float pair[MM_PANEL];
    if (!m->set->dot_pair)
        return;
    m->set->dot_pair(m->type, m->p.packed, K, one->row.level, one->ready, m->run,
                     (struct mm_ahead){ 4096, 1024 }, pair);
    for (int j = 0; j < MM_PANEL; j++)
        if (pair[j] != sums[j])
            fail_msg("%s, %s, run %u: %.9g, two groups gave %.9g", m->set->name,
                     tensor_type_name(m->type), m->run, sums[j], pair[j]);
}

/* All sets prepare and add up as the plain one does. */
static void check_plain(const struct products *m, const struct token *one, const float *out) {
    float other[PACK_ROWS];
    struct mm_ready ready[K / MM_SLAB];
    mm_set_at(0)->prepare(m->type, &one->row, K / MM_SLAB, m->run, ready);
    assert_memory_equal(ready, one->ready, sizeof ready);
    mm_set_at(0)->dot(m->type, m->p.packed, K, one->row.level, ready, m->run,
                      (struct mm_ahead){ 0, 0 }, other);
    if (memcmp(other, out, sizeof other) != 0)
        fail_msg("%s, %s, run %u: other sums than %s", m->set->name, tensor_type_name(m->type),
                 m->run, mm_set_at(0)->name);
}

/* The first `tokens` tokens, sharing the weights of a group, give the sums they have with others.
 */
static void check_few(const struct products *m, size_t tokens) {
    struct input *few = calloc(1, sizeof *few);
    assert_non_null(few);
    for (size_t slab = 0; slab < K / MM_SLAB; slab++) {
        struct mm_row from = input_row(m->in, TOKENS, slab, 0);
        struct mm_row to = input_row(few, tokens, slab, 0);
        memcpy(to.level, from.level, tokens * MM_SLAB);
        memcpy(to.scale, from.scale, tokens * MM_RUNS * sizeof(float));
        memcpy(to.sum, from.sum, tokens * MM_RUNS * sizeof(float));
    }
    struct mm_ready ready[MM_SHARED * K / MM_SLAB];
    float out[MM_SHARED * PACK_ROWS];
    const struct mm_row all = input_row(few, tokens, 0, 0);
    m->set->prepare(m->type, &all, tokens * K / MM_SLAB, m->run, ready);
    if (m->set->dot_few(m->type, m->p.packed, K, all.level, ready, m->run, tokens,
                        (struct mm_ahead){ 4096, 1024 }, out))
        for (size_t i = 0; i < tokens * PACK_ROWS; i++) {
            const float many = m->sums[i / PACK_ROWS * MM_PANEL + i % PACK_ROWS];
            if (out[i] != many)
                fail_msg("%s, %s, run %u: %.9g, with %zu tokens %.9g", m->set->name,
                         tensor_type_name(m->type), m->run, (double)many, tokens, (double)out[i]);
        }
    free(few);
}

static void check_bits(const struct products *m) {
    for (size_t tokens = 2; tokens <= MM_SHARED && m->set->dot_few; tokens++)
        check_few(m, tokens);
    for (size_t t = 0; t < TOKENS; t++) {
        struct token one = { .in = take_token(m->in, t) };
        float out[PACK_ROWS];
        one.row = input_row(one.in, 1, 0, 0);
        m->set->prepare(m->type, &one.row, K / MM_SLAB, m->run, one.ready);
        m->set->dot(m->type, m->p.packed, K, one.row.level, one.ready, m->run,
                    (struct mm_ahead){ 0, 0 }, out);
        for (int j = 0; j < PACK_ROWS; j++)
            if (out[j] != m->sums[t * MM_PANEL + j])
                fail_msg("%s, %s, run %u: %.9g, many gave %.9g", m->set->name,
                         tensor_type_name(m->type), m->run, out[j], m->sums[t * MM_PANEL + j]);
        check_pair(m, &one, m->sums + t * MM_PANEL);
        check_plain(m, &one, out);
        float file[PACK_ROWS];
        m->set->dot_rows(m->type, m->p.r.bytes, m->p.r.row_bytes, K, one.row.level, one.ready,
                         m->run, file);
        if (memcmp(file, out, sizeof out) != 0)
            fail_msg("%s, %s, run %u: rows of the file give other sums than packed ones",
                     m->set->name, tensor_type_name(m->type), m->run);
        free(one.in);
    }
}

/* A prompt read at once and token by token, packed or not, must not differ by a bit: the smallest
 * difference would move activations to other levels, and grow. */
static void one_token_gives_the_bits_that_many_give(void **state) {
    (void)state;
    check_products(check_bits);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

enum { MANY_ROWS = 170, MANY_TOKENS = 130 }; /* five panels and a bit */

/* Those that share weights, those that go panel by panel, and those that do not. */
static const size_t some_tokens[] = { 2, 7, 8, 37, MANY_TOKENS };
enum { SOME = sizeof some_tokens / sizeof *some_tokens };

/* out[tokens][MANY_ROWS] = x . rows, by the kernel in one call. */
static void run_matmul(enum tensor_type type, const struct rows *r, const float *x, size_t tokens,
                       float *out) {
    const unsigned run = tensor_type_find(type)->block_elements < 256 ? 16 : 32;
    void *levels = aligned_alloc(64, tokens * levels_slabs(K) * KERN_SLAB_BYTES);
    assert_non_null(levels);
    for (size_t t = 0; t < tokens; t++)
        levels_put(levels, tokens, K, run, t, x + t * K);
    const struct kern_matmul a = { .out = { .ptr = out },
                                   .weight = { .ptr = r->bytes, .type = type },
                                   .levels = { .ptr = levels },
                                   .tokens = (uint32_t)tokens,
                                   .n = MANY_ROWS,
                                   .k = K,
                                   .run = run };
    const struct greta_soft_work work = { .first = 0, .last = KERN_PANELS(MANY_ROWS) };
    cpu_matmul(&work, &a);
    free(levels);
}

/* ones: every token by itself. */
static void check_tokens(enum tensor_type type, const struct rows *r, const float *x, size_t tokens,
                         const float *ones) {
    float *out = malloc(MANY_TOKENS * MANY_ROWS * sizeof *out);
    assert_non_null(out);
    run_matmul(type, r, x, tokens, out);
    for (size_t i = 0; i < tokens * MANY_ROWS; i++)
        if (ones[i] != out[i])
            fail_msg("%s, token %zu of %zu, row %zu: %.9g, together %.9g", tensor_type_name(type),
                     i / MANY_ROWS, tokens, i % MANY_ROWS, (double)ones[i], (double)out[i]);
    free(out);
}

/* However panels and tokens go together. */
static void tokens_together_give_the_bits_of_one_token(void **state) {
    float *x = malloc(MANY_TOKENS * K * sizeof *x);
    float *ones = malloc(MANY_TOKENS * MANY_ROWS * sizeof *ones);
    (void)state;
    assert_non_null(x);
    assert_non_null(ones);
    for (size_t i = 0; i < MANY_TOKENS * K; i++)
        x[i] = noise();
    for (int i = 0; i < TYPES; i++) {
        struct rows r = make_rows(types[i], MANY_ROWS, K);
        for (size_t t = 0; t < MANY_TOKENS; t++)
            run_matmul(types[i], &r, x + t * K, 1, ones + t * MANY_ROWS);
        for (int s = 0; s < SOME; s++)
            check_tokens(types[i], &r, x, some_tokens[s], ones);
        free_rows(&r);
    }
    free(ones);
    free(x);
}

static void activations_are_rounded_to_the_nearest_level(void **state) {
    (void)state;
    for (unsigned s = 0; mm_set_at(s); s++)
        for (unsigned run = 16; run <= 32; run *= 2) {
            float x[MM_SLAB], scale[MM_RUNS], sum[MM_RUNS];
            int8_t level[MM_SLAB];
            struct mm_row row = { level, scale, sum };
            for (int i = 0; i < MM_SLAB; i++)
                x[i] = noise();
            mm_set_at(s)->quantize(x, MM_SLAB, run, &row);
            for (int r = 0; r < MM_RUNS; r++) {
                float total = 0, peak = 0;
                for (unsigned i = 0; i < run; i++)
                    peak = fmaxf(peak, fabsf(x[(unsigned)r * MM_RUN / run * run + i]));
                for (int i = r * MM_RUN; i < (r + 1) * MM_RUN; i++) {
                    assert_true(fabsf((float)level[i] * scale[r] - x[i]) <= 0.501f * scale[r]);
                    total += (float)level[i];
                }
                assert_float_equal(scale[r], peak / 127, 1e-6f);
                assert_float_equal(sum[r], total * scale[r], 1e-5f);
            }
        }
}

static const enum tensor_type floats[] = { TENSOR_TYPE_F32, TENSOR_TYPE_F16, TENSOR_TYPE_BF16 };

static const struct mm_stream NEXT_ROWS = { 4, 0 };

static void floats_are_multiplied(void **state) {
    (void)state;
    struct mm_float_tile *tiles = aligned_alloc(64, MM_GROUPS * sizeof *tiles);
    enum { ODD = 203 };
    for (unsigned s = 0; mm_set_at(s); s++) {
        const struct mm_set *set = mm_set_at(s);
        struct input *in = make_input(set, TOKENS, 16);
        for (int i = 0; i < 3; i++) {
            struct rows r = make_rows(floats[i], MM_PANEL, ODD);
            float out[PACK_ROWS], sums[TOKENS * MM_PANEL] = { 0 };
            set->dot_floats(floats[i], r.bytes, r.row_bytes, ODD, in->x, 1, NEXT_ROWS, out);
            for (int j = 0; j < PACK_ROWS; j++)
                assert_product(set->name, floats[i], out[j], r.floats + j * ODD, in->x, ODD);
            for (size_t g = 0; g < MM_GROUPS; g++)
                set->unpack_floats(floats[i], r.bytes + g * PACK_ROWS * r.row_bytes, r.row_bytes,
                                   ODD, &tiles[g]);
            set->multiply_floats(tiles, ODD, in->x, K, TOKENS, sums);
            for (size_t t = 0; t < TOKENS; t++)
                for (size_t j = 0; j < MM_PANEL; j++)
                    assert_product(set->name, floats[i], sums[t * MM_PANEL + j], r.floats + j * ODD,
                                   in->x + t * K, ODD);
            free_rows(&r);
        }
        free(in);
    }
    free(tiles);
}

/* Whether one token is computed or up to MM_FEW makes no difference to the bits of each. */
static void few_tokens_of_floats_give_the_bits_of_one(void **state) {
    (void)state;
    enum { WIDTH = 1179 }; /* two blocks of columns, some steps and an odd rest */
    float *x = malloc(MM_FEW * WIDTH * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < MM_FEW * WIDTH; i++)
        x[i] = noise();
    for (unsigned s = 0; mm_set_at(s); s++)
        for (int i = 0; i < 3; i++) {
            struct rows r = make_rows(floats[i], PACK_ROWS, WIDTH);
            for (size_t tokens = 2; tokens <= MM_FEW; tokens++) {
                float few[MM_FEW * PACK_ROWS], one[PACK_ROWS];
                mm_set_at(s)->dot_floats(floats[i], r.bytes, r.row_bytes, WIDTH, x, tokens,
                                         NEXT_ROWS, few);
                for (size_t t = 0; t < tokens; t++) {
                    mm_set_at(s)->dot_floats(floats[i], r.bytes, r.row_bytes, WIDTH, x + t * WIDTH,
                                             1, NEXT_ROWS, one);
                    assert_memory_equal(one, few + t * PACK_ROWS, sizeof one);
                    for (size_t j = 0; j < PACK_ROWS; j++)
                        assert_product(mm_set_at(s)->name, floats[i], one[j], r.floats + j * WIDTH,
                                       x + t * WIDTH, WIDTH);
                }
            }
            free_rows(&r);
        }
    free(x);
}

/* However many rows go side by side and however far ahead they are fetched. */
static void streams_of_floats_give_the_same_bits(void **state) {
    (void)state;
    enum { WIDTH = 235 }; /* some steps and an odd rest */
    static const struct mm_stream streams[] = {
        { 1, 0 }, { 1, 8192 }, { 2, 0 }, { 2, 4096 }, { 4, 64 }
    };
    float x[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        x[i] = noise();
    for (unsigned s = 0; mm_set_at(s); s++)
        for (int i = 0; i < 3; i++) {
            const struct mm_set *set = mm_set_at(s);
            struct rows r = make_rows(floats[i], PACK_ROWS, WIDTH);
            float want[PACK_ROWS], out[PACK_ROWS];
            set->dot_floats(floats[i], r.bytes, r.row_bytes, WIDTH, x, 1, NEXT_ROWS, want);
            for (size_t j = 0; j < sizeof streams / sizeof *streams; j++) {
                set->dot_floats(floats[i], r.bytes, r.row_bytes, WIDTH, x, 1, streams[j], out);
                assert_memory_equal(out, want, sizeof out);
            }
            free_rows(&r);
        }
}

/* A slab of `count` columns by `tokens` tokens, as multiply_parts makes it, with some room after
 * the sums that stays as it is. */
struct in_parts {
    struct rows r;
    float x[2 * MM_BLOCK * MM_SLAB];
    float sums[(2 * MM_BLOCK + 1) * MM_PANEL];
};

static void multiply_in_parts(const struct mm_set *set, enum tensor_type type, struct in_parts *m,
                              size_t tokens, size_t count) {
    struct mm_parts_tile *tiles = aligned_alloc(64, MM_GROUPS * sizeof *tiles);
    struct mm_line *lines = malloc(tokens * MM_PARTS * MM_STEPS * sizeof *lines);
    assert_true(tiles && lines);
    memset(tiles, 0xff, MM_GROUPS * sizeof *tiles); /* NaN, if anything else is read */
    memset(lines, 0xff, tokens * MM_PARTS * MM_STEPS * sizeof *lines);
    for (size_t t = 0; t < tokens; t++) {
        size_t stride;
        struct mm_line *to = levels_lines(lines, tokens, 0, t, &stride);
        set->split(m->x + t * count, count, to, stride);
    }
    for (size_t g = 0; g < MM_GROUPS; g++)
        set->unpack_parts(type, m->r.bytes + g * PACK_ROWS * m->r.row_bytes, m->r.row_bytes, count,
                          &tiles[g]);
    for (size_t i = 0; i < sizeof m->sums / sizeof *m->sums; i++)
        m->sums[i] = i < tokens * MM_PANEL ? 0 : 7;
    set->multiply_parts(tiles, count, lines, tokens, m->sums);
    for (size_t i = tokens * MM_PANEL; i < sizeof m->sums / sizeof *m->sums; i++)
        assert_true(m->sums[i] == 7);
    free(lines);
    free(tiles);
}

/* For every set that can, every type of floats, and sizes that do not fill tiles. */
static void check_in_parts(void (*check)(const struct mm_set *set, enum tensor_type type,
                                         struct in_parts *m, size_t tokens, size_t count)) {
    static const size_t tokens[] = { 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 48, 49, 64 };
    static const size_t counts[] = { 1, 16, 31, 32, 33, 203, 256 };
    struct in_parts *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (unsigned s = 0; mm_set_at(s); s++)
        for (int type = 0; type < 3 && mm_set_at(s)->split; type++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                m->r = make_rows(floats[type], MM_PANEL, counts[c]);
                for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
                    for (size_t i = 0; i < tokens[t] * counts[c]; i++)
                        m->x[i] = noise() * (i % 97 == 0 ? 20 : 1);
                    check(mm_set_at(s), floats[type], m, tokens[t], counts[c]);
                }
                free_rows(&m->r);
            }
    free(m);
}

static void check_near(const struct mm_set *set, enum tensor_type type, struct in_parts *m,
                       size_t tokens, size_t count) {
    multiply_in_parts(set, type, m, tokens, count);
    for (size_t t = 0; t < tokens; t++)
        for (size_t j = 0; j < MM_PANEL; j++)
            assert_near(set->name, type, m->sums[t * MM_PANEL + j], m->r.floats + j * count,
                        m->x + t * count, count, type == TENSOR_TYPE_F32 ? 3e-7 : 3.1e-5);
}

static void floats_are_multiplied_in_parts(void **state) {
    (void)state;
    check_in_parts(check_near);
}

/* Only the token that has something in it that is not finite has such a sum. */
static void check_not_finite(const struct mm_set *set, enum tensor_type type, struct in_parts *m,
                             size_t tokens, size_t count) {
    const uint32_t bits[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff, 0xff800001 };
    const size_t bad = tokens - 1;
    for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
        memcpy(&m->x[bad * count + count / 2], &bits[b], sizeof bits[b]);
        multiply_in_parts(set, type, m, tokens, count);
        for (size_t i = 0; i < tokens * MM_PANEL; i++)
            assert_int_equal(isfinite(m->sums[i]) != 0, i / MM_PANEL != bad);
    }
}

static void what_is_not_finite_stays_so_in_parts(void **state) {
    (void)state;
    check_in_parts(check_not_finite);
}

static void what_is_not_finite_stays_so(void **state) {
    (void)state;
    const float bad[] = { INFINITY, -INFINITY, NAN, -NAN };
    for (unsigned s = 0; mm_set_at(s); s++)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            float x[32] = { 1, 2, bad[b], 3 }, scale[2], sum[2];
            int8_t level[32];
            struct mm_row row = { level, scale, sum };
            mm_set_at(s)->quantize(x, 32, 16, &row);
            assert_true(isnan(scale[0]) && scale[1] == 0);
            mm_set_at(s)->quantize(x, 32, 32, &row);
            assert_true(isnan(scale[0]) && isnan(scale[1]));
        }
}

static void zeros_and_tiny_numbers_are_quantised(void **state) {
    (void)state;
    for (unsigned s = 0; mm_set_at(s); s++) {
        float x[64] = { 0 }, scale[4], sum[4];
        int8_t level[64];
        struct mm_row row = { level, scale, sum };
        x[40] = 1e-38f;
        mm_set_at(s)->quantize(x, 64, 32, &row);
        for (int i = 0; i < 64; i++)
            assert_int_equal(level[i], 0);
        assert_true(scale[0] == 0 && sum[0] == 0 && isfinite(scale[2]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_loses_no_bit),
        cmocka_unit_test(every_set_packs_as_the_plain_code_does),
        cmocka_unit_test(rows_that_are_missing_become_zero),
        cmocka_unit_test(many_tokens_are_multiplied),
        cmocka_unit_test(sums_go_where_they_are_wanted),
        cmocka_unit_test(one_token_gives_the_bits_that_many_give),
        cmocka_unit_test(tokens_together_give_the_bits_of_one_token),
        cmocka_unit_test(activations_are_rounded_to_the_nearest_level),
        cmocka_unit_test(floats_are_multiplied),
        cmocka_unit_test(few_tokens_of_floats_give_the_bits_of_one),
        cmocka_unit_test(streams_of_floats_give_the_same_bits),
        cmocka_unit_test(floats_are_multiplied_in_parts),
        cmocka_unit_test(what_is_not_finite_stays_so_in_parts),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(zeros_and_tiny_numbers_are_quantised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
