/* Vector instructions against a scalar model (isa_model.def) on edge values, with lanes off; every
 * row function of every instruction set of the processor against the plain one; and modifiers. */
#include "base/cpu.h"
#include "isa/isa.h"
#include "isa/rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x4000u

/* ---- one instruction ---- */

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

/* Runs an instruction; registers are as they were. */
static enum isa_result step(const uint32_t *words, int n, uint64_t exec, uint32_t mode) {
    struct isa_code *code;
    struct err e = { 0 };
    uint32_t program[3] = { words[0], n > 1 ? words[1] : 0xbf810000, 0xbf810000 };
    assert_int_equal(isa_code_open(&code, ISA_GFX942, program, sizeof program, BASE, &e), RC_OK);
    wave->code = code;
    wave->group = &group;
    wave->memory = NULL;
    wave->host = NULL;
    wave->used = NULL;
    wave->mode = mode;
    ISA_WAVE_EXEC(wave) = exec;
    assert_int_equal(isa_wave_jump(wave, BASE), ISA_CONTINUE);
    enum isa_result r = isa_run(wave, 100);
    isa_code_close(&code);
    return r;
}

/* ---- edge values ---- */

static uint64_t random_state = 7;

static uint64_t random64(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = random_state >> 32;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | random_state >> 32;
}

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

/* ---- the model ---- */

static uint32_t bits32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static uint64_t bits64(double f) {
    uint64_t u;
    memcpy(&u, &f, 8);
    return u;
}
static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static double double_of(uint64_t u) {
    double f;
    memcpy(&f, &u, 8);
    return f;
}

static float half_of(uint32_t h) {
    int exponent = (int)(h >> 10 & 31);
    double mantissa = h & 0x3ff, value;
    if (exponent == 31)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else
        value = exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24);
    return (float)(h & 0x8000 ? -value : value);
}

/* The f16 nearest to a number, found by trying all of them; ties go to the even one. */
static uint64_t slow_half(double x) {
    uint32_t best = 0;
    if (isnan(x))
        return 0x7e00;
    if (fabs(x) >= 65520)
        return x < 0 ? 0xfc00 : 0x7c00;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double now = fabs((double)half_of(h) - fabs(x)),
               so_far = fabs((double)half_of(best) - fabs(x));
        if (now < so_far || (now == so_far && !(h & 1)))
            best = h;
        if ((double)half_of(h) > fabs(x))
            break;
    }
    return best | (signbit(x) ? 0x8000 : 0);
}

/* fma of f16 in whole numbers of 2^-48, which are exact. */
__extension__ typedef __int128 wide;

static uint64_t slow_half_fma(uint32_t a, uint32_t b, uint32_t c) {
    float x = half_of(a & 0xffff), y = half_of(b & 0xffff), z = half_of(c & 0xffff);
    if (!isfinite(x) || !isfinite(y) || !isfinite(z))
        return slow_half((double)x * (double)y + (double)z);
    wide sum = (wide)(int64_t)ldexp((double)x, 24) * (int64_t)ldexp((double)y, 24) +
               (wide)(int64_t)ldexp((double)z, 24) * (1 << 24);
    wide size = sum < 0 ? -sum : sum;
    if (size == 0) /* zeros have signs */
        return slow_half((double)x * (double)y + (double)z);
    if (size >= (wide)65520 * ((wide)1 << 48))
        return sum < 0 ? 0xfc00 : 0x7c00;
    uint32_t h = 0;
    while (h < 0x7bff && (wide)(int64_t)ldexp((double)half_of(h + 1), 24) * (1 << 24) <= size)
        h++;
    wide below = size - (wide)(int64_t)ldexp((double)half_of(h), 24) * (1 << 24);
    wide above = (h == 0x7bff ? (wide)65536 * ((wide)1 << 48)
                              : (wide)(int64_t)ldexp((double)half_of(h + 1), 24) * (1 << 24)) -
                 size;
    if (above < below || (above == below && h & 1))
        h++;
    return h | (sum < 0 ? 0x8000 : 0);
}

static uint64_t slow_reverse(uint32_t a) {
    uint64_t d = 0;
    for (int n = 0; n < 32; n++)
        if (a & 1u << n)
            d |= UINT64_C(1) << (31 - n);
    return d;
}

/* Steps from one end to the first bit that is set. */
static uint64_t slow_first(uint32_t a, int from, int by) {
    for (int n = 0; n < 32; n++)
        if (a & 1u << (from + by * n))
            return (uint64_t)n;
    return 0xffffffff;
}

