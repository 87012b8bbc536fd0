/* Tensor types: layouts bit for bit, errors of the encoders, and what must never happen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/quant/quant.h"
#include "model/quant/quant_half.h"
#include "model/quant/quant_internal.h"
#include "model/quant/quant_super.h"
#include "test.h"

/* One line per type: the hash of what the format's reference implementation decodes from a fixed
 * stream of random bytes, and the relative RMS error of its encoder on two sets of numbers. */
static const struct golden {
    enum tensor_type type;
    uint64_t decoded;
    double error, error_outliers;
} goldens[] = {
    { TENSOR_TYPE_F32, 0x6e7ebb2a2ea2b9b3u, 0, 0 },
    { TENSOR_TYPE_F16, 0x6a03eb774387ee0eu, 0.000209, 0.000202 },
    { TENSOR_TYPE_BF16, 0x00cb83b4cfb2dcacu, 0.00167, 0.00161 },
    { TENSOR_TYPE_Q8_0, 0x0c4e3f908789a40bu, 0.00533, 0.00788 },
    { TENSOR_TYPE_Q4_0, 0x2aad6d8ffa4d81b9u, 0.0864, 0.126 },
    { TENSOR_TYPE_Q4_1, 0x230788d53065fec2u, 0.0783, 0.0932 },
    { TENSOR_TYPE_Q5_0, 0xdb10760009f4e0dau, 0.0425, 0.0616 },
    { TENSOR_TYPE_Q5_1, 0xe8cca3056d75984du, 0.038, 0.0449 },
    { TENSOR_TYPE_Q2_K, 0xd57241b70cdbcefcu, 0.297, 0.345 },
    { TENSOR_TYPE_Q3_K, 0x9d39f3b4ba680f94u, 0.15, 0.186 },
    { TENSOR_TYPE_Q4_K, 0x991989fa9c142629u, 0.0711, 0.0868 },
    { TENSOR_TYPE_Q5_K, 0xbedc56838d820631u, 0.036, 0.0443 },
    { TENSOR_TYPE_Q6_K, 0x379ff43642179740u, 0.0176, 0.0234 },
    { TENSOR_TYPE_IQ4_NL, 0x42962791f5725dedu, 0.0756, 0.099 },
    { TENSOR_TYPE_IQ4_XS, 0x889884b29196af8du, 0.0761, 0.1 },
};
enum { GOLDENS = sizeof goldens / sizeof *goldens, N = 256 * 64 };

static uint64_t random_state;

static uint64_t random_u64(void) {
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static float random_normal(void) {
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)(random_u64() >> 40) * 0x1p-24f;
    return sum - 6;
}

/* Numbers like weights; with outliers, one in 64 is six times as large. */
static void fill_weights(float *x, bool outliers) {
    random_state = 1000;
    for (int i = 0; i < N; i++) {
        x[i] = random_normal() * 0.02f;
        if (outliers && (random_u64() & 63) == 0)
            x[i] *= 6;
    }
}

static double relative_error(const float *x, const float *y, int n) {
    double error = 0, size = 0;
    for (int i = 0; i < n; i++) {
        error += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        size += (double)x[i] * x[i];
    }
    return sqrt(error / size);
}

static float x[N], y[N];
static uint8_t blocks[N * 4 + 1];

static void every_computable_type_has_a_golden_line_and_a_codec(void **state) {
    (void)state;
    for (const struct tensor_type_info *t = tensor_type_next(NULL); t; t = tensor_type_next(t)) {
        bool use = t->use == TENSOR_TYPE_COMPUTE, golden = false;
        for (int i = 0; i < GOLDENS; i++)
            golden |= goldens[i].type == t->type;
        if (use != golden)
            fail_msg("goldens[]: a line for %s is %s", t->name, use ? "missing" : "too many");
        if (use != (quant_decoder(t->type) != NULL) || use != (quant_encoder(t->type) != NULL))
            fail_msg("%s: %s", t->name, use ? "no codec" : "a codec that nobody uses");
    }
}

