/* The GPU code of every kernel against its native twin, on the software device's interpreter. The
 * architecture is GRETA_SOFT_ARCH; every access is checked against buffers of exactly the
 * footprint. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>
#include <greta/soft.h>

#include "codeobj/codeobj.h"
#include "infer/device.h"
#include "kernels/cpu/choose.h"
#include "kernels/cpu/native.h"
#include "kernels/example.h"
#include "kernels/hip/image.h"
#include "kernels/spec.h"
#include "kernels/twin.h"

/* Float arithmetic in another order; sums of many products; the same if the largest activations of
 * F16 products leave few bits for the others; weights rounded to halves (Q6_K). */
#define FLOATS   2e-6
#define SUMS     2e-5
#define OUTLIERS 5e-5
#define ROUNDED  1e-3

static struct device device;
static struct example x = { .seed = 1 };

static int open_device(void **state) {
    (void)state;
    struct err e = { 0 };
    if (!strcmp(image_origin(), "none"))
        return 0;
    if (device_open(&device, "soft", "isa", NULL, &e))
        fail_msg("%s", e.msg);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    device_close(&device);
    gcore_close();
    return 0;
}

static int need_code(void **state) {
    (void)state;
    if (!device.kernels)
        print_message("no clang with the AMDGPU target when this was built\n");
    return 0;
}

static int forget(void **state) {
    (void)state;
    example_close(&x);
    return 0;
}

/* Compares, and frees the arguments. */
static void assert_twins(enum kern_id id, const void *arguments, double limit, const char *what,
                         uint32_t a, uint32_t b, uint32_t c) {
    double distance = 0;
    struct err e = { 0 };
    assert_false(x.failed);
    if (twin_compare(device.kernels, device.hip, id, arguments, &distance, &e))
        fail_msg("%s %s %u %u %u: %s", kern_name(id), what, a, b, c, e.msg);
    if (!(distance <= limit))
        fail_msg("%s %s %u %u %u: distance %.3g, expected at most %.3g", kern_name(id), what, a, b,
                 c, distance, limit);
    example_close(&x);
}

#define SKIP_WITHOUT_CODE                                                                          \
    (void)state;                                                                                   \
    if (!device.kernels)                                                                           \
    skip()

static const struct tensor_type_info *next_type(const struct tensor_type_info *t) {
    do
        t = tensor_type_next(t);
    while (t && t->use != TENSOR_TYPE_COMPUTE);
    return t;
}

/* ---- small kernels --------------------------------------------------------------------------- */

static void embed_agrees_for_every_type(void **state) {
    SKIP_WITHOUT_CODE;
    const int32_t ids[] = { 0, 6, 3, 7, -1, 1000 };
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t))
        for (uint32_t dim = 256; dim <= 8448; dim = dim == 768 ? 8448 : dim + 256) {
            struct kern_embed a = { .tokens = 6, .dim = dim, .vocab = 7 };
            a.scale = dim == 512 ? 3.5f : 0;
            a.out = example_room(&x, TENSOR_TYPE_F32, (uint64_t)6 * dim * 4);
            a.table = example_tensor(&x, t->type, 7, dim);
            a.ids = example_ints(&x, ids, 6);
            assert_twins(KERN_embed, &a, FLOATS, t->name, dim, 0, 0);
        }
}

static void rmsnorm_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    for (uint32_t rows = 1; rows <= 3; rows += 2)
        for (uint32_t dim = 1; dim <= 2000; dim = dim * 3 + 1) {
            struct kern_rmsnorm a = { .rows = rows, .dim = dim, .eps = 1e-5f };
            a.x = example_tensor(&x, TENSOR_TYPE_F32, rows, dim);
            a.out = example_room(&x, TENSOR_TYPE_F32, a.x.bytes);
            a.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            if (dim % 2)
                a.out = a.x; /* in place */
            assert_twins(KERN_rmsnorm, &a, FLOATS, "", rows, dim, 0);
        }
}

static void norms_of_other_families_agree(void **state) {
    SKIP_WITHOUT_CODE;
    for (uint32_t dim = 1; dim <= 2000; dim = dim * 3 + 1) {
        for (uint32_t normed = 0; normed <= 1; normed++) {
            struct kern_rmsnorm_add a = { .rows = 3, .dim = dim, .normed = normed, .eps = 1e-5f };
            a.x = example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            a.out = example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            a.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            a.next = dim % 2 ? a.x : example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            a.next_weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            assert_twins(KERN_rmsnorm_add, &a, FLOATS, "and the next", dim, normed, 0);
        }
        struct kern_layernorm b = { .rows = 2, .dim = dim, .biased = dim % 2, .eps = 1e-5f };
        b.x = example_tensor(&x, TENSOR_TYPE_F32, 2, dim);
        b.out = dim % 4 == 1 ? b.x : example_room(&x, TENSOR_TYPE_F32, b.x.bytes);
        b.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
        b.bias = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
        assert_twins(KERN_layernorm, &b, FLOATS, "", dim, 0, 0);
        struct kern_soft_cap c = { .rows = 2, .dim = dim, .cap = dim % 2 ? 0.5f : 30 };
        c.x = example_tensor(&x, TENSOR_TYPE_F32, 2, dim);
        assert_twins(KERN_soft_cap, &c, FLOATS, "", dim, 0, 0);
    }
}

