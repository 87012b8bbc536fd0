/* Scalar instructions against a model written out here, on edge values: result and SCC. */
#include "isa/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x8000u

static struct isa_wave *wave;
static struct isa_group group;

static int setup(void **state) {
    (void)state;
    wave = aligned_alloc(64, sizeof *wave);
    return wave ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    free(wave);
    return 0;
}

static uint64_t random_state = 3;

static uint64_t edge(void) {
    static const uint64_t edges[] = { 0,
                                      1,
                                      2,
                                      31,
                                      32,
                                      63,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xffffffffffffffff,
                                      0x00100003,
                                      0x00200000,
                                      0x0007001f };
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = random_state >> 32;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return high % 2 ? edges[high / 2 % 16] : high << 32 | random_state >> 32;
}

/* SCC of a model: as it was, or a value. */
enum { KEPT = 2 };

struct inputs {
    uint64_t a, b, d, exec; /* sources, the destination before, EXEC */
    int scc;
};

static uint64_t ones(unsigned n) {
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static int bit(uint64_t x, uint64_t n) {
    return (int)(x >> n & 1);
}

/* The field of a `bits` wide number that the second source of s_bfe names. */
static uint64_t field(uint64_t a, uint32_t b, unsigned bits, int sign) {
    unsigned offset = b % bits, width = b >> 16 & 0x7f;
    uint64_t d = 0;
    if (width == 0)
        return 0;
    for (unsigned n = 0; n < bits; n++) {
        unsigned from = n < width ? offset + n : offset + width - 1;
        int value = from < bits ? bit(a, from) : sign ? bit(a, bits - 1) : 0;
        if (n >= width && !sign)
            value = 0;
        d |= (uint64_t)value << n;
    }
    return d;
}

/* Steps from a bit to the first one that has the value; -1. */
static uint64_t first(uint64_t a, int bits, int value, int from_top) {
    for (int n = 0; n < bits; n++)
        if (bit(a, (uint64_t)(from_top ? bits - 1 - n : n)) == value)
            return (uint64_t)n;
    return 0xffffffff;
}

static uint64_t count(uint64_t a, int bits, int value) {
    uint64_t n = 0;
    for (int k = 0; k < bits; k++)
        n += bit(a, (uint64_t)k) == value;
    return n;
}

static uint64_t reversed(uint64_t a, int bits) {
    uint64_t d = 0;
    for (int k = 0; k < bits; k++)
        d |= (uint64_t)bit(a, (uint64_t)k) << (bits - 1 - k);
    return d;
}

static uint64_t quads(uint64_t a, int spread) {
    uint64_t d = 0;
    for (int k = 0; k < 16; k++)
        if (a >> 4 * k & 15)
            d |= spread ? UINT64_C(15) << 4 * k : UINT64_C(1) << k;
    return d;
}

static uint64_t twice(uint32_t a) {
    uint64_t d = 0;
    for (int k = 0; k < 64; k++)
        d |= (uint64_t)bit(a, (uint64_t)k / 2) << k;
    return d;
}

static int overflows(int64_t x) {
    return x < INT32_MIN || x > INT32_MAX;
}

/* Of the instructions in the list: D, SCC, and for some EXEC. */
#define MODELS                                                                                     \
    M(s_add_u32, D = a + b, S = (uint64_t)a + b > 0xffffffff)                                      \
    M(s_sub_u32, D = a - b, S = b > a)                                                             \
    M(s_add_i32, D = a + b, S = overflows((int64_t)A + B))                                         \
    M(s_sub_i32, D = a - b, S = overflows((int64_t)A - B))                                         \
    M(s_addc_u32, D = a + b + (uint32_t)in->scc,                                                   \
      S = (uint64_t)a + b + (uint64_t)in->scc > 0xffffffff)                                        \
    M(s_subb_u32, D = a - b - (uint32_t)in->scc, S = (uint64_t)b + (uint64_t)in->scc > a)          \
    M(s_min_i32, D = (uint32_t)(A < B ? A : B), S = A < B)                                         \
    M(s_min_u32, D = a < b ? a : b, S = a < b)                                                     \
    M(s_max_i32, D = (uint32_t)(A > B ? A : B), S = A > B)                                         \
    M(s_max_u32, D = a > b ? a : b, S = a > b)                                                     \
    M(s_cselect_b32, D = in->scc ? a : b, (void)0)                                                 \
    M(s_cselect_b64, D = in->scc ? in->a : in->b, (void)0)                                         \
    M(s_and_b32, D = a & b, S = D != 0)                                                            \
    M(s_and_b64, D = in->a & in->b, S = D != 0)                                                    \
    M(s_or_b32, D = a | b, S = D != 0)                                                             \
    M(s_or_b64, D = in->a | in->b, S = D != 0)                                                     \
    M(s_xor_b32, D = a ^ b, S = D != 0)                                                            \
    M(s_xor_b64, D = in->a ^ in->b, S = D != 0)                                                    \
    M(s_andn2_b32, D = a & ~b, S = D != 0)                                                         \
    M(s_andn2_b64, D = in->a & ~in->b, S = D != 0)                                                 \
    M(s_orn2_b32, D = a | ~b, S = D != 0)                                                          \
    M(s_orn2_b64, D = in->a | ~in->b, S = D != 0)                                                  \
    M(s_nand_b32, D = (uint32_t) ~(a & b), S = D != 0)                                             \
    M(s_nand_b64, D = ~(in->a & in->b), S = D != 0)                                                \
    M(s_nor_b32, D = (uint32_t) ~(a | b), S = D != 0)                                              \
    M(s_nor_b64, D = ~(in->a | in->b), S = D != 0)                                                 \
    M(s_xnor_b32, D = (uint32_t) ~(a ^ b), S = D != 0)                                             \
    M(s_xnor_b64, D = ~(in->a ^ in->b), S = D != 0)                                                \
    M(s_lshl_b32, D = (uint32_t)((uint64_t)a << b % 32), S = D != 0)                               \
    M(s_lshl_b64, D = in->a << b % 64, S = D != 0)                                                 \
    M(s_lshr_b32, D = a >> b % 32, S = D != 0)                                                     \
    M(s_lshr_b64, D = in->a >> b % 64, S = D != 0)                                                 \
    M(s_ashr_i32, D = (uint32_t)((int64_t)A >> b % 32), S = D != 0)                                \
    M(s_ashr_i64, D = in->a >> b % 64 | (in->a >> 63 ? ~ones(64 - b % 64) : 0), S = D != 0)        \
    M(s_bfm_b32, D = (uint32_t)(ones(a % 32) << b % 32), (void)0)                                  \
    M(s_bfm_b64, D = ones(a % 64) << b % 64, (void)0)                                              \
    M(s_mul_i32, D = (uint32_t)((uint64_t)a * b), (void)0)                                         \
    M(s_mul_hi_u32, D = (uint64_t)a * b >> 32, (void)0)                                            \
    M(s_mul_hi_i32, D = (uint32_t)((int64_t)A * B >> 32), (void)0)                                 \
    M(s_bfe_u32, D = (uint32_t)field(a, b, 32, 0), S = D != 0)                                     \
    M(s_bfe_i32, D = (uint32_t)field(a, b, 32, 1), S = D != 0)                                     \
    M(s_bfe_u64, D = field(in->a, b, 64, 0), S = D != 0)                                           \
    M(s_bfe_i64, D = field(in->a, b, 64, 1), S = D != 0)                                           \
    M(s_absdiff_i32, D = (int32_t)(a - b) < 0 ? b - a : a - b, S = D != 0)                         \
    M(s_lshl1_add_u32, D = a * 2 + b, S = (uint64_t)a * 2 + b > 0xffffffff)                        \
    M(s_lshl2_add_u32, D = a * 4 + b, S = (uint64_t)a * 4 + b > 0xffffffff)                        \
    M(s_lshl3_add_u32, D = a * 8 + b, S = (uint64_t)a * 8 + b > 0xffffffff)                        \
    M(s_lshl4_add_u32, D = a * 16 + b, S = (uint64_t)a * 16 + b > 0xffffffff)                      \
    M(s_pack_ll_b32_b16, D = a % 0x10000 + b % 0x10000 * 0x10000, (void)0)                         \
    M(s_pack_lh_b32_b16, D = a % 0x10000 + b / 0x10000 * 0x10000, (void)0)                         \
    M(s_pack_hh_b32_b16, D = a / 0x10000 + b / 0x10000 * 0x10000, (void)0)                         \
    M(s_mov_b32, D = a, (void)0)                                                                   \
    M(s_mov_b64, D = in->a, (void)0)                                                               \
    M(s_cmov_b32, D = in->scc ? a : (uint32_t)in->d, (void)0)                                      \
    M(s_cmov_b64, D = in->scc ? in->a : in->d, (void)0)                                            \
    M(s_not_b32, D = (uint32_t)~a, S = D != 0)                                                     \
    M(s_not_b64, D = ~in->a, S = D != 0)                                                           \
    M(s_wqm_b32, D = (uint32_t)quads(a, 1), S = D != 0)                                            \
    M(s_wqm_b64, D = quads(in->a, 1), S = D != 0)                                                  \
    M(s_brev_b32, D = reversed(a, 32), (void)0)                                                    \
    M(s_brev_b64, D = reversed(in->a, 64), (void)0)                                                \
    M(s_bcnt0_i32_b32, D = count(a, 32, 0), S = D != 0)                                            \
    M(s_bcnt0_i32_b64, D = count(in->a, 64, 0), S = D != 0)                                        \
    M(s_bcnt1_i32_b32, D = count(a, 32, 1), S = D != 0)                                            \
    M(s_bcnt1_i32_b64, D = count(in->a, 64, 1), S = D != 0)                                        \
    M(s_ff0_i32_b32, D = first(a, 32, 0, 0), (void)0)                                              \
    M(s_ff0_i32_b64, D = first(in->a, 64, 0, 0), (void)0)                                          \
    M(s_ff1_i32_b32, D = first(a, 32, 1, 0), (void)0)                                              \
    M(s_ff1_i32_b64, D = first(in->a, 64, 1, 0), (void)0)                                          \
    M(s_flbit_i32_b32, D = first(a, 32, 1, 1), (void)0)                                            \
    M(s_flbit_i32_b64, D = first(in->a, 64, 1, 1), (void)0)                                        \
    M(s_flbit_i32, D = first(a, 32, !bit(a, 31), 1), (void)0)                                      \
    M(s_flbit_i32_i64, D = first(in->a, 64, !bit(in->a, 63), 1), (void)0)                          \
    M(s_sext_i32_i8, D = (a & 0xff) | (a & 0x80 ? 0xffffff00 : 0), (void)0)                        \
    M(s_sext_i32_i16, D = (a & 0xffff) | (a & 0x8000 ? 0xffff0000 : 0), (void)0)                   \
    M(s_bitset0_b32, D = (uint32_t)in->d & (uint32_t) ~(1u << a % 32), (void)0)                    \
    M(s_bitset0_b64, D = in->d & ~(UINT64_C(1) << a % 64), (void)0)                                \
    M(s_bitset1_b32, D = (uint32_t)in->d | 1u << a % 32, (void)0)                                  \
    M(s_bitset1_b64, D = in->d | UINT64_C(1) << a % 64, (void)0)                                   \
    M(s_and_saveexec_b64, D = in->exec, X = in->a & in->exec; S = X != 0)                          \
    M(s_or_saveexec_b64, D = in->exec, X = in->a | in->exec; S = X != 0)                           \
    M(s_xor_saveexec_b64, D = in->exec, X = in->a ^ in->exec; S = X != 0)                          \
    M(s_andn2_saveexec_b64, D = in->exec, X = in->a & ~in->exec; S = X != 0)                       \
    M(s_orn2_saveexec_b64, D = in->exec, X = in->a | ~in->exec; S = X != 0)                        \
    M(s_nand_saveexec_b64, D = in->exec, X = ~(in->a & in->exec); S = X != 0)                      \
    M(s_nor_saveexec_b64, D = in->exec, X = ~(in->a | in->exec); S = X != 0)                       \
    M(s_xnor_saveexec_b64, D = in->exec, X = ~(in->a ^ in->exec); S = X != 0)                      \
    M(s_andn1_saveexec_b64, D = in->exec, X = ~in->a & in->exec; S = X != 0)                       \
    M(s_orn1_saveexec_b64, D = in->exec, X = ~in->a | in->exec; S = X != 0)                        \
    M(s_andn1_wrexec_b64, D = ~in->a & in->exec, X = D; S = X != 0)                                \
    M(s_andn2_wrexec_b64, D = in->a & ~in->exec, X = D; S = X != 0)                                \
    M(s_quadmask_b32, D = quads(a, 0), S = D != 0)                                                 \
    M(s_quadmask_b64, D = quads(in->a, 0), S = D != 0)                                             \
    M(s_abs_i32, D = (uint32_t)(A < 0 ? 0 - (int64_t)A : A), S = D != 0)                           \
    M(s_bitreplicate_b64_b32, D = twice(a), (void)0)                                               \
    M(s_cmp_eq_i32, (void)0, S = A == B)                                                           \
    M(s_cmp_lg_i32, (void)0, S = A != B)                                                           \
    M(s_cmp_gt_i32, (void)0, S = A > B)                                                            \
    M(s_cmp_ge_i32, (void)0, S = A >= B)                                                           \
    M(s_cmp_lt_i32, (void)0, S = A < B)                                                            \
    M(s_cmp_le_i32, (void)0, S = A <= B)                                                           \
    M(s_cmp_eq_u32, (void)0, S = a == b)                                                           \
    M(s_cmp_lg_u32, (void)0, S = a != b)                                                           \
    M(s_cmp_gt_u32, (void)0, S = a > b)                                                            \
    M(s_cmp_ge_u32, (void)0, S = a >= b)                                                           \
    M(s_cmp_lt_u32, (void)0, S = a < b)                                                            \
    M(s_cmp_le_u32, (void)0, S = a <= b)                                                           \
    M(s_cmp_eq_u64, (void)0, S = in->a == in->b)                                                   \
    M(s_cmp_lg_u64, (void)0, S = in->a != in->b)                                                   \
    M(s_bitcmp0_b32, (void)0, S = !bit(a, b % 32))                                                 \
    M(s_bitcmp1_b32, (void)0, S = bit(a, b % 32))                                                  \
    M(s_bitcmp0_b64, (void)0, S = !bit(in->a, b % 64))                                             \
    M(s_bitcmp1_b64, (void)0, S = bit(in->a, b % 64))                                              \
    M(s_movk_i32, D = (uint32_t)K, (void)0)                                                        \
    M(s_cmovk_i32, D = in->scc ? (uint32_t)K : (uint32_t)in->d, (void)0)                           \
    M(s_cmpk_eq_i32, (void)0, S = (int32_t)in->d == K)                                             \
    M(s_cmpk_lg_i32, (void)0, S = (int32_t)in->d != K)                                             \
    M(s_cmpk_gt_i32, (void)0, S = (int32_t)in->d > K)                                              \
    M(s_cmpk_ge_i32, (void)0, S = (int32_t)in->d >= K)                                             \
    M(s_cmpk_lt_i32, (void)0, S = (int32_t)in->d < K)                                              \
    M(s_cmpk_le_i32, (void)0, S = (int32_t)in->d <= K)                                             \
    M(s_cmpk_eq_u32, (void)0, S = (uint32_t)in->d == (uint16_t)K)                                  \
    M(s_cmpk_lg_u32, (void)0, S = (uint32_t)in->d != (uint16_t)K)                                  \
    M(s_cmpk_gt_u32, (void)0, S = (uint32_t)in->d > (uint16_t)K)                                   \
    M(s_cmpk_ge_u32, (void)0, S = (uint32_t)in->d >= (uint16_t)K)                                  \
    M(s_cmpk_lt_u32, (void)0, S = (uint32_t)in->d < (uint16_t)K)                                   \
    M(s_cmpk_le_u32, (void)0, S = (uint32_t)in->d <= (uint16_t)K)                                  \
    M(s_addk_i32, D = (uint32_t)in->d + (uint32_t)K, S = overflows((int64_t)(int32_t)in->d + K))   \
    M(s_mulk_i32, D = (uint32_t)((int64_t)(int32_t)in->d * K), (void)0)

struct outcome {
    uint64_t d, exec;
    int scc;
};

static struct outcome expected(enum isa_op op, const struct inputs *in, int32_t K) {
    uint32_t a = (uint32_t)in->a, b = (uint32_t)in->b;
    int32_t A = (int32_t)a, B = (int32_t)b;
    uint64_t D = in->d, X = in->exec;
    int S = KEPT;
    switch (op) {
#define M(name, result, flag)                                                                      \
    case ISA_OP_##name:                                                                            \
        result;                                                                                    \
        flag;                                                                                      \
        break;
        MODELS
#undef M
    default:
        fail_msg("no model of %s", isa_info[op].name);
    }
    return (struct outcome){ D, X, S == KEPT ? in->scc : S };
}

static uint32_t encode(enum isa_op op, int32_t k) {
    uint32_t opcode = isa_info[op].opcode;
    switch (isa_info[op].encoding) {
    case ISA_ENC_SOP2:
        return 0x80000000 | opcode << 23 | 20 << 16 | 12 << 8 | 10;
    case ISA_ENC_SOP1:
        return 0xbe800000 | 20 << 16 | opcode << 8 | 10;
    case ISA_ENC_SOPC:
        return 0xbf000000 | opcode << 16 | 12 << 8 | 10;
    default:
        return 0xb0000000 | opcode << 23 | 20 << 16 | (uint16_t)k;
    }
}

static void check_instruction(enum isa_op op) {
    static const int16_t ks[] = { 0, 1, -1, 0x7fff, -0x8000, 1234 };
    struct inputs in = { edge(), edge(), edge(), edge(), (int)(edge() & 1) };
    int32_t k = ks[edge() % 6];
    uint32_t words[2] = { encode(op, k), 0xbf810000 };
    struct isa_code *code;
    struct err e = { 0 };
    assert_int_equal(isa_code_open(&code, ISA_GFX942, words, sizeof words, BASE, &e), RC_OK);
    isa_wave_reset(wave, code, &group, NULL, NULL);
    wave->sgpr64[5] = in.a;
    wave->sgpr64[6] = in.b;
    wave->sgpr64[10] = in.d;
    wave->scc = (uint32_t)in.scc;
    ISA_WAVE_EXEC(wave) = in.exec;
    assert_int_equal(isa_wave_jump(wave, BASE), ISA_CONTINUE);
    assert_int_equal(isa_run(wave, 10), ISA_END);
    isa_code_close(&code);
    struct outcome x = expected(op, &in, k);
    if (isa_type_dwords(isa_info[op].type[0]) < 2) /* the upper half is another register */
        x.d = (x.d & 0xffffffff) | (in.d & ~UINT64_C(0xffffffff));
    if (wave->sgpr64[10] != x.d || wave->scc != (uint32_t)x.scc || ISA_WAVE_EXEC(wave) != x.exec)
        fail_msg("%s of %#lx and %#lx (K %d, D %#lx, SCC %d): %#lx, SCC %u; should be %#lx, SCC %d",
                 isa_info[op].name, (unsigned long)in.a, (unsigned long)in.b, k,
                 (unsigned long)in.d, in.scc, (unsigned long)wave->sgpr64[10], wave->scc,
                 (unsigned long)x.d, x.scc);
}

static const enum isa_op modelled[] = {
#define M(name, ...) ISA_OP_##name,
    MODELS
#undef M
};

static void instructions_do_what_the_model_says(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++)
        for (size_t n = 0; n < sizeof modelled / sizeof *modelled; n++)
            check_instruction(modelled[n]);
}

