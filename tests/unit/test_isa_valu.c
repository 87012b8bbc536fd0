/* Vector instructions against a scalar model (isa_model.def) on edge values, with lanes off; and
 * every row function of every instruction set of the processor against the plain one. */
#include "base/cpu.h"
#include "isa/rows.h"
#include "unit/isa_model.h"
#include "unit/isa_step.h"

#include <math.h>

/* ---- edge values ---- */

static uint64_t edge(enum isa_type t) {
    static const uint32_t f32[] = { 0,          0x80000000, 1,          0x80000001, 0x7fffff,
                                    0x800000,   0x3f800000, 0xbf800000, 0x3f000000, 0x7f7fffff,
                                    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                    0x7f800001, 0x4f000000, 0xcf000000, 0x4f800000, 0x3fc00000 };
    static const uint64_t f64[] = { 0,
                                    UINT64_C(1) << 63,
                                    1,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x7fefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0x7ff0000000000001,
                                    0x41dfffffffc00000,
                                    0xc1e0000000000000,
                                    0x41efffffffe00000,
                                    0x3fe0000000000000 };
    static const uint32_t f16[] = {
        0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00,
        0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3800, 0x3555
    };
    static const uint32_t i32[] = { 0,          1,          2,          31,         32,
                                    33,         63,         64,         0x7fff,     0x8000,
                                    0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0xffff8000,
                                    0x00800000, 0x007fffff };
    if (random64() % 3 == 0)
        return random64();
    switch (t) {
    case ISA_TYPE_F32:
    case ISA_TYPE_MIX:
    case ISA_TYPE_V2F32:
        return f32[random64() % 20] | (uint64_t)f32[random64() % 20] << 32;
    case ISA_TYPE_F64:
        return f64[random64() % 16];
    case ISA_TYPE_F16:
    case ISA_TYPE_V2F16:
        return f16[random64() % 16] | f16[random64() % 16] << 16;
    default:
        return i32[random64() % 17] | (uint64_t)i32[random64() % 17] << 32;
    }
}

/* v0, v2, v4 and the registers after them are the sources, v8 the destination. */
static void fill_sources(const struct isa_info *info) {
    for (int s = 0; s < 3; s++) {
        enum isa_type t = info->type[s + 1] ? info->type[s + 1] : info->type[0];
        for (int l = 0; l < ISA_LANES; l++) {
            uint64_t x = edge(t);
            wave->vgpr[2 * s][l] = (uint32_t)x;
            wave->vgpr[2 * s + 1][l] = (uint32_t)(x >> 32);
        }
    }
    for (int l = 0; l < ISA_LANES; l++) {
        uint64_t x = edge(info->type[0]);
        wave->vgpr[8][l] = (uint32_t)x;
        wave->vgpr[9][l] = (uint32_t)(x >> 32);
    }
}

/* The instruction in its 64-bit form: v8 = op(v0, v2, v4 or s[20:21]), mask to s[24:25]. */
static void encode(enum isa_op op, uint32_t words[2]) {
    static const uint16_t base[ISA_ENC_COUNT] = { [ISA_ENC_VOP2] = 0x100, [ISA_ENC_VOP1] = 0x140 };
    const struct isa_info *info = &isa_info[op];
    static const uint32_t source[3] = { ISA_VGPR0, ISA_VGPR0 + 2, ISA_VGPR0 + 4 };
    words[0] = (info->encoding == ISA_ENC_VOP3P ? 0xd3800000 : 0xd0000000) |
               (uint32_t)(info->opcode + base[info->encoding]) << 16;
    words[0] |= info->type[0] == ISA_TYPE_M64 ? 24 : 8;
    words[1] = 0;
    for (int s = 0; s < 3 && info->type[s + 1]; s++)
        words[1] |= (info->type[s + 1] == ISA_TYPE_M64 ? 20 : source[s]) << 9 * s;
    if (info->forms & ISA_FORM_SDST)
        words[0] |= 24 << 8;
    if (info->encoding == ISA_ENC_VOP3P) {
        words[0] |= 1u << 14;
        words[1] |= 3u << 27;
    }
}

