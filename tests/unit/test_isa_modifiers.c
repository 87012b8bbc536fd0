/* Vector instructions with modifiers, SDWA and DPP, the MODE register, functions and division, and
 * those that move values between lanes and scalars. */
#include "unit/isa_step.h"

#include <math.h>

static void expect_all(int reg, uint32_t value) {
    for (int l = 0; l < ISA_LANES; l++)
        if (wave->vgpr[reg][l] != value)
            fail_msg("v%d of lane %d is %#x and should be %#x", reg, l, wave->vgpr[reg][l], value);
}

#define RUN(...)                                                                                   \
    assert_int_equal(step((const uint32_t[]){ __VA_ARGS__ }, 2, ~UINT64_C(0), ISA_MODE_DEFAULT),   \
                     ISA_END)

static void neg_abs_and_clamp(void **state) {
    (void)state;
    set_all(0, bits32(3.0f));
    set_all(1, bits32(-5.0f));
    RUN(0xd1010202, 0x22020300 | 0x100); /* v_add_f32_e64 v2, -v0, |v1| */
    expect_all(2, bits32(2.0f));
    RUN(0xd1018002, 0x00020300 | 0x100); /* v_add_f32_e64 v2, v0, v1 clamp */
    expect_all(2, 0);
    set_all(1, 0x7fc00000);
    RUN(0xd1018002, 0x00020300 | 0x100); /* NaN: 0 with DX10_CLAMP */
    expect_all(2, 0);
    set_all(0, 0xffffffff);
    set_all(1, 5);
    RUN(0xd1348002, 0x00020300 | 0x100); /* v_add_u32_e64 v2, v0, v1 clamp: saturates */
    expect_all(2, 0xffffffff);
}

static void denormals_are_flushed_if_mode_says_so(void **state) {
    (void)state;
    static const uint32_t add[] = { 0x02040300 }; /* v_add_f32_e32 v2, v0, v1 */
    set_all(0, 1);
    set_all(1, 2);
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT), ISA_END);
    expect_all(2, 3);
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT & ~0x30u), ISA_END);
    expect_all(2, 0);
    set_all(0, 0x80000001);
    set_all(1, 0x80000002);
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT & ~0x30u), ISA_END);
    expect_all(2, 0x80000000);
}

static void rounding_follows_mode(void **state) {
    (void)state;
    static const uint32_t add[] = { 0x02040300 };
    set_all(0, bits32(1.0f));
    set_all(1, bits32(0x1p-30f));
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT), ISA_END);
    expect_all(2, bits32(1.0f));
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT | 1), ISA_END);
    expect_all(2, 0x3f800001);
    assert_int_equal(step(add, 1, ~UINT64_C(0), ISA_MODE_DEFAULT | 2), ISA_END);
    expect_all(2, 0x3f800000);
}

static void sdwa_takes_and_writes_parts(void **state) {
    (void)state;
    set_all(0, 0x11223344);
    set_all(1, 0xaabbccdd);
    set_all(2, 0x99999999);
    /* v_add_u32_sdwa v2, v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0
     * src1_sel:WORD_1 */
    RUN(0x680402f9, 0x05001100);
    expect_all(2, 0x99990099 | ((0x44 + 0xaabb) & 0xff) << 8);
    /* v_mov_b32_sdwa v2, sext(v1) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 */
    RUN(0x7e0402f9, 0x000b0601);
    expect_all(2, 0xffffffaa);
}