/* Norms that also quantise: rows of several slabs, of a part of one, and more runs than threads. */
static void norms_quantise_what_they_wrote(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t widths[] = { 32, 256, 288, 2048, 4384 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (uint32_t run = 16; run <= 32; run += 16) {
            uint32_t dim = widths[i];
            struct kern_rmsnorm a = { .rows = 3, .dim = dim, .run = run, .eps = 1e-5f };
            a.x = example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            a.out = i % 2 ? a.x : example_room(&x, TENSOR_TYPE_F32, a.x.bytes);
            a.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            a.levels = example_levels_room(&x, 3, dim, run);
            assert_twins(KERN_rmsnorm, &a, FLOATS, "quantised", dim, run, 0);
            struct kern_layernorm b = { .rows = 2, .dim = dim, .biased = 1, .eps = 1e-5f };
            b.run = run;
            b.x = example_tensor(&x, TENSOR_TYPE_F32, 2, dim);
            b.out = i % 2 ? b.x : example_room(&x, TENSOR_TYPE_F32, b.x.bytes);
            b.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            b.bias = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            b.levels = example_levels_room(&x, 2, dim, run);
            assert_twins(KERN_layernorm, &b, FLOATS, "quantised", dim, run, 0);
            struct kern_rmsnorm_add c = { .rows = 3, .dim = dim, .normed = 1, .eps = 1e-5f };
            c.run = run;
            c.x = example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            c.out = example_tensor(&x, TENSOR_TYPE_F32, 3, dim);
            c.next = i % 2 ? c.x : example_room(&x, TENSOR_TYPE_F32, c.x.bytes);
            c.weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            c.next_weight = example_tensor(&x, TENSOR_TYPE_F32, 1, dim);
            c.levels = example_levels_room(&x, 3, dim, run);
            assert_twins(KERN_rmsnorm_add, &c, FLOATS, "quantised", dim, run, 0);
        }
}

static void quantize_gives_the_same_bytes(void **state) {
    SKIP_WITHOUT_CODE;
    const float nasty[] = { 0, -0.0f, 1e-38f, 3e38f, 1e-31f, -65504, 1e-45f, -1e30f };
    for (uint32_t run = 16; run <= 32; run += 16)
        for (uint32_t k = 32; k <= 8160; k = k * 2 + 32)
            for (int odd = 0; odd < 2; odd++) {
                struct kern_quantize a = { .tokens = 3, .k = k, .run = run };
                a.x = example_tensor(&x, TENSOR_TYPE_F32, 3, k);
                a.levels =
                    example_room(&x, TENSOR_TYPE_I8, spec_table[KERN_quantize].views[0].bytes(&a));
                for (uint32_t i = 0; odd && i < 8 && i * 32 < k; i++)
                    ((float *)a.x.ptr)[i * 32 + i] = nasty[i];
                if (!odd)
                    memset(a.x.ptr, 0, 32 * sizeof(float));
                assert_twins(KERN_quantize, &a, 0, "", run, k, 0);
            }
}

/* The levels do not matter then: their scale is NaN. */
static void quantize_spoils_only_the_run_that_is_not_finite(void **state) {
    SKIP_WITHOUT_CODE;
    const double run_of_20 = 1.0 / 20;
    const float bad[] = { INFINITY, -INFINITY, NAN };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kern_quantize a = { .tokens = 1, .k = 512, .run = 16 };
        a.x = example_tensor(&x, TENSOR_TYPE_F32, 1, 512);
        a.levels = example_room(&x, TENSOR_TYPE_I8, spec_table[KERN_quantize].views[0].bytes(&a));
        ((float *)a.x.ptr)[100] = bad[i];
        assert_twins(KERN_quantize, &a, run_of_20, "", (uint32_t)i, 0, 0);
        struct kern_matmul b = example_matmul(&x, TENSOR_TYPE_Q8_0, 2, 3, 512, false, false);
        ((float *)b.x.ptr)[100] = bad[i];
        b.levels = example_levels(&x, &b.x, 2, 512, 16);
        assert_twins(KERN_matmul, &b, SUMS, "not finite", (uint32_t)i, 0, 0);
    }
}

static void rope_agrees_up_to_distant_positions(void **state) {
    SKIP_WITHOUT_CODE;
    const int32_t pos[] = { 0, 1, 77, 4095, 131071, 1000003 };
    static const uint32_t shapes[][4] = { /* heads, kv_heads, head_size, rope_dims */
                                          { 4, 2, 64, 64 },
                                          { 1, 1, 128, 64 },
                                          { 3, 1, 80, 80 },
                                          { 2, 2, 600, 600 },
                                          { 8, 1, 2, 2 }
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint32_t halves = 0; halves < 2; halves++) {
            struct kern_rope a = { .tokens = 6, .heads = shapes[s][0], .kv_heads = shapes[s][1] };
            a.head_size = shapes[s][2];
            a.rope_dims = shapes[s][3];
            a.halves = halves;
            a.magnitude = 1.1f;
            a.q = example_tensor(&x, TENSOR_TYPE_F32, 6, (uint64_t)a.heads * a.head_size);
            a.k = example_tensor(&x, TENSOR_TYPE_F32, 6, (uint64_t)a.kv_heads * a.head_size);
            a.pos = example_ints(&x, pos, 6);
            a.freqs = example_tensor(&x, TENSOR_TYPE_F32, 1, a.rope_dims / 2);
            assert_twins(KERN_rope, &a, FLOATS, "", a.heads, a.head_size, halves);
        }
}

static void swiglu_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    const float nasty[] = { 0, 100, -100, 90, -90, 1e30f, -1e30f, -87.5f };
    for (uint32_t hidden = 1; hidden < 3000; hidden = hidden * 5 + 3) {
        struct kern_swiglu a = { .tokens = 2, .hidden = hidden };
        a.gelu = hidden / 2 % 2;
        a.ungated = hidden / 4 % 2;
        a.gate = example_tensor(&x, TENSOR_TYPE_F32, 2, hidden);
        a.up = example_tensor(&x, TENSOR_TYPE_F32, 2, hidden);
        a.out = hidden % 2 ? a.gate : example_room(&x, TENSOR_TYPE_F32, a.up.bytes);
        assert_twins(KERN_swiglu, &a, FLOATS, "", hidden, 0, 0);
    }
    struct kern_swiglu a = { .tokens = 1, .hidden = 8 };
    a.gate = example_tensor(&x, TENSOR_TYPE_F32, 1, 8);
    memcpy(a.gate.ptr, nasty, sizeof nasty);
    a.up = example_tensor(&x, TENSOR_TYPE_F32, 1, 8);
    a.out = example_room(&x, TENSOR_TYPE_F32, 32);
    assert_twins(KERN_swiglu, &a, FLOATS, "nasty", 0, 0, 0);
}