static uint64_t read_source(const struct isa_info *info, int s, int l,
                            uint32_t (*before)[ISA_LANES]) {
    enum isa_type t = info->type[s + 1];
    int reg = 2 * s;
    if (t == ISA_TYPE_M64)
        return wave->sgpr64[10] >> l & 1;
    if (t == ISA_TYPE_NONE) { /* an accumulating instruction */
        t = info->type[0];
        reg = 8;
    }
    uint64_t x = before[reg][l];
    return isa_type_dwords(t) == 2 ? x | (uint64_t)before[reg + 1][l] << 32 : x;
}

/* Instructions with op_sel write one half of their destination. */
static bool keeps_upper_half(const struct isa_info *info) {
    enum isa_type t = info->type[0];
    return info->forms & ISA_FORM_OPSEL &&
           (t == ISA_TYPE_B16 || t == ISA_TYPE_I16 || t == ISA_TYPE_U16 || t == ISA_TYPE_F16);
}

static void check_instruction(enum isa_op op) {
    const struct isa_info *info = &isa_info[op];
    static uint32_t before[10][ISA_LANES];
    uint32_t words[2];
    uint64_t exec = random64() | 1, d;
    unsigned dwords = isa_type_dwords(info->type[0]);
    fill_sources(info);
    memcpy(before, wave->vgpr, sizeof before);
    wave->sgpr64[10] = random64();
    encode(op, words);
    step_gpu = info->gpus & 1 << ISA_GFX942 ? ISA_GFX942 : ISA_GFX90A;
    if (step(words, 2, exec, ISA_MODE_DEFAULT) != ISA_END)
        fail_msg("%s does not run", info->name);
    step_gpu = ISA_GFX942;
    for (int l = 0; l < ISA_LANES; l++) {
        uint64_t a = read_source(info, 0, l, before), b = read_source(info, 1, l, before);
        uint64_t c = read_source(info, 2, l, before);
        if (info->forms & ISA_FORM_ACC)
            c = before[8][l] | (dwords == 2 ? (uint64_t)before[9][l] << 32 : 0);
        if (info->encoding != ISA_ENC_VOPC) {
            a = isa_type_dwords(info->type[1]) == 2 ? a : (uint32_t)a;
            b = isa_type_dwords(info->type[2]) == 2 ? b : (uint32_t)b;
        }
        enum kind kind = model(op, a, b, c, l, &d);
        uint64_t is = wave->vgpr[8][l] | (dwords == 2 ? (uint64_t)wave->vgpr[9][l] << 32 : 0);
        if (kind == FLAG) {
            is = wave->sgpr64[12] >> l & 1;
            d = exec >> l & 1 ? d != 0 : 0;
        } else if (!(exec >> l & 1)) {
            d = before[8][l] | (dwords == 2 ? (uint64_t)before[9][l] << 32 : 0);
            kind = BITS;
        }
        if (keeps_upper_half(info) && exec >> l & 1) {
            assert_int_equal(is >> 16, before[8][l] >> 16);
            is &= 0xffff;
        }
        if (!agrees(kind, is, d))
            fail_msg("%s of %#lx, %#lx, %#lx in lane %d is %#lx and should be %#lx", info->name,
                     (unsigned long)a, (unsigned long)b, (unsigned long)c, l, (unsigned long)is,
                     (unsigned long)d);
    }
}

static void instructions_do_what_the_model_says(void **state) {
    (void)state;
    static const enum isa_op ops[] = {
#define MODEL(name, ...) ISA_OP_##name,
#include "isa_model.def"
#undef MODEL
    };
    for (int round = 0; round < 8; round++)
        for (size_t n = 0; n < sizeof ops / sizeof *ops; n++)
            check_instruction(ops[n]);
    print_message("%zu instructions have a model\n", sizeof ops / sizeof *ops);
}

static void every_vector_instruction_is_executed(void **state) {
    (void)state;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        uint8_t enc = isa_info[op].encoding;
        if (enc != ISA_ENC_VOP1 && enc != ISA_ENC_VOP2 && enc != ISA_ENC_VOPC &&
            enc != ISA_ENC_VOP3 && enc != ISA_ENC_VOP3P)
            continue;
        if (op == ISA_OP_v_screen_partition_4se_b32)
            continue; /* of graphics; its table is not documented */
        if (!isa_is_executable(op))
            fail_msg("nothing executes %s", isa_info[op].name);
    }
}

