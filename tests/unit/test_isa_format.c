/* Formatted buffers, images as memory, loads to LDS, semaphores, the stack of branches, and f16 in
 * all rounding modes: each against a model written another way. */
#include "isa_wave.h"

#include <fenv.h>
#include <math.h>

#define V ISA_VGPR0

static int fresh(void **state) {
    (void)state;
    wave_open(ISA_GFX90A);
    return 0;
}

static int done(void **state) {
    (void)state;
    wave_close();
    return 0;
}

static void describe(uint32_t stride, uint32_t records, uint32_t word3) {
    wave->sgpr[16] = (uint32_t)MEMORY_BASE;
    wave->sgpr[17] = (uint32_t)(MEMORY_BASE >> 32) | stride << 16;
    wave->sgpr[18] = records;
    wave->sgpr[19] = word3;
}

static struct isa_insn buffer(enum isa_op op, unsigned bits) {
    return (struct isa_insn){
        .op = (uint16_t)op, .dst = V + 5, .src = { V + 0, 16, ISA_INT_0 }, .memory = (uint16_t)bits
    };
}

static float as_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t as_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* ---- formats --------------------------------------------------------------------------------- */

static void every_lane(unsigned bytes) {
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(0)[l] = bytes * l;
}

/* The format is the instruction's, whatever the descriptor says. */
static void typed_loads_convert_as_the_instruction_says(void **state) {
    (void)state;
    struct isa_insn i = buffer(ISA_OP_tbuffer_load_format_xyzw, ISA_MEM_OFFEN);
    describe(0, 4 * 60, 0);
    every_lane(4);
    i.ext = 10 | 0 << 4; /* 8_8_8_8, UNORM */
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned c = 0; c < 4; c++)
            assert_int_equal(vgpr(5 + c)[l],
                             l < 60 ? as_bits((float)memory[4 * l + c] / 255.0f) : 0);
    i.ext = 9 | 5 << 4; /* 2_10_10_10, SINT: x is in the lowest bits */
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < 60; l++) {
        uint32_t raw = word_at(memory + 4 * l);
        for (unsigned c = 0; c < 4; c++) {
            int bits = c < 3 ? 10 : 2, x = (int)(raw >> 10 * c & ((1u << bits) - 1));
            assert_int_equal((int32_t)vgpr(5 + c)[l], x >= 1 << (bits - 1) ? x - (1 << bits) : x);
        }
    }
}

/* 11 bits: 5 of exponent and 6 of mantissa, no sign. */
static void small_floats_are_loaded(void **state) {
    (void)state;
    struct isa_insn i = buffer(ISA_OP_tbuffer_load_format_xyz, ISA_MEM_OFFEN);
    describe(0, 1 << 20, 0);
    every_lane(4);
    uint32_t raw = 0 | (15u << 6) | (31u << 6) << 11 | (14u << 5 | 16) << 22;
    memcpy(memory, &raw, 4);
    i.ext = 6 | 7 << 4;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_true(as_float(vgpr(5)[0]) == 1.0f);
    assert_true(isinf(as_float(vgpr(6)[0])));
    assert_true(as_float(vgpr(7)[0]) == 0.75f);
    i.op = ISA_OP_tbuffer_store_format_xyz;
    assert_int_equal(execute(i), ISA_UNSUPPORTED);
}

static void halves_are_packed_two_in_a_register(void **state) {
    (void)state;
    struct isa_insn i = buffer(ISA_OP_tbuffer_load_format_d16_xyz, ISA_MEM_OFFEN);
    describe(0, 1 << 20, 0);
    every_lane(4);
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(6)[l] = 0xabcd1234;
    i.ext = 10 | 4 << 4; /* 8_8_8_8, UINT */
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(vgpr(5)[l], memory[4 * l] | (uint32_t)memory[4 * l + 1] << 16);
        assert_int_equal(vgpr(6)[l], memory[4 * l + 2] | 0xabcd0000);
    }
    i.op = ISA_OP_tbuffer_store_format_d16_xy;
    i.ext = 5 | 7 << 4; /* 16_16, FLOAT */
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(5)[l] = 0x3c004000 + l;
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(word_at(memory + 4 * l), 0x3c004000 + l);
    i = buffer(ISA_OP_buffer_load_format_d16_hi_x, ISA_MEM_OFFEN);
    wave->sgpr[19] = 2 << 15 | 7 << 12 | 4; /* 16, FLOAT, x */
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(5)[l], (0x4000 + l) << 16 | (0x4000 + l));
}