static void take_rows_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    const int32_t ids[] = { 4, 0, 4 };
    for (uint32_t dim = 1; dim < 1000; dim = dim * 4 + 1) {
        struct kern_take_rows a = { .count = 3, .tokens = 5, .dim = dim };
        a.x = example_tensor(&x, TENSOR_TYPE_F32, 5, dim);
        a.out = example_room(&x, TENSOR_TYPE_F32, (uint64_t)3 * dim * 4);
        a.ids = example_ints(&x, ids, 3);
        assert_twins(KERN_take_rows, &a, 0, "", dim, 0, 0);
    }
}

/* Two rows of 1 KiB are read and three written; ids are in a line of their own. */
static void the_interpreter_counts_lines_and_bytes(void **state) {
    SKIP_WITHOUT_CODE;
    enum { WIDTH = 256, LINES = (2 + 3) * WIDTH * 4 / 128 + 1 };
    void (*start)(void), (*stop)(struct greta_soft_count *);
    const int32_t ids[] = { 4, 0, 4 };
    struct greta_soft_count c = { 0 };
    struct kern_take_rows a = { .count = 3, .tokens = 5, .dim = WIDTH };
    *(void **)&start = gcore_runtime_symbol("greta_soft_count_start");
    *(void **)&stop = gcore_runtime_symbol("greta_soft_count_stop");
    assert_true(start && stop);
    a.x = example_tensor(&x, TENSOR_TYPE_F32, 5, WIDTH);
    a.out = example_room(&x, TENSOR_TYPE_F32, (uint64_t)3 * WIDTH * 4);
    a.ids = example_ints(&x, ids, 3);
    start();
    assert_twins(KERN_take_rows, &a, 0, "counted", WIDTH, 0, 0);
    stop(&c);
    assert_int_equal(c.lines, LINES);
    assert_true(c.bytes >= (uint64_t)2 * 3 * WIDTH * 4 && c.bytes < (uint64_t)7 * WIDTH * 4);
    assert_true(c.vector && c.memory && c.scalar_memory && !c.matrix && !c.lds);
    a.x = example_tensor(&x, TENSOR_TYPE_F32, 5, WIDTH); /* no longer counted */
    a.out = example_room(&x, TENSOR_TYPE_F32, (uint64_t)3 * WIDTH * 4);
    a.ids = example_ints(&x, ids, 3);
    assert_twins(KERN_take_rows, &a, 0, "not counted", WIDTH, 0, 0);
    start();
    stop(&c);
    assert_int_equal(c.lines + c.bytes + c.vector, 0);
}

/* ---- matmul ---------------------------------------------------------------------------------- */

static double limit_for(enum tensor_type type, uint32_t tokens) {
    return tokens > KERN_FEW && type == TENSOR_TYPE_Q6_K ? ROUNDED : SUMS;
}

static void matmul_of_every_type_agrees_for_few_tokens(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t n[] = { 1, 7, 8, 33 };
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t))
        for (uint32_t tokens = 1; tokens <= KERN_FEW; tokens++) {
            uint32_t rows = n[tokens - 1], k = 256 * (tokens % 3 + 1);
            if (tokens == 2) /* more runs than a wave has lanes */
                k = 256 * 17;
            struct kern_matmul a =
                example_matmul(&x, t->type, tokens, rows, k, tokens % 2, tokens > 2);
            assert_twins(KERN_matmul, &a, limit_for(t->type, tokens), t->name, tokens, rows, k);
        }
}

static void matmul_of_every_type_agrees_for_many_tokens(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t tokens[] = { 5, 64, 70 }, n[] = { 65, 64, 5 };
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t))
        for (int i = 0; i < 3; i++) {
            uint32_t k = i ? 256 : 1024;
            struct kern_matmul a = example_matmul(&x, t->type, tokens[i], n[i], k, i == 1, i == 2);
            assert_twins(KERN_matmul, &a, limit_for(t->type, tokens[i]), t->name, tokens[i], n[i],
                         k);
        }
}

/* A weight of another type in the same launch makes activations of K types have a scale for 16
 * elements; three slabs of them, rows and tokens that are not whole tiles. */
static void matmul_of_large_blocks_agrees_with_scales_of_16(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 67, N = 37, K = 768 };
    for (const struct tensor_type_info *t = next_type(NULL); t; t = next_type(t)) {
        if (t->block_elements != 256)
            continue;
        struct kern_matmul a = example_matmul(&x, t->type, TOKENS, N, K, false, false);
        a.run = 16;
        a.levels = example_levels(&x, &a.x, TOKENS, K, 16);
        assert_twins(KERN_matmul, &a, limit_for(t->type, TOKENS), t->name, TOKENS, N, K);
    }
}

/* Eleven blocks: a stage of the matrix cores has two, and what stands in for the twelfth must not
 * count. */
static void an_infinite_scale_of_the_last_block_gives_infinite_results(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 9, N = 5, K = 352, BLOCK = 34, ROW = K / 32 * BLOCK };
    struct kern_matmul a = example_matmul(&x, TENSOR_TYPE_Q8_0, TOKENS, N, K, false, false);
    uint8_t *last = (uint8_t *)a.weight.ptr + ROW - BLOCK;
    const uint16_t infinite = 0x7c00;
    memcpy(last, &infinite, sizeof infinite);
    for (int i = 0; i < BLOCK - 2; i++)
        last[2 + i] = 1;
    for (int t = 0; t < TOKENS; t++)
        for (int i = K - 32; i < K; i++)
            ((float *)a.x.ptr)[t * K + i] = 1; /* no sum of the block is 0 */
    a.levels = example_levels(&x, &a.x, TOKENS, K, a.run);
    assert_twins(KERN_matmul, &a, SUMS, "infinite", TOKENS, N, K);
}

/* Some matrix cores take halves below 2^-14 for 0. */
static void small_halves_count(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 9, N = 7, K = 256 };
    static const uint16_t bits[] = { 0x83ff, 0x8001 }; /* sign and fraction; the smallest of all */
    for (uint32_t b = 0; b < 2; b++) {
        struct kern_matmul a = example_matmul(&x, TENSOR_TYPE_F16, TOKENS, N, K, false, false);
        uint16_t *weight = a.weight.ptr;
        for (int i = 0; weight && i < N * K; i++)
            weight[i] &= bits[b];
        assert_twins(KERN_matmul, &a, SUMS, "small", TOKENS, N, b);
    }
}

