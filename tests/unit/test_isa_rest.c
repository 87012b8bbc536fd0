/* Vector instructions that have no model in isa_model.def, on values whose results follow from the
 * instruction's definition alone: sums that are exact in any order, constants in the code, special
 * cases of division, and values that 8 bits hold or lie half way between two that they hold. */
#include "unit/isa_step.h"

#define HALVES(low, high) ((uint32_t)(low) | (uint32_t)(high) << 16)
enum {
    H1 = 0x3c00,
    H2 = 0x4000,
    H3 = 0x4200,
    H4 = 0x4400,
    H5 = 0x4500,
    H_INF = 0x7c00,
    H_NEG = 0x8000
};

static void run(enum isa_gpu gpu, uint32_t first, uint32_t second) {
    step_gpu = gpu;
    assert_int_equal(step((const uint32_t[]){ first, second }, 2, ~UINT64_C(0), ISA_MODE_DEFAULT),
                     ISA_END);
}

static void expect_all(int reg, uint32_t mask, uint32_t value) {
    for (int l = 0; l < ISA_LANES; l++)
        if ((wave->vgpr[reg][l] & mask) != value)
            fail_msg("v%d of lane %d is %#x and should be %#x", reg, l, wave->vgpr[reg][l], value);
}

static void halves_with_a_constant_in_the_code(void **state) {
    (void)state;
    set_all(0, H2);
    set_all(1, H5);
    run(ISA_GFX90A, 0x48040300, H3); /* v_madmk_f16 v2, v0, 3.0, v1: 2 * 3 + 5 */
    expect_all(2, 0xffff, 0x4980);
    run(ISA_GFX90A, 0x4a040300, H3); /* v_madak_f16 v2, v0, v1, 3.0: 2 * 5 + 3 */
    expect_all(2, 0xffff, 0x4a80);
}

static void dot_products_of_small_integers_are_exact(void **state) {
    (void)state;
    set_all(0, HALVES(H2, H3));
    set_all(1, HALVES(H4, H5));
    set_all(2, bits32(100.0f));
    run(ISA_GFX90A, 0xd3a34003, 0x1c0a0300); /* v_dot2_f32_f16 v3, v0, v1, v2 */
    expect_all(3, ~0u, bits32(2 * 4 + 3 * 5 + 100));
    run(ISA_GFX90A, 0x6e040300, 0xbf810000); /* v_dot2c_f32_f16 v2, v0, v1 */
    expect_all(2, ~0u, bits32(2 * 4 + 3 * 5 + 100));
}

static void legacy_products_with_zero_are_zero(void **state) {
    (void)state;
    set_all(0, 0);
    set_all(1, 0x7f800000);
    set_all(3, bits32(7.0f));
    run(ISA_GFX90A, 0xd1c00002, 0x040e0300); /* v_mad_legacy_f32 v2, v0, v1, v3: 0 * inf + 7 */
    expect_all(2, ~0u, bits32(7.0f));
    set_all(0, bits32(-2.0f));
    set_all(1, bits32(1.5f));
    run(ISA_GFX90A, 0xd1c00002, 0x040e0300);
    expect_all(2, ~0u, bits32(4.0f));
}

static void masked_differences_skip_zero_bytes_of_the_reference(void **state) {
    (void)state;
    set_all(0, 0x04030201);
    set_all(1, 0x08070605);
    set_all(2, 0x05040002);
    for (int i = 0; i < 4; i++)
        set_all(8 + i, (uint32_t)(100 + 100 * i));
    run(ISA_GFX90A, 0xd1e70004, 0x04220500); /* v_mqsad_u32_u8 v[4:7], v[0:1], v2, v[8:11] */
    expect_all(4, ~0u, 100 + 1 + 1 + 1);
    expect_all(5, ~0u, 200);
    expect_all(6, ~0u, 300 + 1 + 1 + 1);
    expect_all(7, ~0u, 400 + 2 + 2 + 2);
}

static void quotients_of_halves_are_fixed_up(void **state) {
    (void)state;
    static const uint32_t codes[] = { 0xd2070003,
                                      0xd1ef0003 }; /* v_div_fixup[_legacy]_f16 v3, v0, v1, v2 */
    static const struct {
        uint16_t quotient, denominator, numerator, expected;
    } rows[] = {
        { H2, H1, H2, H2 },
        { H2, H1 | H_NEG, H2, H2 | H_NEG },
        { H1, 0, H1 | H_NEG, H_INF | H_NEG },
        { H1, H_INF, H1 | H_NEG, H_NEG },
        { H1, H1, H_INF, H_INF },
        { H1, H3, 0, 0 },
    };
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            set_all(0, rows[i].quotient);
            set_all(1, rows[i].denominator);
            set_all(2, rows[i].numerator);
            run(ISA_GFX90A, codes[c], 0x040a0300);
            expect_all(3, 0xffff, rows[i].expected);
        }
        set_all(1, 0);
        set_all(2, 0);
        run(ISA_GFX90A, codes[c], 0x040a0300); /* 0 / 0 */
        expect_all(3, 0x7e00, 0x7e00);
    }
}