/* What has no model moves the program counter, reads hardware, or is not executed at all. */
static void every_scalar_operation_has_a_model(void **state) {
    (void)state;
    static const enum isa_op others[] = {
        ISA_OP_s_cbranch_g_fork, ISA_OP_s_rfe_restore_b64, ISA_OP_s_cbranch_i_fork,
        ISA_OP_s_getreg_b32,     ISA_OP_s_setreg_b32,      ISA_OP_s_setreg_imm32_b32,
        ISA_OP_s_call_b64,       ISA_OP_s_getpc_b64,       ISA_OP_s_setpc_b64,
        ISA_OP_s_swappc_b64,     ISA_OP_s_rfe_b64,         ISA_OP_s_movrels_b32,
        ISA_OP_s_movrels_b64,    ISA_OP_s_movreld_b32,     ISA_OP_s_movreld_b64,
        ISA_OP_s_cbranch_join,   ISA_OP_s_set_gpr_idx_idx, ISA_OP_s_set_gpr_idx_on,
        ISA_OP_s_setvskip,
    };
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        uint8_t enc = isa_info[op].encoding;
        bool found = enc < ISA_ENC_SOP2 || enc > ISA_ENC_SOPC;
        for (size_t n = 0; n < sizeof modelled / sizeof *modelled; n++)
            found |= modelled[n] == op;
        for (size_t n = 0; n < sizeof others / sizeof *others; n++)
            found |= others[n] == op;
        if (!found)
            fail_msg("no model of %s", isa_info[op].name);
    }
}