/* Weights and activations of any size; rows and tokens that are one more than a tile. With every
 * 50th activation 30 times as large, rests of the others are few numbers of 8 bits (halves.hip).
 * Last, every token has one that is as large, each at another place of its 64 elements. */
static void halves_of_any_size_count(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 65, N = 129, K = 200 };
    static const uint16_t exponents[] = { 0, 1, 14, 29 };
    static const float sizes[] = { 1e-30f, 1, 1e30f, 1, 1 };
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const bool outliers = i == 3, single = i == 4;
            struct kern_matmul a = example_matmul(&x, TENSOR_TYPE_F16, TOKENS, N, K, false, false);
            uint16_t *weight = a.weight.ptr;
            float *in = a.x.ptr;
            assert_false(x.failed);
            for (int j = 0; j < N * K; j++)
                weight[j] = (uint16_t)((weight[j] & 0x83ff) | exponents[e] << 10);
            for (int j = 0; j < TOKENS * K; j++)
                in[j] *= sizes[i] * (outliers && j % 50 == 0 ? 30.0f : 1.0f);
            for (int j = 0; single && j < TOKENS; j++)
                in[j * K + 3 * j] = j % 2 ? 30 : -30;
            assert_twins(KERN_matmul, &a, outliers || single ? OUTLIERS : SUMS, "of any size",
                         exponents[e], (uint32_t)i, 0);
        }
}

static void infinite_halves_give_infinite_results(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 9, N = 7, K = 200 };
    for (int in_weight = 0; in_weight < 2; in_weight++) {
        struct kern_matmul a = example_matmul(&x, TENSOR_TYPE_F16, TOKENS, N, K, false, false);
        assert_false(x.failed);
        if (in_weight)
            ((uint16_t *)a.weight.ptr)[3 * K + 5] = 0xfc00;
        else
            ((float *)a.x.ptr)[3 * K + 150] = INFINITY;
        assert_twins(KERN_matmul, &a, SUMS, "infinite", (uint32_t)in_weight, 0, 0);
    }
}

/* Makes what levels have beyond the last run of 32 elements no numbers: nobody may use it. */
static void spoil_levels(struct kern_view *levels, uint32_t tokens, uint32_t k) {
    enum { SLAB = 256, RUNS = SLAB / 16 };
    const uint32_t slabs = (k + SLAB - 1) / SLAB;
    float *scale = (float *)(void *)((char *)levels->ptr + (size_t)slabs * tokens * SLAB);
    float *sum = scale + (size_t)slabs * tokens * RUNS;
    assert_false(x.failed);
    for (uint32_t t = 0; t < tokens; t++)
        for (uint32_t i = k / 16; i < slabs * RUNS; i++) {
            size_t at = ((size_t)(i / RUNS) * tokens + t) * RUNS + i % RUNS;
            scale[at] = sum[at] = NAN;
            memset((char *)levels->ptr + at * 16, 0x80, 16);
        }
}

/* Blocks of 32 elements, and floats, come in rows that are no multiples of 256. */
static void matmul_agrees_for_odd_widths(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[] = { TENSOR_TYPE_Q4_0, TENSOR_TYPE_Q8_0, TENSOR_TYPE_Q5_1,
                                              TENSOR_TYPE_IQ4_NL };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (uint32_t tokens = 2; tokens <= 9; tokens += 7)
            for (uint32_t k = 32; k <= 352; k += 160) {
                struct kern_matmul a = example_matmul(&x, types[i], tokens, 9, k, false, true);
                spoil_levels(&a.levels, tokens, k);
                assert_twins(KERN_matmul, &a, limit_for(types[i], tokens), "", tokens, types[i], k);
            }
    static const enum tensor_type floats[] = { TENSOR_TYPE_F32, TENSOR_TYPE_F16, TENSOR_TYPE_BF16 };
    for (size_t i = 0; i < 3; i++)
        for (uint32_t tokens = 2; tokens <= 6; tokens += 2)
            for (uint32_t k = 1; k <= 603; k = k * 8 + 3) {
                struct kern_matmul a = example_matmul(&x, floats[i], tokens, 11, k, true, false);
                assert_twins(KERN_matmul, &a, SUMS, "", tokens, floats[i], k);
            }
}

/* Three tiles of rows, the last with four of them or one, added to what is there: none may be left
 * out or done twice. Rows that end one element short of whole loads, and of whole stages. */
static void matmul_agrees_for_several_tiles_of_rows(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_BF16, TENSOR_TYPE_Q8_0 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (uint32_t k = 39; k <= 127; k += 88) {
            uint32_t width = tensor_type_is_float(types[i]) ? k : 96, rows = k == 39 ? 260 : 257;
            struct kern_matmul a = example_matmul(&x, types[i], 6, rows, width, true, true);
            assert_twins(KERN_matmul, &a, SUMS, "tiles", types[i], rows, width);
        }
}

static void fused_matmuls_agree_for_mixed_types(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type mixed[][3] = {
        { TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q6_K },
        { TENSOR_TYPE_F16, TENSOR_TYPE_F16, TENSOR_TYPE_F16 },
        { TENSOR_TYPE_Q8_0, TENSOR_TYPE_F32, TENSOR_TYPE_Q3_K },
    };
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        for (uint32_t tokens = 1; tokens <= 66; tokens = tokens * 5 + 1) {
            struct kern_matmul_qkv a =
                example_matmul_qkv(&x, mixed[i], tokens, 72, 40, 256, i == 1);
            assert_twins(KERN_matmul_qkv, &a, ROUNDED, "", tokens, (uint32_t)i, 0);
            struct kern_matmul_gate_up b = example_matmul_gate_up(&x, mixed[i], tokens, 70, 256);
            assert_twins(KERN_matmul_gate_up, &b, ROUNDED, "", tokens, (uint32_t)i, 0);
        }
}

