/* Matrix products on the GPU against native code: types of weights, odd shapes, tiles, fused
 * products. */
#include "unit/hip_twins.h"

#include <math.h>
#include <stdlib.h>

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
static void an_infinite_scale_or_minimum_of_the_last_block_gives_infinite_results(void **state) {
    SKIP_WITHOUT_CODE;
    enum { TOKENS = 9, N = 5, RUN = 32, K = 11 * RUN };
    static const struct {
        enum tensor_type type;
        size_t at;     /* bytes before the scale or minimum */
        size_t levels; /* and before the levels */
    } blocks[] = { { TENSOR_TYPE_Q8_0, 0, 2 },
                   { TENSOR_TYPE_Q4_1, 2, 4 },
                   { TENSOR_TYPE_Q5_1, 2, 8 } };
    const uint16_t infinite = 0x7c00;
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        enum tensor_type type = blocks[b].type;
        struct kern_matmul a = example_matmul(&x, type, TOKENS, N, K, false, false);
        size_t block = tensor_type_row_bytes(type, RUN);
        uint8_t *last = (uint8_t *)a.weight.ptr + 10 * block;
        assert_false(x.failed);
        memcpy(last + blocks[b].at, &infinite, sizeof infinite);
        memset(last + blocks[b].levels, 1, block - blocks[b].levels);
        for (int t = 0; t < TOKENS; t++)
            for (int i = K - RUN; i < K; i++)
                ((float *)a.x.ptr)[t * K + i] = 1; /* no sum of the block is 0 */
        a.levels = example_levels(&x, &a.x, TOKENS, K, a.run);
        assert_twins(KERN_matmul, &a, SUMS, tensor_type_find(type)->name, TOKENS, N, K);
    }
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
            /* A gated result is a product of two sums. Where one is large, the other's error counts
             * as many times: 3.03 SUMS were the most with a dozen seeds. */
            assert_twins(KERN_matmul_gate_up, &a, way / 2 ? SUMS : 4 * SUMS,
                         way / 2 ? "ungated" : "gated", shapes[i].tokens, shapes[i].hidden,
                         shapes[i].run);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(matmul_of_every_type_agrees_for_few_tokens),
        TEST(matmul_of_every_type_agrees_for_many_tokens),
        TEST(matmul_of_large_blocks_agrees_with_scales_of_16),
        TEST(an_infinite_scale_or_minimum_of_the_last_block_gives_infinite_results),
        TEST(small_halves_count),
        TEST(halves_of_any_size_count),
        TEST(infinite_halves_give_infinite_results),
        TEST(matmul_agrees_for_odd_widths),
        TEST(matmul_agrees_for_several_tiles_of_rows),
        TEST(fused_matmuls_agree_for_mixed_types),
        TEST(fused_matmuls_of_whole_tiles_agree),
        TEST(activated_tiles_agree_and_quantise_what_they_wrote),
        TEST(activated_matmuls_agree_and_quantise_what_they_wrote),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
