/* Small kernels on the GPU against native code; test_hip_matmul.c and test_hip_attention.c have the
 * large ones. */
#include "unit/hip_twins.h"

#include <math.h>
#include <stdlib.h>

#include <greta/soft.h>

#include "kernels/cpu/choose.h"
#include "kernels/cpu/native.h"

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
            assert_twins(KERN_rmsnorm_add, &a, 2 * FLOATS, "and the next", dim, normed, 0);
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
            assert_twins(KERN_rmsnorm_add, &c, 2 * FLOATS, "quantised", dim, run, 0);
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
        TEST(tokens_are_drawn_as_native_code_draws_them),
        TEST(rules_that_leave_few_draw_what_native_code_draws),
        TEST(broken_logits_and_equal_ones_give_the_same_answers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