/* Matrices that are whole tiles: the next begins with the next workgroup. */
static void fused_matmuls_of_whole_tiles_agree(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[] = { TENSOR_TYPE_Q8_0, TENSOR_TYPE_Q8_0,
                                              TENSOR_TYPE_Q8_0 };
    for (uint32_t tokens = KERN_FEW; tokens <= KERN_TILE_TOKENS; tokens *= 16) {
        struct kern_matmul_qkv a = example_matmul_qkv(&x, types, tokens, 256, 128, 32, false);
        assert_twins(KERN_matmul_qkv, &a, SUMS, "whole tiles", tokens, 0, 0);
        struct kern_matmul_gate_up b = example_matmul_gate_up(&x, types, tokens, 128, 32);
        assert_twins(KERN_matmul_gate_up, &b, SUMS, "whole tiles", tokens, 0, 0);
    }
    for (uint32_t tokens = 1; tokens <= 65; tokens += 64) { /* one row and one token more */
        struct kern_matmul_qkv a = example_matmul_qkv(&x, types, tokens, 129, 129, 32, false);
        assert_twins(KERN_matmul_qkv, &a, SUMS, "tiles and one", tokens, 0, 0);
        struct kern_matmul_gate_up b = example_matmul_gate_up(&x, types, tokens, 129, 32);
        assert_twins(KERN_matmul_gate_up, &b, SUMS, "tiles and one", tokens, 0, 0);
    }
}

static void assert_activate(const enum tensor_type types[2], uint32_t tokens, uint32_t hidden,
                            uint32_t dim, uint32_t run) {
    for (uint32_t way = 0; way < 4; way++) {
        struct kern_matmul_activate a =
            example_matmul_activate(&x, types, tokens, hidden, dim, run, way / 2);
        a.gelu = way % 2;
        assert_twins(KERN_matmul_activate, &a, SUMS, way / 2 ? "ungated" : "gated", tokens, hidden,
                     run);
    }
}

/* Tiles that end with a row or a token, of both kinds of levels, and gates of another type than
 * what they are multiplied with. */
static void activated_tiles_agree_and_quantise_what_they_wrote(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[][2] = { { TENSOR_TYPE_Q8_0, TENSOR_TYPE_Q8_0 },
                                                 { TENSOR_TYPE_F16, TENSOR_TYPE_Q4_0 } };
    static const struct {
        uint32_t tokens, hidden, run;
    } shapes[] = { { 5, 129, 0 }, { 64, 128, 16 }, { 65, 160, 32 }, { 130, 288, 16 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t way = 0; way < 4; way++) {
            struct kern_matmul_gate_up a = example_activated_gate_up(
                &x, types[way % 2], shapes[i].tokens, shapes[i].hidden, 32, shapes[i].run, way / 2);
            a.gelu = way % 2;
            /* a product of two sums */
            assert_twins(KERN_matmul_gate_up, &a, 2 * SUMS, way / 2 ? "ungated" : "gated",
                         shapes[i].tokens, shapes[i].hidden, shapes[i].run);
        }
}

static void activated_matmuls_agree_and_quantise_what_they_wrote(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type mixed[][2] = {
        { TENSOR_TYPE_Q4_K, TENSOR_TYPE_Q4_K }, { TENSOR_TYPE_F16, TENSOR_TYPE_F16 },
        { TENSOR_TYPE_Q8_0, TENSOR_TYPE_F32 },  { TENSOR_TYPE_F32, TENSOR_TYPE_Q3_K },
        { TENSOR_TYPE_Q6_K, TENSOR_TYPE_Q5_0 }, { TENSOR_TYPE_BF16, TENSOR_TYPE_IQ4_XS },
    };
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        for (uint32_t tokens = 1; tokens <= KERN_FEW; tokens++) {
            assert_activate(mixed[i], tokens, 32 * (1 + tokens), 256, tokens % 2 ? 16 : 32);
            assert_activate(mixed[i], tokens, 33 + tokens, 512, 0); /* not whole groups */
        }
    assert_activate(mixed[0], 2, 544, 256, 32); /* more than two slabs of levels */
    assert_activate(mixed[4], 3, 544, 256, 16);
    assert_activate(mixed[0], 2, 256, 256, 32); /* a whole slab */
}

/* ---- the cache ------------------------------------------------------------------------------- */

enum { TEXTS = 3 };

/* Texts of these lengths, of which the last `tokens` positions are in the batch, with their blocks
 * scattered over a cache that has a few more. */
struct texts {
    uint32_t count, length[TEXTS], tokens[TEXTS];
};

struct paged {
    struct kern_view pos, seqs, tables;
    uint32_t tokens, width, rows, longest;
};

static struct paged scatter(const struct texts *t) {
    struct paged p = { 0 };
    int32_t pos[512], seqs[512], tables[512];
    uint32_t blocks = 0, next = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        p.longest = t->length[i] > p.longest ? t->length[i] : p.longest;
        blocks += (uint32_t)KERN_BLOCKS(t->length[i]);
    }
    p.width = (uint32_t)KERN_BLOCKS(p.longest) + 1;
    p.rows = (blocks + 2) * KERN_BLOCK;
    memset(tables, 0, sizeof tables);
    for (uint32_t i = 0; i < t->count; i++)
        for (uint32_t b = 0; b < KERN_BLOCKS(t->length[i]); b++)
            tables[i * p.width + b] = (int32_t)(blocks - next++);
    for (uint32_t i = 0; i < t->count; i++)
        for (uint32_t j = 0; j < t->tokens[i]; j++, p.tokens++) {
            assert_true(p.tokens < 512);
            pos[p.tokens] = (int32_t)(t->length[i] - t->tokens[i] + j);
            seqs[p.tokens] = (int32_t)i;
        }
    p.pos = example_ints(&x, pos, p.tokens);
    p.seqs = example_ints(&x, seqs, p.tokens);
    p.tables = example_ints(&x, tables, (uint64_t)t->count * p.width);
    return p;
}

static const struct texts batches[] = {
    { 1, { 1 }, { 1 } },
    { 1, { 33 }, { 33 } },
    { 1, { 300 }, { 1 } },
    { 3, { 70, 5, 129 }, { 1, 1, 1 } },
    { 3, { 40, 64, 90 }, { 7, 1, 30 } },
    { 2, { 300, 40 }, { 1, 1 } }, /* the second sees nothing of the second range */
    { 2, { 5, 7 }, { 2, 2 } },    /* the second goes on at the position where the first ends */
};
enum { BATCHES = sizeof batches / sizeof *batches };