/* ---- LDS ------------------------------------------------------------------------------------- */

static void buffers_load_to_lds_and_store_from_it(void **state) {
    (void)state;
    struct isa_insn i = buffer(ISA_OP_buffer_load_dword, ISA_MEM_OFFEN | ISA_MEM_LDS);
    describe(0, 4 * 50, 0);
    every_lane(4);
    ISA_WAVE_M0(wave) = 256;
    ISA_WAVE_EXEC(wave) = ~UINT64_C(2);
    uint32_t kept = word_at(lds + 256 + 4);
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(word_at(lds + 256 + 4 * l), l == 1   ? kept
                                                     : l < 50 ? word_at(memory + 4 * l)
                                                              : 0);
    i = buffer(ISA_OP_buffer_store_lds_dword, ISA_MEM_OFFEN);
    ISA_WAVE_M0(wave) = 1024;
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 2; l < 50; l++)
        assert_int_equal(word_at(memory + 4 * l), word_at(lds + 1024 + 4 * l));
    ISA_WAVE_M0(wave) = LDS_BYTES - 128;
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.space, ISA_SPACE_LDS);
}

static void scalar_scratch_counts_in_64_bytes(void **state) {
    (void)state;
    struct isa_insn i = { .op = ISA_OP_s_scratch_load_dwordx2,
                          .dst = 8,
                          .src = { 16, 20, ISA_OFF },
                          .imm = 8,
                          .memory = ISA_MEM_IMM };
    isa_write64(wave, 16, MEMORY_BASE);
    wave->sgpr[20] = 3;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(wave->sgpr[8], word_at(memory + 3 * 64 + 8));
    assert_int_equal(wave->sgpr[9], word_at(memory + 3 * 64 + 12));
    i.op = ISA_OP_s_scratch_store_dword;
    wave->sgpr[8] = 0x12345678;
    wave->sgpr[20] = 1;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(word_at(memory + 72), 0x12345678);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* 16 by 4 texels in rows of 16; data format and number format. */
static struct isa_insn image(enum isa_op op, unsigned data, unsigned number) {
    uint64_t base = MEMORY_BASE >> 8;
    memset(&wave->sgpr[16], 0, 8 * sizeof wave->sgpr[0]);
    wave->sgpr[16] = (uint32_t)base;
    wave->sgpr[17] = (uint32_t)(base >> 32) | data << 20 | number << 26;
    wave->sgpr[18] = 15 | 3 << 14;
    wave->sgpr[19] = 4 | 5 << 3 | 6 << 6 | 7 << 9 | 9u << 28;
    wave->sgpr[20] = 15 << 13;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = l % 16;
        vgpr(1)[l] = l / 16;
    }
    return (struct isa_insn){
        .op = (uint16_t)op, .dst = V + 5, .src = { V + 0, 16, 24 }, .ext = 1, .memory = ISA_MEM_GLC
    };
}

static void image_atomics_return_what_was_there(void **state) {
    (void)state;
    struct isa_insn i = image(ISA_OP_image_atomic_add, 4, 4);
    uint32_t before[ISA_LANES];
    memcpy(before, memory, sizeof before);
    vgpr(0)[63] = 16; /* outside */
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(5)[l] = 1000 * l;
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(vgpr(5)[l], l < 63 ? before[l] : 0);
        assert_int_equal(word_at(memory + 4 * l), before[l] + (l < 63 ? 1000 * l : 0));
    }
    i = image(ISA_OP_image_atomic_cmpswap, 4, 4);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(5)[l] = 7;
        vgpr(6)[l] = word_at(memory + 4 * l) + l % 2;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(word_at(memory + 4 * l) == 7, l % 2 == 0);
}

static void packed_texels_are_not_converted(void **state) {
    (void)state;
    struct isa_insn i = image(ISA_OP_image_load_pck_sgn, 2, 0); /* 16, UNORM */
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal((int32_t)vgpr(5)[l],
                         (int16_t)(memory[2 * l] | (unsigned)memory[2 * l + 1] << 8));
    i = image(ISA_OP_image_store_pck, 11, 7); /* 32_32 */
    i.ext = 3;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(5)[l] = l;
        vgpr(6)[l] = ~l;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(word_at(memory + 8 * l), l);
        assert_int_equal(word_at(memory + 8 * l + 4), ~l);
    }
}