static void decoding_is_bit_exact(void **state) {
    (void)state;
    for (int g = 0; g < GOLDENS; g++) {
        enum tensor_type type = goldens[g].type;
        uint64_t bytes = tensor_type_row_bytes(type, N);
        random_state = type;
        for (uint64_t i = 0; i < bytes; i++)
            blocks[i] = (uint8_t)(random_u64() >> 56);
        quant_decoder(type)(blocks, y, N);
        for (int i = 0; i < N; i++)
            if (isnan(y[i])) /* any NaN is as good as another */
                y[i] = quant_float_from_bits(0x7fc00000);
        uint64_t hash = hash_bytes(y, sizeof y, 0);
        if (hash != goldens[g].decoded)
            fail_msg("%s decodes differently: hash %#llx", tensor_type_name(type),
                     (unsigned long long)hash);
    }
}

static void decoding_needs_no_alignment(void **state) {
    (void)state;
    static float aligned[N];
    for (int g = 0; g < GOLDENS; g++) {
        enum tensor_type type = goldens[g].type;
        uint64_t bytes = tensor_type_row_bytes(type, N);
        fill_weights(x, false);
        quant_encoder(type)(x, blocks, N, QUANT_FAST);
        quant_decoder(type)(blocks, aligned, N);
        memmove(blocks + 1, blocks, bytes);
        quant_decoder(type)(blocks + 1, y, N);
        assert_memory_equal(aligned, y, sizeof y);
    }
}

static void encoders_are_as_good_as_the_reference(void **state) {
    (void)state;
    for (int g = 0; g < GOLDENS; g++)
        for (int outliers = 0; outliers < 2; outliers++) {
            enum tensor_type type = goldens[g].type;
            double reference = outliers ? goldens[g].error_outliers : goldens[g].error;
            fill_weights(x, outliers);
            quant_encoder(type)(x, blocks, N, QUANT_BEST);
            quant_decoder(type)(blocks, y, N);
            double best = relative_error(x, y, N);
            quant_encoder(type)(x, blocks, N, QUANT_FAST);
            quant_decoder(type)(blocks, y, N);
            double fast = relative_error(x, y, N);
            /* Three digits are known of the reference; the promise is 1.02 times. */
            if (best > reference * 1.01 || fast > reference * 1.3 || fast < best * 0.999)
                fail_msg("%s: best %g, fast %g, reference %g", tensor_type_name(type), best, fast,
                         reference);
        }
}

static void zeros_stay_zeros(void **state) {
    (void)state;
    memset(x, 0, sizeof x);
    for (int g = 0; g < GOLDENS; g++)
        for (int effort = QUANT_FAST; effort <= QUANT_BEST; effort++) {
            memset(blocks, 0xff, sizeof blocks);
            quant_encoder(goldens[g].type)(x, blocks, N, (enum quant_effort)effort);
            quant_decoder(goldens[g].type)(blocks, y, N);
            for (int i = 0; i < N; i++)
                assert_true(y[i] == 0);
        }
}

/* Scales of small weights are subnormal halves; they must not vanish. */
static void tiny_numbers_survive(void **state) {
    (void)state;
    for (int g = 0; g < GOLDENS; g++) {
        fill_weights(x, false);
        for (int i = 0; i < N; i++)
            x[i] *= 1e-4f; /* deviation 2e-6 */
        quant_encoder(goldens[g].type)(x, blocks, N, QUANT_BEST);
        quant_decoder(goldens[g].type)(blocks, y, N);
        double error = relative_error(x, y, N);
        if (error > 0.4)
            fail_msg("%s: error %g", tensor_type_name(goldens[g].type), error);
    }
}