static void packed_halves_are_chosen_by_op_sel(void **state) {
    (void)state;
    set_all(0, 0x40003c00);              /* 2.0 : 1.0 */
    set_all(1, 0x44004200);              /* 4.0 : 3.0 */
    RUN(0xd38f4002, 0x18020300 | 0x100); /* v_pk_add_f16 v2, v0, v1 */
    expect_all(2, 0x46004400);           /* 6.0 : 4.0 */
    RUN(0xd38f4802, 0x10020300 | 0x100); /* op_sel:[1,0] op_sel_hi:[0,1] */
    expect_all(2, 0x45004500);           /* 1.0 + 4.0 : 2.0 + 3.0 */
    RUN(0xd38f4102, 0x58020300 | 0x100); /* neg_lo:[0,1] neg_hi:[1,0] */
    expect_all(2, 0x4000c000);           /* -2.0 + 4.0 : 1.0 - 3.0 */
    set_all(3, bits32(0.5f));
    /* v_fma_mix_f32 v2, v0, v1, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]: 2.0 * 3.0 + 0.5 */
    RUN(0xd3a00802, 0x1c0e0300 | 0x100);
    expect_all(2, bits32(6.5f));
    set_all(2, 0xaaaabbbb);
    RUN(0xd3a20802, 0x1c0e0300 | 0x100); /* v_fma_mixhi_f16: the lower half stays */
    expect_all(2, 0x4680bbbb);
    set_all(2, 0xaaaabbbb);
    /* v_mad_u16 v2, v0, v1, v3 op_sel:[1,0,0,1]: upper half of v0, result to the upper half */
    set_all(0, 0x00030000);
    set_all(1, 5);
    set_all(3, 1);
    RUN(0xd2044802, 0x040e0300 | 0x100);
    expect_all(2, 0x0010bbbb);
}

static void packed_floats_are_chosen_by_op_sel(void **state) {
    (void)state;
    set_all(0, bits32(1.0f));
    set_all(1, bits32(2.0f));
    set_all(2, bits32(10.0f));
    set_all(3, bits32(20.0f));
    wave->sgpr[4] = bits32(100.0f);
    wave->sgpr[5] = bits32(200.0f);
    RUN(0xd3b24006, 0x18020500 | 0x100); /* v_pk_add_f32 v[6:7], v[0:1], v[2:3] */
    expect_all(6, bits32(11.0f));
    expect_all(7, bits32(22.0f));
    RUN(0xd3b24806, 0x10020500 | 0x100); /* op_sel:[1,0] op_sel_hi:[0,1] */
    expect_all(6, bits32(12.0f));
    expect_all(7, bits32(21.0f));
    RUN(0xd3b24806, 0x10020004 | 0x100 << 9); /* s[4:5] and v[0:1], the scalars swapped */
    expect_all(6, bits32(201.0f));
    expect_all(7, bits32(102.0f));
    RUN(0xd3b24206, 0x38020500 | 0x100); /* neg_lo:[1,0] neg_hi:[0,1] */
    expect_all(6, bits32(9.0f));
    expect_all(7, bits32(-18.0f));
}

/* Within a millionth of the right value, and what infinities, zeros and NaNs give. */
static void expect_function(uint32_t word, double (*right)(double), float low, float high,
                            double absolute) {
    for (int round = 0; round < 40; round++) {
        for (int l = 0; l < ISA_LANES; l++) {
            double part = (double)(random64() >> 11) * 0x1p-53;
            wave->vgpr[0][l] = bits32((float)(low + part * (high - low)));
        }
        RUN(word, 0xbf810000);
        for (int l = 0; l < ISA_LANES; l++) {
            double x = (double)float_of(wave->vgpr[0][l]), expected = right(x);
            double d = (double)float_of(wave->vgpr[2][l]), bound = fabs(expected) * 0x1p-23;
            if (!(fabs(d - expected) <= bound + absolute))
                fail_msg("%#x of %a is %a instead of %a", word, x, d, expected);
        }
    }
}
static double turn_sine(double x) {
    return sin(2 * 3.14159265358979323846 * (x - nearbyint(x)));
}
static double turn_cosine(double x) {
    return cos(2 * 3.14159265358979323846 * (x - nearbyint(x)));
}
static void expect_at(uint32_t word, uint32_t x, uint32_t expected) {
    set_all(0, x);
    RUN(word, 0xbf810000);
    if ((expected & 0x7fffffff) > 0x7f800000)
        assert_true(isnan(float_of(wave->vgpr[2][0])));
    else
        expect_all(2, expected);
}