/* ---- waves ----------------------------------------------------------------------------------- */

static void a_semaphore_lets_as_many_through_as_were_released(void **state) {
    (void)state;
    struct isa_semaphores semaphores = { 0 };
    struct isa_insn p = { .op = ISA_OP_ds_gws_sema_p, .imm = 2, .src = { V } };
    struct isa_insn v = { .op = ISA_OP_ds_gws_sema_v, .imm = 2, .src = { V } };
    struct isa_insn all = { .op = ISA_OP_ds_gws_sema_release_all, .imm = 2, .src = { V } };
    assert_int_equal(execute(p), ISA_UNSUPPORTED);
    group.semaphores = &semaphores;
    ISA_WAVE_M0(wave) = 5 << 16;
    assert_int_equal(execute(p), ISA_SLEEP);
    assert_int_equal(execute(p), ISA_SLEEP);
    assert_int_equal(semaphores.waiting[7], 1);
    assert_int_equal(execute(v), ISA_CONTINUE);
    assert_int_equal(execute(p), ISA_CONTINUE);
    assert_int_equal(semaphores.waiting[7], 0);
    assert_int_equal(execute(p), ISA_SLEEP);
    assert_int_equal(execute(all), ISA_CONTINUE);
    assert_int_equal(execute(p), ISA_CONTINUE);
    assert_int_equal(execute(p), ISA_SLEEP);
    group.semaphores = NULL;
}

static enum isa_result run_program(const uint32_t *words, size_t bytes) {
    struct err e = { 0 };
    enum isa_result r = ISA_SLEEP;
    isa_code_close(&wave_code);
    assert_int_equal(isa_code_open(&wave_code, ISA_GFX90A, words, bytes, 0x1000, &e), RC_OK);
    wave->code = wave_code;
    assert_int_equal(isa_wave_jump(wave, 0x1000), ISA_CONTINUE);
    for (int turn = 0; turn < 10 && r == ISA_SLEEP; turn++)
        r = isa_run(wave, 100);
    return r;
}

/* Lanes 0 to 9 take one way, the others the other; both come to the join. */
static void forked_lanes_join_again(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xb8140002,             /* s_cbranch_i_fork s[20:21], +2 */
        0x7e0202ff, 0x00000007, /* v_mov_b32 v1, 7 */
        0x7e040288,             /* v_mov_b32 v2, 8 */
        0xbe802e80,             /* s_cbranch_join 0 */
        0xbf810000,             /* s_endpgm */
    };
    isa_write64(wave, 20, 0x3ff);
    assert_int_equal(run_program(code, sizeof code), ISA_END);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(vgpr(1)[l], l < 10 ? 0 : 7);
        assert_int_equal(vgpr(2)[l], 8);
    }
}

static void vector_instructions_can_be_skipped(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xbf108081, /* s_setvskip 1, 0 */
        0x7e020287, /* v_mov_b32 v1, 7 */
        0xbe800087, /* s_mov_b32 s0, 7 */
        0xbf108080, /* s_setvskip 0, 0 */
        0x7e040288, /* v_mov_b32 v2, 8 */
        0xbf810000, /* s_endpgm */
    };
    assert_int_equal(run_program(code, sizeof code), ISA_END);
    assert_int_equal(wave->sgpr[0], 7);
    assert_int_equal(vgpr(1)[5], 0);
    assert_int_equal(vgpr(2)[5], 8);
}

/* ---- f16 ------------------------------------------------------------------------------------- */

static double half_of(uint32_t h) {
    int exponent = (int)(h >> 10 & 31);
    double mantissa = h & 0x3ff, value;
    if (exponent == 31)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else
        value = exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -value : value;
}

/* The f16 that a number, which is exact, becomes in a mode of MODE: 1 up, 2 down, 3 to zero. */
static uint32_t directed(double x, unsigned mode) {
    uint32_t sign = signbit(x) ? 0x8000 : 0, h = 0;
    double size = fabs(x);
    bool away = (mode == 1 && !sign) || (mode == 2 && sign);
    if (isnan(x))
        return 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    while (h < 0x7bff && half_of(h + 1) <= size)
        h++;
    return sign | (h + (away && half_of(h) != size));
}