/* Every finite input gives finite output, with extreme and lopsided blocks among them. */
static void finite_in_finite_out(void **state) {
    (void)state;
    static const float extremes[] = { 65504, 1e5f, 3e8f, 3e38f, 1e-38f, 1e-44f };
    for (int g = 0; g < GOLDENS; g++)
        for (size_t k = 0; k < sizeof extremes / sizeof *extremes; k++)
            for (int lopsided = 0; lopsided < 2; lopsided++) {
                enum tensor_type type = goldens[g].type;
                if (type == TENSOR_TYPE_F16 && extremes[k] > 65504)
                    continue;
                random_state = k;
                for (int i = 0; i < N; i++)
                    x[i] =
                        lopsided ? extremes[k] : extremes[k] * (float)((int)(random_u64() % 3) - 1);
                for (int effort = QUANT_FAST; effort <= QUANT_BEST; effort++) {
                    quant_encoder(type)(x, blocks, N, (enum quant_effort)effort);
                    quant_decoder(type)(blocks, y, N);
                    assert_int_equal(quant_find_nonfinite(type, blocks, N), N);
                    for (int i = 0; i < N; i++)
                        assert_true(isfinite(y[i]));
                }
            }
}

static void packing_inverts_unpacking(void **state) {
    (void)state;
    static const struct {
        void (*unpack)(const void *, struct quant_super *);
        void (*pack)(const struct quant_super *, void *);
        size_t bytes;
    } types[] = {
        { quant_unpack_q2_k, quant_pack_q2_k, sizeof(struct block_q2_k) },
        { quant_unpack_q3_k, quant_pack_q3_k, sizeof(struct block_q3_k) },
        { quant_unpack_q4_k, quant_pack_q4_k, sizeof(struct block_q4_k) },
        { quant_unpack_q5_k, quant_pack_q5_k, sizeof(struct block_q5_k) },
        { quant_unpack_q6_k, quant_pack_q6_k, sizeof(struct block_q6_k) },
        { quant_unpack_iq4_xs, quant_pack_iq4_xs, sizeof(struct block_iq4_xs) },
    };
    random_state = 7;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int round = 0; round < 100; round++) {
            uint8_t block[300], again[300];
            struct quant_super s;
            for (size_t i = 0; i < types[t].bytes; i++)
                block[i] = (uint8_t)random_u64();
            types[t].unpack(block, &s);
            types[t].pack(&s, again);
            assert_memory_equal(block, again, types[t].bytes);
        }
}

static void halves_convert_both_ways(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = quant_half_to_float((quant_half)h);
        if (isnan(f))
            assert_true(isnan(quant_half_to_float(quant_float_to_half(f))));
        else
            assert_int_equal(quant_float_to_half(f), h);
    }
    assert_true(quant_half_to_float(0x3c00) == 1 && quant_half_to_float(0x0001) == 0x1p-24f);
    assert_true(quant_half_to_float(0x7bff) == 65504 && isinf(quant_half_to_float(0xfc00)));
}

static void halves_round_to_even(void **state) {
    (void)state;
    assert_int_equal(quant_float_to_half(1 + 0x1p-11f), 0x3c00);     /* tie, down to even */
    assert_int_equal(quant_float_to_half(1 + 3 * 0x1p-11f), 0x3c02); /* tie, up to even */
    assert_int_equal(quant_float_to_half(1 + 0x1.002p-11f), 0x3c01); /* above the tie */
    assert_int_equal(quant_float_to_half(65519), 0x7bff);            /* below the tie */
    assert_int_equal(quant_float_to_half(65520), 0x7c00);            /* infinity */
    assert_int_equal(quant_float_to_half(0x1p-25f), 0);              /* tie, to zero */
    assert_int_equal(quant_float_to_half(-0x1.002p-25f), 0x8001);    /* the least */
    assert_int_equal(quant_float_to_half(0x1.ff8p-15f), 0x03ff);     /* the last subnormal */
    assert_int_equal(quant_float_to_half(0x1.ffcp-15f), 0x0400);     /* tie, to the first normal */
    assert_int_equal(quant_float_to_bf16(1 + 0x1p-8f), 0x3f80);      /* tie, down to even */
    assert_int_equal(quant_float_to_bf16(1 + 3 * 0x1p-8f), 0x3f82);  /* tie, up to even */
    assert_true(isnan(quant_bf16_to_float(quant_float_to_bf16(quant_float_from_bits(0x7f800001)))));
}