static void functions_keep_their_precision(void **state) {
    enum { EXP = 0x7e044100, LOG = 0x7e044300, SIN = 0x7e045300, COS = 0x7e045500 };
    enum { INF = 0x7f800000, MINUS_INF = (int)0xff800000, SOME_NAN = 0x7fc00000 };
    (void)state;
    expect_function(EXP, exp2, -125.0f, 127.9f, 0);
    expect_function(EXP, exp2, -1.0f, 1.0f, 0);
    expect_function(LOG, log2, 0x1p-126f, 0x1p-100f, 0);
    expect_function(LOG, log2, 0.0001f, 0.9f, 0x1p-30);
    expect_function(LOG, log2, 0.9f, 1.1f, 0x1p-40);
    expect_function(LOG, log2, 1.0f, 3e38f, 0);
    expect_function(SIN, turn_sine, -256.0f, 256.0f, 0x1p-30);
    expect_function(SIN, turn_sine, -0.5f, 0.5f, 0x1p-40);
    expect_function(COS, turn_cosine, -256.0f, 256.0f, 0x1p-30);
    expect_at(EXP, INF, INF);
    expect_at(EXP, (uint32_t)MINUS_INF, 0);
    expect_at(EXP, SOME_NAN, SOME_NAN);
    expect_at(EXP, bits32(128.0f), INF);
    expect_at(EXP, bits32(-127.0f), 0); /* would be denormal */
    expect_at(EXP, bits32(-0.0f), bits32(1.0f));
    expect_at(LOG, 0, (uint32_t)MINUS_INF);
    expect_at(LOG, 1, (uint32_t)MINUS_INF); /* a denormal is 0 */
    expect_at(LOG, INF, INF);
    expect_at(LOG, bits32(-1.0f), SOME_NAN);
    expect_at(LOG, SOME_NAN, SOME_NAN);
    expect_at(LOG, bits32(8.0f), bits32(3.0f));
    expect_at(SIN, 0x80000000, 0x80000000);
    expect_at(SIN, bits32(300.25f), 0);
    expect_at(SIN, INF, SOME_NAN);
    expect_at(COS, bits32(300.25f), bits32(1.0f));
    expect_at(COS, bits32(0.5f), bits32(-1.0f));
}

static void dpp_moves_lanes(void **state) {
    (void)state;
    for (int l = 0; l < ISA_LANES; l++)
        wave->vgpr[0][l] = (uint32_t)l;
    set_all(2, 1000);
    RUN(0x7e0402fa, 0xff001b00); /* v_mov_b32_dpp v2, v0 quad_perm:[3,2,1,0] */
    for (int l = 0; l < ISA_LANES; l++)
        assert_int_equal(wave->vgpr[2][l], l ^ 3);
    set_all(2, 1000);
    RUN(0x7e0402fa, 0xff011100); /* row_shr:1 without bound_ctrl: lane 0 of a row keeps its value */
    for (int l = 0; l < ISA_LANES; l++)
        assert_int_equal(wave->vgpr[2][l], l % 16 ? l - 1 : 1000);
    RUN(0x7e0402fa, 0xff091100); /* with it: 0 */
    for (int l = 0; l < ISA_LANES; l++)
        assert_int_equal(wave->vgpr[2][l], l % 16 ? l - 1 : 0);
    set_all(2, 1000);
    RUN(0x7e0402fa, 0xaf014200); /* row_bcast:15 row_mask:0xa */
    for (int l = 0; l < ISA_LANES; l++)
        assert_int_equal(wave->vgpr[2][l], l / 16 % 2 ? l / 16 * 16 - 1 : 1000);
}

static void lanes_and_scalars(void **state) {
    (void)state;
    for (int l = 0; l < ISA_LANES; l++)
        wave->vgpr[0][l] = (uint32_t)(100 + l);
    static const uint32_t first[] = { 0x7e0a0500 }; /* v_readfirstlane_b32 s5, v0 */
    assert_int_equal(step(first, 1, UINT64_C(1) << 37, ISA_MODE_DEFAULT), ISA_END);
    assert_int_equal(wave->sgpr[5], 137);
    assert_int_equal(step(first, 1, 0, ISA_MODE_DEFAULT), ISA_END);
    assert_int_equal(wave->sgpr[5], 100);
    wave->sgpr[6] = 12 + 64;
    RUN(0xd2890005, 0x00000d00); /* v_readlane_b32 s5, v0, s6: modulo 64 */
    assert_int_equal(wave->sgpr[5], 112);
    wave->sgpr[7] = 4711;
    static const uint32_t write[] = { 0xd28a0000, 0x00000c07 }; /* v_writelane_b32 v0, s7, s6 */
    assert_int_equal(step(write, 2, 0, ISA_MODE_DEFAULT), ISA_END);
    assert_int_equal(wave->vgpr[0][12], 4711);
    assert_int_equal(wave->vgpr[0][13], 113);
}