static void kv_store_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const enum tensor_type types[] = { TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0 };
    for (int i = 0; i < 2 * BATCHES; i++) {
        const struct texts *t = &batches[i / 2];
        struct paged p = scatter(t);
        uint32_t width = i % 3 ? 64 : 288;
        if (i < 2) /* more blocks than a workgroup has threads */
            width = 32 * 300;
        struct kern_kv_store a = { .tokens = p.tokens, .width = width, .rows = p.rows };
        a.sequences = t->count;
        a.table_width = p.width;
        a.pos = p.pos;
        a.seqs = p.seqs;
        a.tables = p.tables;
        a.keys = example_tensor(&x, types[i % 2], p.rows, width);
        a.values = example_tensor(&x, types[i % 2], p.rows, width);
        a.k = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, width);
        a.v = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, width);
        ((float *)a.k.ptr)[1] = 1e-6f;    /* a subnormal half */
        for (uint32_t j = 0; j < 32; j++) /* and scales that are one */
            ((float *)a.k.ptr)[width - 32 + j] = 1e-6f * (float)(i * 32 + (int)j);
        memset(a.v.ptr, 0, 32 * sizeof(float));
        /* the scale of Q8_0 is 1, or the largest half, which is less than it would take */
        ((float *)a.v.ptr)[40] = i % 4 < 2 ? 127 : -1e9f;
        ((float *)a.v.ptr)[41] = i % 4 < 2 ? -127 : 1e9f;
        assert_twins(KERN_kv_store, &a, 0, "", (uint32_t)i, width, 0);
    }
}

struct heads {
    uint32_t heads, kv_heads, size, window;
    float cap;
};

/* Rows of the cache that no token of the batch sees, because its window begins after them, are not
 * numbers. */
static void spoil_unseen(const struct paged *p, const struct texts *t, uint32_t window,
                         struct kern_view *cache) {
    const uint64_t row_bytes = cache->bytes / p->rows;
    const int32_t *tables = p->tables.ptr;
    for (uint32_t i = 0; window && i < t->count; i++) {
        uint32_t first = t->length[i] - t->tokens[i] + 1; /* what the first token sees ends here */
        for (uint32_t j = 0; j + window < first; j++) {
            int32_t block = tables[i * p->width + j / KERN_BLOCK];
            memset((char *)cache->ptr + row_bytes * ((uint64_t)block * KERN_BLOCK + j % KERN_BLOCK),
                   0xff, row_bytes);
        }
    }
}

/* Makes every query the token's own key, which then has the highest score. */
static void seek_own_keys(struct kern_attention *a) {
    const uint32_t group = a->heads / a->kv_heads;
    for (uint32_t h = 0; h < a->tokens * a->heads; h++)
        memcpy((float *)a->q.ptr + (size_t)h * a->head_size,
               (float *)a->k.ptr + (size_t)(h / group) * a->head_size,
               a->head_size * sizeof(float));
}

static void assert_scaled_attention(const struct texts *t, const struct heads *h,
                                    enum tensor_type type, bool fresh, bool divided, float scale) {
    struct paged p = scatter(t);
    uint64_t Q = (uint64_t)h->heads * h->size, K = (uint64_t)h->kv_heads * h->size;
    uint32_t ranges = divided ? (uint32_t)KERN_RANGES(p.longest) : 1;
    struct kern_attention a = { .tokens = p.tokens, .heads = h->heads, .kv_heads = h->kv_heads };
    a.head_size = h->size;
    a.rows = p.rows;
    a.sequences = t->count;
    a.table_width = p.width;
    a.window = h->window;
    a.ranges = ranges;
    a.fresh = fresh;
    a.cap = h->cap;
    a.scale = scale / sqrtf((float)h->size);
    a.pos = p.pos;
    a.seqs = p.seqs;
    a.tables = p.tables;
    a.out = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, Q);
    a.parts = example_tensor(&x, TENSOR_TYPE_F32, p.tokens * h->heads * ranges, KERN_PART(h->size));
    a.q = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, Q);
    a.k = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, K);
    a.v = example_tensor(&x, TENSOR_TYPE_F32, p.tokens, K);
    a.keys = example_tensor(&x, type, p.rows, K);
    a.values = example_tensor(&x, type, p.rows, K);
    assert_false(x.failed);
    spoil_unseen(&p, t, h->window, &a.keys);
    spoil_unseen(&p, t, h->window, &a.values);
    if (scale > 2)
        seek_own_keys(&a);
    /* what a score is off grows with it */
    assert_twins(KERN_attention, &a, SUMS * scale / 2, divided ? "divided" : "whole", p.tokens,
                 h->size, type);
}

static void assert_attention(const struct texts *t, const struct heads *h, enum tensor_type type,
                             bool fresh, bool divided) {
    assert_scaled_attention(t, h, type, fresh, divided, 2);
}

static void attention_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const struct heads shapes[] = {
        { 4, 2, 64, 0, 0 },  { 8, 1, 128, 0, 0 },  { 10, 1, 32, 20, 0 },
        { 2, 2, 256, 0, 5 }, { 3, 3, 96, 100, 0 }, { 1, 1, 32, 1, 0 },
    };
    for (size_t h = 0; h < sizeof shapes / sizeof *shapes; h++)
        for (int b = 0; b < BATCHES; b++) {
            enum tensor_type type = (h + b) % 2 ? TENSOR_TYPE_Q8_0 : TENSOR_TYPE_F16;
            bool fresh = (h + b) % 3 == 0;
            assert_attention(&batches[b], &shapes[h], type, fresh, false);
            if (KERN_RANGES(batches[b].length[0]) > 1)
                assert_attention(&batches[b], &shapes[h], type, fresh, true);
        }
    static const struct heads odd[] = { /* no multiples of 8 */
                                        { 2, 1, 20, 0, 0 },
                                        { 9, 1, 30, 0, 0 },
                                        { 3, 1, 33, 0, 0 }
    };
    for (size_t h = 0; h < sizeof odd / sizeof *odd; h++)
        assert_attention(&batches[3], &odd[h], TENSOR_TYPE_F16, false, false);
    assert_attention(&batches[BATCHES - 1], &shapes[0], TENSOR_TYPE_F16, true, false);
    /* e to the power of these scores would overflow */
    assert_scaled_attention(&batches[3], &shapes[0], TENSOR_TYPE_F16, true, false, 100);
    assert_scaled_attention(&batches[2], &shapes[0], TENSOR_TYPE_F16, false, true, 100);
}