static void nan_and_infinity_are_found_in_every_type(void **state) {
    (void)state;
    for (int g = 0; g < GOLDENS; g++) {
        enum tensor_type type = goldens[g].type;
        const struct tensor_type_info *t = tensor_type_find(type);
        size_t bad = 5 * (size_t)t->block_elements, at = 5 * (size_t)t->block_bytes;
        fill_weights(x, false);
        quant_encoder(type)(x, blocks, N, QUANT_FAST);
        assert_int_equal(quant_find_nonfinite(type, blocks, N), N);
        /* The only bytes of a block whose all-ones make it infinite or NaN are its scales. */
        int found = 0;
        for (uint32_t i = 0; i + 2 <= t->block_bytes; i += 2) {
            uint8_t saved[2];
            memcpy(saved, blocks + at + i, 2);
            memset(blocks + at + i, 0xff, 2);
            quant_decoder(type)(blocks + at, y, t->block_elements);
            bool finite = true;
            for (uint32_t k = 0; k < t->block_elements; k++)
                finite = finite && isfinite(y[k]);
            assert_int_equal(quant_find_nonfinite(type, blocks, N), finite ? N : bad);
            found += !finite;
            memcpy(blocks + at + i, saved, 2);
        }
        assert_true(found > 0);
    }
    double wide[2] = { 1, INFINITY };
    assert_int_equal(quant_find_nonfinite(TENSOR_TYPE_F64, wide, 2), 1);
    assert_int_equal(quant_find_nonfinite(TENSOR_TYPE_I8, blocks, 100), 100);
}

static void rows_are_whole_blocks(void **state) {
    (void)state;
    struct err e = { 0 };
    assert_int_equal(quant_decode_row(TENSOR_TYPE_Q4_K, blocks, y, 128, &e), RC_RANGE);
    assert_string_equal(e.msg, "a row of 128 elements is not a whole number of Q4_K blocks of 256");
    assert_int_equal(quant_encode_row(TENSOR_TYPE_Q8_K, x, blocks, 256, QUANT_FAST, &e),
                     RC_UNSUPPORTED);
    assert_string_equal(e.msg, "greta does not compute with tensor type Q8_K");
    assert_int_equal(quant_encode_row(TENSOR_TYPE_Q4_K, x, blocks, 256, QUANT_FAST, &e), RC_OK);
}

static void sizes_follow_the_table(void **state) {
    (void)state;
    assert_int_equal(tensor_type_row_bytes(TENSOR_TYPE_Q4_0, 64), 36);
    assert_int_equal(tensor_type_row_bytes(TENSOR_TYPE_Q6_K, 512), 420);
    assert_int_equal(tensor_type_row_bytes(TENSOR_TYPE_Q6_K, 511), 0);
    assert_int_equal(tensor_type_row_bytes(TENSOR_TYPE_F64, UINT64_MAX / 4), 0);
    assert_null(tensor_type_find(4));
    assert_null(tensor_type_find(1000));
    assert_string_equal(tensor_type_name(TENSOR_TYPE_IQ4_XS), "IQ4_XS");
    assert_int_equal(tensor_type_find_name("q4_k")->type, TENSOR_TYPE_Q4_K);
    assert_null(tensor_type_find_name("Q9_9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_computable_type_has_a_golden_line_and_a_codec),
        cmocka_unit_test(decoding_is_bit_exact),
        cmocka_unit_test(decoding_needs_no_alignment),
        cmocka_unit_test(encoders_are_as_good_as_the_reference),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(tiny_numbers_survive),
        cmocka_unit_test(finite_in_finite_out),
        cmocka_unit_test(packing_inverts_unpacking),
        cmocka_unit_test(halves_convert_both_ways),
        cmocka_unit_test(halves_round_to_even),
        cmocka_unit_test(nan_and_infinity_are_found_in_every_type),
        cmocka_unit_test(rows_are_whole_blocks),
        cmocka_unit_test(sizes_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