static const uint32_t edges[] = { 0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00,
                                  0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x1234, 0x9abc,
                                  0x5555, 0xd00d, 0x0801, 0x13ff, 0x3555, 0x4248, 0xc2a9, 0x6400 };
enum { EDGES = sizeof edges / sizeof *edges };

static void f16_is_rounded_as_mode_says(void **state) {
    (void)state;
    struct isa_insn add = { .op = ISA_OP_v_add_f16, .dst = V + 2, .src = { V + 0, V + 1 } };
    struct isa_insn mul = { .op = ISA_OP_v_mul_f16, .dst = V + 3, .src = { V + 0, V + 1 } };
    struct isa_insn fma = { .op = ISA_OP_v_fma_f16, .dst = V + 4, .src = { V + 0, V + 1, V + 0 } };
    for (unsigned mode = 1; mode < 4; mode++)
        for (unsigned a = 0; a < EDGES; a++) {
            wave->mode = ISA_MODE_DEFAULT | mode << 2;
            for (unsigned l = 0; l < ISA_LANES; l++) {
                vgpr(0)[l] = edges[a];
                vgpr(1)[l] = edges[l % EDGES];
                vgpr(4)[l] = 0;
            }
            assert_int_equal(execute(add), ISA_CONTINUE);
            assert_int_equal(execute(mul), ISA_CONTINUE);
            assert_int_equal(execute(fma), ISA_CONTINUE);
            for (unsigned l = 0; l < EDGES; l++) {
                double x = half_of(edges[a]), y = half_of(edges[l]);
                uint32_t sum = directed(x + y, mode), product = directed(x * y, mode);
                /* An exact sum of two that cancel is +0, or -0 when rounding down. */
                if (x + y == 0 && !(x == 0 && y == 0 && signbit(x) == signbit(y)))
                    sum = mode == 2 ? 0x8000 : 0;
                bool nan = isnan(x + y);
                assert_true(nan ? (vgpr(2)[l] & 0x7fff) > 0x7c00 : vgpr(2)[l] == sum);
                nan = isnan(x * y);
                assert_true(nan ? (vgpr(3)[l] & 0x7fff) > 0x7c00 : vgpr(3)[l] == product);
                double all = x * y + x; /* exact in a double: 22 bits within 2^-48 and 2^32 */
                if (isfinite(all) && all != 0 && fabs(x * y) < 0x1p20 && fabs(x * y) > 0x1p-30)
                    assert_int_equal(vgpr(4)[l] & 0xffff, directed(all, mode));
            }
        }
}

static void f16_overflow_gives_the_largest_number_if_mode_says_so(void **state) {
    (void)state;
    struct isa_insn mul = { .op = ISA_OP_v_mul_f16, .dst = V + 3, .src = { V + 0, V + 1 } };
    wave->mode = ISA_MODE_DEFAULT | ISA_MODE_FP16_OVFL;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = l % 2 ? 0xfbff : 0x7bff;
        vgpr(1)[l] = l % 4 < 2 ? 0x4000 : 0x7c00; /* 2, infinity */
    }
    assert_int_equal(execute(mul), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(3)[l], (l % 2 ? 0x8000u : 0) | (l % 4 < 2 ? 0x7bff : 0x7c00));
    wave->mode = ISA_MODE_DEFAULT;
    assert_int_equal(execute(mul), ISA_CONTINUE);
    assert_int_equal(vgpr(3)[0], 0x7c00);
}

/* What stops a wave as unsupported by name, and nothing else does. */
static void only_one_instruction_is_not_executed(void **state) {
    (void)state;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++)
        if (!isa_is_executable(op) && op != ISA_OP_v_screen_partition_4se_b32)
            fail_msg("nothing executes %s", isa_info[op].name);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fresh, done)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(typed_loads_convert_as_the_instruction_says),
        T(small_floats_are_loaded),
        T(halves_are_packed_two_in_a_register),
        T(buffers_load_to_lds_and_store_from_it),
        T(scalar_scratch_counts_in_64_bytes),
        T(image_atomics_return_what_was_there),
        T(packed_texels_are_not_converted),
        T(a_semaphore_lets_as_many_through_as_were_released),
        T(forked_lanes_join_again),
        T(vector_instructions_can_be_skipped),
        T(f16_is_rounded_as_mode_says),
        T(f16_overflow_gives_the_largest_number_if_mode_says_so),
        T(only_one_instruction_is_not_executed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