/* Results of one set of row functions against those of another. NaNs may differ in what they carry.
 */
static void compare_rows(const struct isa_rows *rows, const char *name) {
    static _Alignas(64) uint32_t s[3][4 * ISA_LANES], x[5 * ISA_LANES], y[5 * ISA_LANES];
    for (int round = 0; round < 20; round++) {
        for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
            const struct isa_info *info = &isa_info[op];
            if (!isa_rows_base.fn[op])
                continue;
            fill_sources(info);
            for (int k = 0; k < 3; k++)
                memcpy(s[k], wave->vgpr[2 * k], 2 * sizeof wave->vgpr[0]);
            memset(x, 0, sizeof x);
            memset(y, 0, sizeof y);
            isa_rows_base.fn[op](x, s[0], s[1], s[2]);
            rows->fn[op](y, s[0], s[1], s[2]);
            enum kind kind = info->type[0] == ISA_TYPE_F32   ? F32
                             : info->type[0] == ISA_TYPE_F64 ? F64
                             : info->type[0] == ISA_TYPE_F16 ? F16
                                                             : BITS;
            int halves = info->type[0] == ISA_TYPE_V2F16, pair = info->type[0] == ISA_TYPE_V2F32;
            for (int l = 0; l < ISA_LANES; l++) {
                uint64_t a = x[l] | (uint64_t)x[ISA_LANES + l] << 32;
                uint64_t b = y[l] | (uint64_t)y[ISA_LANES + l] << 32;
                int same = agrees(kind, a, b);
                if (halves)
                    same = agrees(F16, a & 0xffff, b & 0xffff) &&
                           agrees(F16, a >> 16 & 0xffff, b >> 16 & 0xffff);
                if (pair)
                    same = agrees(F32, a & 0xffffffff, b & 0xffffffff) &&
                           agrees(F32, a >> 32, b >> 32);
                if (!same)
                    fail_msg("%s in %s: %#lx, plain: %#lx", info->name, name, (unsigned long)b,
                             (unsigned long)a);
            }
        }
    }
    for (int round = 0; round < 50; round++) {
        uint64_t mask = random64() & random64();
        rows->expand(x, mask);
        assert_int_equal(rows->collect(x), mask);
        isa_rows_base.expand(y, mask);
        assert_memory_equal(x, y, ISA_LANES * 4);
        rows->fill(x, 17);
        rows->fill(y, 18);
        rows->merge(y, x, mask);
        for (int l = 0; l < ISA_LANES; l++)
            assert_int_equal(y[l], mask >> l & 1 ? 17 : 18);
    }
}

/* Elements of matrices and products of rows: the same bits in every set. */
static void compare_products(const struct isa_rows *rows, const char *name) {
    static _Alignas(64) uint32_t s[2 * ISA_LANES];
    static _Alignas(64) double b[64 * 32], x[4 * ISA_LANES], y[4 * ISA_LANES], a[64];
    static const uint8_t along[16] = { 3, 1, 2, 0, 7, 5, 6, 4, 8, 9, 10, 11, 15, 14, 13, 12 };
    for (enum isa_element e = ISA_ELEMENT_F32; e <= ISA_ELEMENT_F64; e++) {
        for (int l = 0; l < 2 * ISA_LANES; l++)
            s[l] = (uint32_t)random64();
        for (int flush = 0; flush < 2; flush++) {
            memset(x, 0, sizeof x);
            memset(y, 0, sizeof y);
            isa_rows_base.widen(x, s, e, flush);
            rows->widen(y, s, e, flush);
            if (memcmp(x, y, sizeof x) != 0)
                fail_msg("elements of type %d in %s", (int)e, name);
        }
    }
    for (int m = ISA_MULTIPLY_SMALL; m <= ISA_MULTIPLY_F64; m++)
        for (unsigned n = 4; n <= 32; n = n == 4 ? 16 : 2 * n) {
            for (size_t k = 0; k < 64 * 32; k++) {
                double value = (double)(random64() % 2001) / 16 - 60;
                int32_t small = (int32_t)(random64() % 255) - 127;
                if (m == ISA_MULTIPLY_F64)
                    memcpy((double *)b + k, &value, sizeof value);
                else if (m == ISA_MULTIPLY_I8)
                    memcpy((int32_t *)b + k, &small, sizeof small);
                else
                    memcpy((float *)b + k, &(float){ (float)value }, sizeof(float));
            }
            memcpy(a, b + 7, sizeof a);
            memcpy(x, b + 100, sizeof x);
            memcpy(y, x, sizeof y);
            struct isa_product p = { .n = n, .k = 16, .a = a, .b = b, .c = x, .along = along };
            isa_rows_base.multiply[m](&p);
            p.c = y;
            rows->multiply[m](&p);
            if (memcmp(x, y, sizeof x) != 0)
                fail_msg("product %d of %u columns in %s", m, n, name);
        }
}