static void cmpx_writes_exec(void **state) {
    (void)state;
    static const uint32_t compare[] = { 0x7dba0300 }; /* v_cmpx_ne_u32_e32 vcc, v0, v1 */
    for (int l = 0; l < ISA_LANES; l++) {
        wave->vgpr[0][l] = (uint32_t)l;
        wave->vgpr[1][l] = 5;
    }
    assert_int_equal(step(compare, 1, 0xff, ISA_MODE_DEFAULT), ISA_END);
    assert_int_equal(ISA_WAVE_EXEC(wave), 0xdf);
    assert_int_equal(ISA_WAVE_VCC(wave), 0xdf);
}

static void vgpr_indexing_moves_registers(void **state) {
    (void)state;
    static const uint32_t move[] = { 0x7e040300 }; /* v_mov_b32_e32 v2, v0 */
    set_all(0, 1);
    set_all(3, 33);
    set_all(2, 0);
    ISA_WAVE_M0(wave) = 3 | 1 << 12; /* src0 by 3 */
    assert_int_equal(step(move, 1, ~UINT64_C(0), ISA_MODE_DEFAULT | ISA_MODE_GPR_IDX), ISA_END);
    expect_all(2, 33);
    ISA_WAVE_M0(wave) = 3 | 8 << 12; /* dst by 3 */
    assert_int_equal(step(move, 1, ~UINT64_C(0), ISA_MODE_DEFAULT | ISA_MODE_GPR_IDX), ISA_END);
    expect_all(5, 1);
}

/* The sequence that compilers write for a division, with all its parts. */
static float divide(float n, float d) {
    uint32_t vn = bits32(n), vd = bits32(d);
    set_all(0, vn);
    set_all(1, vd);
    RUN(0xd1e06a02, 0x04020301 | 0x100); /* v_div_scale_f32 v2, vcc, v1, v1, v0 */
    RUN(0xd1e06a03, 0x04020300 | 0x100); /* v_div_scale_f32 v3, vcc, v0, v1, v0 */
    uint64_t vcc = ISA_WAVE_VCC(wave);
    float ds = float_of(wave->vgpr[2][0]), ns = float_of(wave->vgpr[3][0]);
    float r = 1.0f / ds, e = fmaf(-ds, r, 1.0f), q;
    r = fmaf(e, r, r);
    q = ns * r;
    e = fmaf(-ds, q, ns);
    q = fmaf(e, r, q);
    e = fmaf(-ds, q, ns);
    set_all(4, bits32(e));
    set_all(5, bits32(r));
    set_all(6, bits32(q));
    ISA_WAVE_VCC(wave) = vcc;
    RUN(0xd1e20007, 0x041a0b04 | 0x100); /* v_div_fmas_f32 v7, v4, v5, v6 */
    RUN(0xd1de0008, 0x04020307 | 0x100); /* v_div_fixup_f32 v8, v7, v1, v0 */
    return float_of(wave->vgpr[8][0]);
}

static void division_is_rounded_correctly(void **state) {
    (void)state;
    static const float edges[] = { 0.0f,   -0.0f,     1.0f,     -3.0f,       7.0f,     1e-38f,
                                   1e-44f, 3.4e38f,   -3.4e38f, INFINITY,    NAN,      0x1p-126f,
                                   1e20f,  -1.5e-20f, 0x1p127f, 0x1.8p-100f, 12345.6f, 1e-30f };
    size_t n = sizeof edges / sizeof *edges;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            float is = divide(edges[a], edges[b]), wanted = edges[a] / edges[b];
            if (isnan(is) && isnan(wanted))
                continue;
            int tiny = fabsf(wanted) < 0x1p-125f; /* scaled back: may be rounded twice */
            int64_t off = (int64_t)bits32(is) - (int64_t)bits32(wanted);
            if (off != 0 && !(tiny && off >= -1 && off <= 1))
                fail_msg("%a / %a is %a and should be %a", (double)edges[a], (double)edges[b],
                         (double)is, (double)wanted);
        }
    }
}