/* Few rows of parts: each is a range of its own in what a launch states to have touched, and those
 * are limited. */
static const struct texts steps[] = {
    { 1, { 1 }, { 1 } },
    { 1, { 600 }, { 1 } },
    { 3, { 70, 5, 129 }, { 1, 1, 1 } },
    { 3, { 256, 257, 33 }, { 1, 1, 1 } }, /* the last position of a range, and the first */
    { 3, { 20, 21, 101 }, { 1, 1, 1 } },  /* what a window just holds, and one position more */
};
enum { STEPS = sizeof steps / sizeof *steps };

/* A key that rounds to its other neighbour in the cache is one in 127 of it off: hence the limit
 * for Q8_0. */
static void assert_step(const struct texts *t, const struct heads *h, enum tensor_type type,
                        uint32_t way, bool divided) {
    struct paged p = scatter(t);
    uint64_t K = (uint64_t)h->kv_heads * h->size;
    uint32_t pieces = h->heads / h->kv_heads * h->size, run = pieces % 32 ? 0 : way % 3 * 16;
    struct kern_attention_step a =
        example_attention_step(&x, p.tokens, h->heads, h->kv_heads, h->size,
                               divided ? (uint32_t)KERN_RANGES(p.longest) : 1, run);
    a.rope_dims = h->size > 64 && way % 2 ? h->size / 2 : h->size;
    a.halves = way / 2 % 2;
    a.normed = way % 2;
    a.fresh = way / 4 % 2;
    a.rows = p.rows;
    a.sequences = t->count;
    a.table_width = p.width;
    a.window = h->window;
    a.cap = h->cap;
    a.scale = 1 / sqrtf((float)h->size);
    a.pos = p.pos;
    a.seqs = p.seqs;
    a.tables = p.tables;
    a.keys = example_tensor(&x, type, p.rows, K);
    a.values = example_tensor(&x, type, p.rows, K);
    assert_false(x.failed);
    spoil_unseen(&p, t, h->window, &a.keys);
    spoil_unseen(&p, t, h->window, &a.values);
    assert_twins(KERN_attention_step, &a, type == TENSOR_TYPE_F16 ? 3e-3 : 2e-2,
                 divided ? "divided" : "whole", p.tokens, h->size, way);
}

static void attention_of_a_step_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const struct heads shapes[] = {
        { 4, 2, 64, 0, 0 },  { 8, 1, 128, 0, 0 },  { 10, 1, 32, 20, 0 },
        { 2, 2, 256, 0, 5 }, { 3, 3, 96, 100, 0 }, { 9, 1, 20, 0, 0 },
    };
    uint32_t way = 0;
    for (size_t h = 0; h < sizeof shapes / sizeof *shapes; h++)
        for (int b = 0; b < STEPS; b++, way++) {
            bool whole_blocks = shapes[h].size % 32 == 0;
            enum tensor_type type = way % 2 && whole_blocks ? TENSOR_TYPE_Q8_0 : TENSOR_TYPE_F16;
            assert_step(&steps[b], &shapes[h], type, way + way / 4, false);
            if (b == 1 || (b == 3 && shapes[h].heads <= 8))
                assert_step(&steps[b], &shapes[h], type, way + way / 4, true);
        }
    const struct heads many = { 72, 1, 64, 0, 0 }; /* more to quantise than a group has threads */
    assert_step(&steps[0], &many, TENSOR_TYPE_F16, 1, false);
}

static void turns_agree_up_to_distant_positions(void **state) {
    SKIP_WITHOUT_CODE;
    const int32_t pos[] = { 0, 1, 77, 4095, 131071, 1000003 };
    for (uint32_t dims = 2; dims <= 600; dims = dims * 3 + 2) {
        struct kern_rope_turns a = { .tokens = 6, .rope_dims = dims, .magnitude = 1.1f };
        a.turns = example_room(&x, TENSOR_TYPE_F32, (uint64_t)6 * dims * 4);
        a.pos = example_ints(&x, pos, 6);
        a.freqs = example_tensor(&x, TENSOR_TYPE_F32, 1, dims / 2);
        assert_twins(KERN_rope_turns, &a, FLOATS, "", dims, 0, 0);
    }
}

static void attention_merge_agrees(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t sizes[] = { 20, 33, 74, 128 }; /* 33: one more than whole lanes */
    for (uint32_t ranges = 1; ranges <= 5; ranges++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const uint32_t size = sizes[s];
            struct kern_attention_merge a = { .tokens = 2, .heads = 3, .head_size = size };
            a.ranges = ranges;
            a.out = example_tensor(&x, TENSOR_TYPE_F32, 6, size);
            a.parts = example_tensor(&x, TENSOR_TYPE_F32, 6 * ranges, KERN_PART(size));
            float *parts = a.parts.ptr;
            for (uint32_t i = 0; i < 6 * ranges; i++) {
                float *last = parts + i * KERN_PART(size) + KERN_PART_SUMS(size);
                bool empty = ranges > 1 && i % ranges == 1; /* nothing was seen there */
                last[0] = empty ? -3.4e38f : last[0] * 20;
                if (!empty && i / ranges % 2) /* far from the first, which is not the highest */
                    last[0] = 5 + 200 * (float)(i % ranges);
                if (i == 0) /* as queries of nothing but zeros have it */
                    last[0] = 0;
                last[1] = empty ? 0 : 1 + fabsf(last[1]);
                for (int j = 2; j < KERN_LANES; j++) /* what nobody reads */
                    last[j] = empty ? 1 : 0;
            }
            assert_twins(KERN_attention_merge, &a, SUMS, "", ranges, size, 0);
        }
}

