/* Every vector comparison against a model made from its name, v_cmp[x]_CONDITION_TYPE: all
 * conditions on edge values of all types, with lanes off; v_cmpx also changes EXEC. */
#include "unit/isa_wave.h"

#include <math.h>

static float half_of(uint32_t bits) {
    int exponent = (int)(bits >> 10 & 31);
    float mantissa = (float)(bits & 0x3ff), value;
    if (exponent == 31)
        value = mantissa > 0 ? NAN : INFINITY;
    else
        value = exponent ? ldexpf(mantissa + 1024, exponent - 25) : ldexpf(mantissa, -24);
    return bits & 0x8000 ? -value : value;
}

enum compared { COMPARED_LESS = 1, COMPARED_EQUAL = 2, COMPARED_GREATER = 4, COMPARED_APART = 8 };

#define COMPARE(a, b)                                                                              \
    ((a) < (b)    ? COMPARED_LESS                                                                  \
     : (a) == (b) ? COMPARED_EQUAL                                                                 \
     : (a) > (b)  ? COMPARED_GREATER                                                               \
                  : COMPARED_APART)

/* The relations under which a condition holds; -1: there is none of that name. Integers have ne and
 * t where floats have neq, lg and tru. */
static int condition_of(const char *name) {
    static const struct {
        const char *name;
        int holds;
    } all[] = {
        { "f", 0 },    { "lt", 1 },   { "eq", 2 },   { "le", 3 },   { "gt", 4 },   { "lg", 5 },
        { "ne", 5 },   { "ge", 6 },   { "o", 7 },    { "t", 15 },   { "u", 8 },    { "nge", 9 },
        { "nlg", 10 }, { "ngt", 11 }, { "nle", 12 }, { "neq", 13 }, { "nlt", 14 }, { "tru", 15 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name))
            return all[i].holds;
    return -1;
}

/* v_cmp_class: which bit of the mask a number belongs to, from its fields. */
static unsigned class_of(uint64_t bits, unsigned exponent_bits, unsigned mantissa_bits) {
    uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    uint64_t most = (UINT64_C(1) << exponent_bits) - 1, exponent = bits >> mantissa_bits & most;
    bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
    if (exponent == most && mantissa)
        return mantissa >> (mantissa_bits - 1) ? 2 : 1;
    unsigned magnitude = exponent == most ? 3 : exponent ? 2 : mantissa ? 1 : 0;
    return negative ? 32u >> magnitude : 64u << magnitude;
}

/* Whether a comparison of that name holds; -1: it is none. */
static int model(const char *name, uint64_t a, uint64_t b) {
    char condition[16] = "";
    const char *from = strncmp(name, "v_cmpx_", 7) ? name + 6 : name + 7,
               *type = strrchr(name, '_');
    if (strncmp(name, "v_cmp", 5) || type <= from || (size_t)(type - from) >= sizeof condition)
        return -1;
    memcpy(condition, from, (size_t)(type - from));
    unsigned bits = (unsigned)atoi(type + 2);
    float fa, fb;
    double da, db;
    uint32_t low[2] = { (uint32_t)a, (uint32_t)b };
    memcpy(&fa, &low[0], 4);
    memcpy(&fb, &low[1], 4);
    memcpy(&da, &a, 8);
    memcpy(&db, &b, 8);
    if (!strcmp(condition, "class"))
        return (b & (bits == 64   ? class_of(a, 11, 52)
                     : bits == 32 ? class_of(a, 8, 23)
                                  : class_of(a, 5, 10))) != 0;
    int holds = condition_of(condition), is;
    if (holds < 0)
        return -1;
    if (type[1] == 'f')
        is = bits == 64   ? COMPARE(da, db)
             : bits == 32 ? COMPARE(fa, fb)
                          : COMPARE(half_of((uint32_t)a), half_of((uint32_t)b));
    else if (type[1] == 'i')
        is = bits == 64   ? COMPARE((int64_t)a, (int64_t)b)
             : bits == 32 ? COMPARE((int32_t)a, (int32_t)b)
                          : COMPARE((int16_t)a, (int16_t)b);
    else
        is = bits == 64   ? COMPARE(a, b)
             : bits == 32 ? COMPARE((uint32_t)a, (uint32_t)b)
                          : COMPARE((uint16_t)a, (uint16_t)b);
    return (holds & is) != 0;
}