/* Runs code with s[2:3] = 0x200000001 and returns how it ended. */
static enum isa_result run(const uint32_t *words, size_t n) {
    struct isa_code *code;
    struct err e = { 0 };
    assert_int_equal(isa_code_open(&code, ISA_GFX90A, words, 4 * n, BASE, &e), RC_OK);
    isa_wave_reset(wave, code, &group, NULL, NULL);
    wave->sgpr64[1] = 0x200000001;
    assert_int_equal(isa_wave_jump(wave, BASE), ISA_CONTINUE);
    enum isa_result r = isa_run(wave, 100);
    isa_code_close(&code);
    return r;
}

static void registers_relative_to_m0(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xbefc0082, /* s_mov_b32 m0, 2 */
        0xbe802a00, /* s_movrels_b32 s0, s0: s2 */
        0xbe882c03, /* s_movreld_b32 s8, s3: s10 */
        0xbf810000,
    };
    assert_int_equal(run(code, 4), ISA_END);
    assert_int_equal(wave->sgpr[0], 1);
    assert_int_equal(wave->sgpr[10], 2);
}

static void hardware_registers_in_part(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xba000801, 0x00000003, /* s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3 */
        0xb8801901,             /* s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4) */
        0xb881f801,             /* s_getreg_b32 s1, hwreg(HW_REG_MODE) */
        0xbf810000,
    };
    assert_int_equal(run(code, 5), ISA_END);
    assert_int_equal(wave->sgpr[0], 15);
    assert_int_equal(wave->sgpr[1], ISA_MODE_DEFAULT | 3);
}

static void literals_of_64_bits_are_zero_extended(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xbe8401ff, 0x87654321, /* s_mov_b64 s[4:5], 0x87654321 */
        0xbe8601c1,             /* s_mov_b64 s[6:7], -1 */
        0xbe8801f2,             /* s_mov_b64 s[8:9], 1.0 */
        0xbf810000,
    };
    assert_int_equal(run(code, 5), ISA_END);
    assert_int_equal(wave->sgpr64[2], 0x87654321);
    assert_true(wave->sgpr64[3] == ~UINT64_C(0));
    assert_true(wave->sgpr64[4] == 0x3ff0000000000000);
}

static void reserved_operands_are_unknown(void **state) {
    (void)state;
    static const uint32_t code[] = { 0xbe8000d2 /* s_mov_b32 s0, <210> */ };
    assert_int_equal(run(code, 1), ISA_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_do_what_the_model_says),
        cmocka_unit_test(every_scalar_operation_has_a_model),
        cmocka_unit_test(registers_relative_to_m0),
        cmocka_unit_test(hardware_registers_in_part),
        cmocka_unit_test(literals_of_64_bits_are_zero_extended),
        cmocka_unit_test(reserved_operands_are_unknown),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
