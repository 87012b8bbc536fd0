/* Vector instructions against a scalar model (isa_model.def) on edge values, with lanes off; and
 * every row function of every instruction set of the processor against the plain one. */
#include "base/cpu.h"
#include "isa/rows.h"
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

/* ---- the model ---- */

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_do_what_the_model_says),
        cmocka_unit_test(every_vector_instruction_is_executed),
        cmocka_unit_test(instruction_sets_of_the_host_agree),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