/* ---- values ---- */

static uint64_t random64(void) {
    static uint64_t state = 11;
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = state >> 32;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | state >> 32;
}

static uint64_t pick(enum isa_type t) {
    static const uint64_t f64[] = { 0,
                                    UINT64_C(1) << 63,
                                    1,
                                    0x8000000000000001,
                                    0xfffffffffffff,
                                    0x10000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x7fefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0x7ff0000000000001 };
    static const uint32_t f32[] = { 0,          0x80000000, 1,          0x80000001, 0x7fffff,
                                    0x800000,   0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000,
                                    0xff800000, 0x7fc00000, 0x7f800001 };
    static const uint16_t f16[] = { 0,      0x8000, 1,      0x8001, 0x3ff,  0x400, 0x3c00,
                                    0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01 };
    static const uint64_t integers[] = { 0,          1,
                                         0x7fff,     0x8000,
                                         0xffff,     0x7fffffff,
                                         0x80000000, 0xffffffff,
                                         INT64_MAX,  UINT64_C(1) << 63,
                                         UINT64_MAX, UINT64_MAX - 1,
                                         0x100000000 };
    unsigned n = (unsigned)(random64() % 13);
    if (random64() % 8 == 0)
        return random64();
    return t == ISA_TYPE_F64   ? f64[n]
           : t == ISA_TYPE_F32 ? f32[n]
           : t == ISA_TYPE_F16 ? f16[n] | (random64() & 0xffff0000)
                               : integers[n];
}

static void fill(const struct isa_info *info, uint64_t value[2][ISA_LANES]) {
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned s = 0; s < 2; s++) {
            uint64_t x = l % 4 == 3 && s ? value[0][l] : pick(info->type[s + 1]); /* often equal */
            value[s][l] = x;
            set_address(2 * s, l, x);
        }
}

static void check_comparison(enum isa_op op) {
    const struct isa_info *info = &isa_info[op];
    uint64_t value[2][ISA_LANES], exec = random64() | 1, wanted = 0;
    const uint32_t words[2] = { 0xd0000000 | (uint32_t)info->opcode << 16 | 24,
                                ISA_VGPR0 | (ISA_VGPR0 + 2) << 9 };
    struct isa_insn i;
    fill(info, value);
    isa_decode(ISA_GFX90A, words, 2, &i);
    assert_int_equal(i.op, op);
    ISA_WAVE_EXEC(wave) = exec;
    wave->sgpr64[12] = ~UINT64_C(0);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        int holds = model(info->name, value[0][l], value[1][l]);
        if (holds < 0)
            fail_msg("there is no model of %s", info->name);
        wanted |= (uint64_t)(holds && exec >> l & 1) << l;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    bool sets_exec = !strncmp(info->name, "v_cmpx", 6);
    if (wave->sgpr64[12] != wanted || ISA_WAVE_EXEC(wave) != (sets_exec ? wanted : exec)) {
        unsigned l = (unsigned)__builtin_ctzll((wave->sgpr64[12] ^ wanted) | UINT64_C(1) << 63);
        fail_msg(
            "%s gives %#llx and EXEC %#llx, and should give %#llx; lane %u has %#llx and %#llx",
            info->name, (unsigned long long)wave->sgpr64[12],
            (unsigned long long)ISA_WAVE_EXEC(wave), (unsigned long long)wanted, l,
            (unsigned long long)value[0][l], (unsigned long long)value[1][l]);
    }
}

static void every_comparison_does_what_its_name_says(void **state) {
    (void)state;
    unsigned count = 0;
    wave_open(ISA_GFX90A);
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        if (isa_info[op].encoding != ISA_ENC_VOPC)
            continue;
        for (int round = 0; round < 16; round++)
            check_comparison(op);
        count++;
    }
    wave_close();
    assert_true(count > 190);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_comparison_does_what_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