static void instruction_sets_of_the_host_agree(void **state) {
    (void)state;
    int compared = 0;
#if defined(__x86_64__)
    if (cpu_features() & CPU_AVX2) {
        compare_rows(&isa_rows_avx2, "avx2");
        compare_products(&isa_rows_avx2, "avx2");
        compared++;
    }
    if (cpu_features() & CPU_AVX512) {
        compare_rows(&isa_rows_avx512, "avx512");
        compare_products(&isa_rows_avx512, "avx512");
        compared++;
    }
#endif
    print_message("%d instruction sets beside the plain one\n", compared);
}

/* A row without numbers that are rarely seen takes a shorter way, which must give the same. */
static void scaling_of_a_lane_does_not_depend_on_the_others(void **state) {
    (void)state;
    static const enum isa_op ops[] = { ISA_OP_v_div_scale_f32, ISA_OP_v_div_scale_f64 };
    for (int round = 0; round < 100; round++) {
        const struct isa_info *info = &isa_info[ops[round % 2]];
        static uint32_t given[6][ISA_LANES], together[2][ISA_LANES];
        uint32_t words[2];
        encode(ops[round % 2], words);
        fill_sources(info);
        for (int l = 0; l < ISA_LANES; l++) { /* ones, and lanes that hold nothing */
            bool half = round % 4 < 2 || random64() % 2, off = random64() % 3 == 0;
            for (int r = 0; r < 6 && half; r++)
                wave->vgpr[r][l] = off ? 0 : round % 2 == 0 ? 0x3f800000 : r % 2 ? 0x3ff00000 : 0;
        }
        memcpy(given, wave->vgpr, sizeof given);
        assert_int_equal(step(words, 2, ~UINT64_C(0), ISA_MODE_DEFAULT), ISA_END);
        uint64_t flags = wave->sgpr64[12];
        memcpy(together, wave->vgpr[8], sizeof together);
        for (int l = 0; l < ISA_LANES; l++) {
            for (int r = 0; r < 6; r++)
                set_all(r, given[r][l]);
            wave->vgpr[0][63 - l] = wave->vgpr[2][63 - l] = 1; /* one lane is rare */
            wave->vgpr[0][l] = given[0][l];
            wave->vgpr[2][l] = given[2][l];
            assert_int_equal(step(words, 2, ~UINT64_C(0), ISA_MODE_DEFAULT), ISA_END);
            uint64_t alone = wave->vgpr[8][l] | (uint64_t)(round % 2 ? wave->vgpr[9][l] : 0) << 32;
            uint64_t row = together[0][l] | (uint64_t)(round % 2 ? together[1][l] : 0) << 32;
            assert_true(agrees(round % 2 ? F64 : F32, alone, row));
            assert_int_equal(wave->sgpr64[12] >> l & 1, flags >> l & 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_do_what_the_model_says),
        cmocka_unit_test(every_vector_instruction_is_executed),
        cmocka_unit_test(instruction_sets_of_the_host_agree),
        cmocka_unit_test(scaling_of_a_lane_does_not_depend_on_the_others),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