static uint64_t slow_count(uint64_t a) {
    uint64_t n = 0;
    for (; a; a >>= 1)
        n += a & 1;
    return n;
}

static int64_t floor_shift(int64_t a, uint64_t by) {
    for (; by; by--)
        a = a < 0 ? ~(~a / 2) : a / 2; /* floor(a / 2) */
    return a;
}

static int64_t sign24(uint64_t a) {
    int64_t x = (int64_t)(a % 0x1000000);
    return x >= 0x800000 ? x - 0x1000000 : x;
}

static int64_t saturate(double x, double low, double high) {
    if (isnan(x))
        return 0;
    return (int64_t)(x < low ? low : x > high ? high : trunc(x));
}

static uint64_t slow_extreme(uint32_t a, uint32_t b, int least) {
    float x = float_of(a), y = float_of(b);
    int quiet_a = (a & 0x400000) != 0, quiet_b = (b & 0x400000) != 0;
    if ((isnan(x) && !quiet_a) || (isnan(y) && !quiet_b))
        return 0x7fc00000;
    if (isnan(x))
        return b;
    if (isnan(y))
        return a;
    if (x == 0 && y == 0)
        return least ? a | b : a & b; /* the sign of zeros */
    return (x < y) == least ? a : b;
}
static uint32_t slow_min32(uint32_t a, uint32_t b) {
    return (uint32_t)slow_extreme(a, b, 1);
}
static uint32_t slow_max32(uint32_t a, uint32_t b) {
    return (uint32_t)slow_extreme(a, b, 0);
}

static int slow_exponent(double x) {
    int e = 0;
    if (isfinite(x) && x != 0)
        frexp(x, &e);
    return e;
}
static float slow_mantissa32(float x) {
    int e;
    return isfinite(x) ? frexpf(x, &e) : x;
}
static double slow_mantissa64(double x) {
    int e;
    return isfinite(x) ? frexp(x, &e) : x;
}

static uint64_t slow_class(float x, uint32_t bits) {
    int negative = signbit(x) != 0;
    switch (fpclassify(x)) {
    case FP_NAN:
        return bits & 0x400000 ? 2 : 1;
    case FP_INFINITE:
        return negative ? 4 : 512;
    case FP_NORMAL:
        return negative ? 8 : 256;
    case FP_SUBNORMAL:
        return negative ? 16 : 128;
    default:
        return negative ? 32 : 64;
    }
}

#define LOWEST(a, b, c)  ((a) < (b) ? ((a) < (c) ? (a) : (c)) : ((b) < (c) ? (b) : (c)))
#define HIGHEST(a, b, c) ((a) > (b) ? ((a) > (c) ? (a) : (c)) : ((b) > (c) ? (b) : (c)))

enum kind { NO_MODEL, BITS, F32, F64, F16, FLAG };

static enum kind model(enum isa_op op, uint64_t a, uint64_t b, uint64_t c, int lane, uint64_t *d) {
    int32_t A = (int32_t)a, B = (int32_t)b, C = (int32_t)c;
    float fa = float_of((uint32_t)a), fb = float_of((uint32_t)b), fc = float_of((uint32_t)c);
    double da = double_of(a), db = double_of(b), dc = double_of(c);
    float ha = half_of(a & 0xffff), hb = half_of(b & 0xffff);
    switch (op) {
#define MODEL(name, kind, ...)                                                                     \
    case ISA_OP_##name:                                                                            \
        *d = (uint64_t)(__VA_ARGS__);                                                              \
        return kind;
#include "isa_model.def"
#undef MODEL
    default:
        return NO_MODEL;
    }
}

static bool agrees(enum kind kind, uint64_t is, uint64_t wanted) {
    switch (kind) {
    case F32:
        return (uint32_t)is == (uint32_t)wanted ||
               (isnan(float_of((uint32_t)is)) && isnan(float_of((uint32_t)wanted)));
    case F64:
        return is == wanted || (isnan(double_of(is)) && isnan(double_of(wanted)));
    case F16:
        return is == wanted || ((is & 0x7fff) > 0x7c00 && (wanted & 0x7fff) > 0x7c00);
    default:
        return is == wanted;
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
    if (step(words, 2, exec, ISA_MODE_DEFAULT) != ISA_END)
        fail_msg("%s does not run", info->name);
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

/* ---- modifiers ---- */

static void set_all(int reg, uint32_t value) {
    for (int l = 0; l < ISA_LANES; l++)
        wave->vgpr[reg][l] = value;
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_do_what_the_model_says),
        cmocka_unit_test(every_vector_instruction_is_executed),
        cmocka_unit_test(instruction_sets_of_the_host_agree),
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
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