/* The same of doubles: n in v[0:1], d in v[2:3]. */
static void set_pair(int reg, double value) {
    set_all(reg, (uint32_t)bits64(value));
    set_all(reg + 1, (uint32_t)(bits64(value) >> 32));
}
static double get_pair(int reg) {
    return double_of(wave->vgpr[reg][0] | (uint64_t)wave->vgpr[reg + 1][0] << 32);
}
#define VGPRS(a, b, c)                                                                             \
    ((ISA_VGPR0 + (a)) | (ISA_VGPR0 + (b)) << 9 | (uint32_t)(ISA_VGPR0 + (c)) << 18)

static double divide64(double n, double d) {
    set_pair(0, n);
    set_pair(2, d);
    RUN(0xd1e16a04, VGPRS(2, 2, 0)); /* v_div_scale_f64 v[4:5], vcc, v[2:3], v[2:3], v[0:1] */
    RUN(0xd1e16a06, VGPRS(0, 2, 0)); /* v_div_scale_f64 v[6:7], vcc, v[0:1], v[2:3], v[0:1] */
    uint64_t vcc = ISA_WAVE_VCC(wave);
    double ds = get_pair(4), ns = get_pair(6), r = 1.0 / ds, e = fma(-ds, r, 1.0);
    r = fma(e, r, r);
    double q = ns * r;
    set_pair(8, fma(-ds, q, ns));
    set_pair(10, r);
    set_pair(12, q);
    ISA_WAVE_VCC(wave) = vcc;
    RUN(0xd1e3000e, VGPRS(8, 10, 12)); /* v_div_fmas_f64 v[14:15], v[8:9], v[10:11], v[12:13] */
    RUN(0xd1df0010, VGPRS(14, 2, 0));  /* v_div_fixup_f64 v[16:17], v[14:15], v[2:3], v[0:1] */
    return get_pair(16);
}

static void division_of_doubles_is_rounded_correctly(void **state) {
    (void)state;
    static const double edges[] = { 0.0,       -0.0,     1.0,      -3.0,       7.0,     1e-300,
                                    0x1p-1074, 1.7e308,  -1.7e308, INFINITY,   NAN,     0x1p-1022,
                                    1e200,     -1.5e-99, 0x1p1023, 0x1.8p-900, 12345.6, 1e-310 };
    size_t n = sizeof edges / sizeof *edges;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            double is = divide64(edges[a], edges[b]), wanted = edges[a] / edges[b];
            int tiny = fabs(wanted) < 0x1p-1021; /* scaled back: may be rounded twice */
            uint64_t off = bits64(is) - bits64(wanted) + 1;
            if (!(isnan(is) && isnan(wanted)) && off != 1 && !(tiny && off <= 2))
                fail_msg("%a / %a is %a and should be %a", edges[a], edges[b], is, wanted);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neg_abs_and_clamp),
        cmocka_unit_test(denormals_are_flushed_if_mode_says_so),
        cmocka_unit_test(rounding_follows_mode),
        cmocka_unit_test(sdwa_takes_and_writes_parts),
        cmocka_unit_test(packed_halves_are_chosen_by_op_sel),
        cmocka_unit_test(packed_floats_are_chosen_by_op_sel),
        cmocka_unit_test(functions_keep_their_precision),
        cmocka_unit_test(dpp_moves_lanes),
        cmocka_unit_test(lanes_and_scalars),
        cmocka_unit_test(cmpx_writes_exec),
        cmocka_unit_test(vgpr_indexing_moves_registers),
        cmocka_unit_test(division_is_rounded_correctly),
        cmocka_unit_test(division_of_doubles_is_rounded_correctly),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