/* The first 53 bits of 2 / pi, which begin with 0x1.45f306dc9c882 before rounding. */
static void trigonometric_reduction_begins_with_two_over_pi(void **state) {
    (void)state;
    set_all(0, 0);
    set_all(1, 0x3ff00000); /* 1.0 */
    set_all(2, 0);
    run(ISA_GFX90A, 0xd2920004, 0x00020500); /* v_trig_preop_f64 v[4:5], v[0:1], v2 */
    expect_all(4, ~0u, 0x6dc9c882);
    expect_all(5, ~0u, 0x3fe45f30);
}

/* fp8 is 1.4.3 with bias 8, bf8 1.5.2 with bias 16; 0x80 is NaN, and there is no negative zero. */
static void numbers_become_eight_bits(void **state) {
    (void)state;
    static const struct {
        float value;
        uint8_t fp8, bf8;
    } rows[] = {
        { 1.0f, 0x40, 0x40 },     { -2.0f, 0xc8, 0xc4 }, { 0.0f, 0x00, 0x00 },
        { 1.0625f, 0x40, 0x40 },  /* fp8: half way, to the even one below */
        { 1.1875f, 0x42, 0x41 },  /* fp8: half way, to the even one above */
        { 240.0f, 0x7f, 0x60 },   /* the largest fp8; bf8: half way between 224 and 256 */
        { 0x1p-10f, 0x01, 0x18 }, /* the smallest fp8 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_all(0, bits32(rows[i].value));
        set_all(1, bits32(1.0f));
        set_all(2, 0xaabbccdd);
        run(ISA_GFX942, 0xd2a20002, 0x00020300); /* v_cvt_pk_fp8_f32 v2, v0, v1 */
        expect_all(2, ~0u, 0xaabb4000u | rows[i].fp8);
        set_all(2, 0xaabbccdd);
        run(ISA_GFX942, 0xd2a30002, 0x00020300); /* v_cvt_pk_bf8_f32 v2, v0, v1 */
        expect_all(2, ~0u, 0xaabb4000u | rows[i].bf8);
    }
    set_all(0, 0x7fc00000);
    run(ISA_GFX942, 0xd2a20002, 0x00020300);
    expect_all(2, 0xff, 0x80);
    run(ISA_GFX942, 0xd2a30002, 0x00020300);
    expect_all(2, 0xff, 0x80);
}

static void chance_does_not_change_what_eight_bits_hold(void **state) {
    (void)state;
    static const uint32_t chances[] = { 0, 0x80000000, 0xffffffff };
    for (size_t i = 0; i < 3; i++) {
        set_all(0, bits32(-1.0f));
        set_all(1, chances[i]);
        set_all(2, 0xaabbccdd);
        run(ISA_GFX942, 0xd2a40002, 0x00020300); /* v_cvt_sr_fp8_f32 v2, v0, v1 */
        expect_all(2, ~0u, 0xaabbccc0);
        set_all(2, 0xaabbccdd);
        run(ISA_GFX942, 0xd2a50002, 0x00020300); /* v_cvt_sr_bf8_f32 v2, v0, v1 */
        expect_all(2, ~0u, 0xaabbccc0);
    }
    /* Between two: the lower one without chance, the upper one with as much as there is. */
    set_all(0, bits32(1.0625f));
    set_all(1, 0);
    run(ISA_GFX942, 0xd2a40002, 0x00020300);
    expect_all(2, 0xff, 0x40);
    set_all(1, 0xffffffff);
    run(ISA_GFX942, 0xd2a40002, 0x00020300);
    expect_all(2, 0xff, 0x41);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_with_a_constant_in_the_code),
        cmocka_unit_test(dot_products_of_small_integers_are_exact),
        cmocka_unit_test(legacy_products_with_zero_are_zero),
        cmocka_unit_test(masked_differences_skip_zero_bytes_of_the_reference),
        cmocka_unit_test(quotients_of_halves_are_fixed_up),
        cmocka_unit_test(trigonometric_reduction_begins_with_two_over_pi),
        cmocka_unit_test(numbers_become_eight_bits),
        cmocka_unit_test(chance_does_not_change_what_eight_bits_hold),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