/* ---- drawing tokens -------------------------------------------------------------------------- */

/* Exactly: the same tokens. */
static void tokens_are_drawn_as_native_code_draws_them(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t vocabs[] = { 1, 5, 127, 300, 1024, 4095, 4096, 4097, 8192, 20000 };
    static const uint32_t keep[][4] = { { 1, 40, 2, 128 }, { 128, 1, 64, 5 } };
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++)
        for (int k = 0; k < 2; k++) {
            struct kern_shortlist list = example_shortlist(&x, 5, vocabs[v], keep[k]);
            assert_twins(KERN_shortlist, &list, 0, "", vocabs[v], keep[k][0], 0);
            struct kern_sample sample = example_sample(&x, 9, vocabs[v], keep[k]);
            sample.advance = v % 2; /* if not, ids and positions are nowhere */
            assert_twins(KERN_sample, &sample, 0, "", vocabs[v], keep[k][0], 0);
        }
}

/* Rules that leave one candidate or two, hot enough that each of them is drawn, with the least and
 * the largest draw. From many candidates the largest may be rounded to more than all their weights
 * together. */
static void rules_that_leave_few_draw_what_native_code_draws(void **state) {
    SKIP_WITHOUT_CODE;
    const double largest = 1 - 0x1p-53;
    const struct choose_rule rules[] = {
        { 40, 0.001f, 0, 0.01, largest }, { 40, 1, 1, 0.01, largest },   { 40, 1, 0.99f, 0.01, 0 },
        { 2, 1, 0, 0.01, largest },       { 3, 0.5f, 0, 0.01, largest }, { 77, 0.9f, 0.2f, 1, 0 },
    };
    enum { RULES = sizeof rules / sizeof *rules, ROWS = RULES + 32 };
    static const uint32_t vocabs[] = { 2, 300, 4096 }, keep[4] = { 40, 40, 40, 40 };
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        struct kern_sample a = example_sample(&x, ROWS, vocabs[v], keep);
        for (size_t i = 0; i < ROWS; i++) {
            const struct choose_rule many = { 128 - (uint32_t)i, i % 2 ? 1 : 0.9f, 0,
                                              0.01 * (double)i, largest };
            choose_write(i < RULES ? &rules[i] : &many,
                         (int32_t *)a.settings.ptr + i * KERN_SETTINGS);
        }
        assert_twins(KERN_sample, &a, 0, "few", vocabs[v], 0, 0);
    }
}

/* Where in a row logits of a kind are: the first, the last, all, or all but the first. */
static void put_logits(struct kern_view *logits, uint32_t vocab, uint32_t row, float logit,
                       int where) {
    float *to = (float *)logits->ptr + (size_t)row * vocab;
    for (uint32_t i = 0; i < vocab; i++)
        if (where == 3 || (where == 1 && i == 0) || (where == 2 && i == vocab - 1) ||
            (where == 4 && i > 0))
            to[i] = logit;
}

static void broken_logits_and_equal_ones_give_the_same_answers(void **state) {
    SKIP_WITHOUT_CODE;
    static const uint32_t keep[4] = { 1, 40, 3, 100 };
    static const float logits[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, -NAN, 1e-42f, 3e38f };
    static const uint32_t vocabs[] = { 700, 4096, 9200 }; /* less than a list, one, and more */
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++)
        for (int where = 1; where <= 4; where++) {
            uint32_t vocab = vocabs[v];
            struct kern_shortlist list = example_shortlist(&x, 8, vocab, keep);
            for (uint32_t row = 0; row < 8; row++)
                put_logits(&list.logits, vocab, row, logits[row], where);
            assert_twins(KERN_shortlist, &list, 0, "", vocab, (uint32_t)where, 0);
            struct kern_sample a = example_sample(&x, 8, vocab, keep);
            for (uint32_t row = 0; row < 8; row++)
                put_logits(&a.logits, vocab, row, logits[row], where);
            list.logits = a.logits;
            list.lists = a.lists;
            list.settings = a.settings;
            struct greta_soft_work work = { .last = 8 * KERN_LISTS(vocab), .workers = 1 };
            cpu_shortlist(&work, &list);
            assert_twins(KERN_sample, &a, 0, "", vocab, (uint32_t)where, 0);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, need_code, forget)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(embed_agrees_for_every_type),
        TEST(rmsnorm_agrees),
        TEST(norms_of_other_families_agree),
        TEST(norms_quantise_what_they_wrote),
        TEST(quantize_gives_the_same_bytes),
        TEST(quantize_spoils_only_the_run_that_is_not_finite),
        TEST(rope_agrees_up_to_distant_positions),
        TEST(swiglu_agrees),
        TEST(take_rows_agrees),
        TEST(the_interpreter_counts_lines_and_bytes),
        TEST(matmul_of_every_type_agrees_for_few_tokens),
        TEST(matmul_of_every_type_agrees_for_many_tokens),
        TEST(matmul_of_large_blocks_agrees_with_scales_of_16),
        TEST(an_infinite_scale_of_the_last_block_gives_infinite_results),
        TEST(small_halves_count),
        TEST(halves_of_any_size_count),
        TEST(infinite_halves_give_infinite_results),
        TEST(matmul_agrees_for_odd_widths),
        TEST(matmul_agrees_for_several_tiles_of_rows),
        TEST(fused_matmuls_agree_for_mixed_types),
        TEST(fused_matmuls_of_whole_tiles_agree),
        TEST(activated_tiles_agree_and_quantise_what_they_wrote),
        TEST(activated_matmuls_agree_and_quantise_what_they_wrote),
        TEST(kv_store_agrees),
        TEST(attention_agrees),
        TEST(attention_merge_agrees),
        TEST(turns_agree_up_to_distant_positions),
        TEST(attention_of_a_step_agrees),
        TEST(tokens_are_drawn_as_native_code_draws_them),
        TEST(rules_that_leave_few_draw_what_native_code_draws),
        TEST(broken_logits_and_equal_ones_give_the_same_answers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
