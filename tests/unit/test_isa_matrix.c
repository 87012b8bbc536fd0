/* Matrix instructions of the interpreter against plain loops: every shape, with elements placed as
 * the instruction set's documentation draws them. */
#include "unit/isa_wave.h"

#include "isa/floats.h"
#include <math.h>

enum { V = ISA_VGPR0, A_REG = 0, B_REG = 8, C_REG = 32, D_REG = 96 };
enum type { F32, XF32, F16, BF16, FP8, BF8, I8, I32, F64 };

struct shape {
    enum isa_op op;
    unsigned m, n, k, blocks;
    enum type a, b, d;
    bool sparse;
};
static const struct shape shapes[] = {
#define MATRIX(name, m, n, k, blocks, a, b, d) { ISA_OP_##name, m, n, k, blocks, a, b, d, false },
#define SPARSE(name, m, n, k, a, b, d)         { ISA_OP_##name, m, n, k, 1, a, b, d, true },
#include "isa/matrix.def"
};

static unsigned bits_of(enum type t) {
    return t == F64 ? 64 : t == F32 || t == XF32 || t == I32 ? 32 : t == F16 || t == BF16 ? 16 : 8;
}

/* Small integers are exact in every type: -3 to 3. */
static int small(unsigned *seed) {
    *seed = *seed * 1103515245u + 12345u;
    return (int)(*seed >> 20) % 4 - (int)(*seed >> 16 & 3);
}

/* The bits of a small integer in a type. */
static uint64_t encode(enum type t, int value) {
    static const uint8_t fp8[] = { 0, 0x40, 0x48, 0x4c }, bf8[] = { 0, 0x40, 0x44, 0x46 };
    unsigned magnitude = (unsigned)(value < 0 ? -value : value);
    double d = value;
    float f = (float)value;
    uint64_t bits = 0;
    switch (t) {
    case F64:
        memcpy(&bits, &d, sizeof d);
        return bits;
    case F32:
    case XF32:
        memcpy(&bits, &f, sizeof f);
        return bits;
    case F16:
        return isa_to_half(f);
    case BF16:
        return isa_to_bf16(f);
    case FP8:
        return value < 0 ? fp8[magnitude] | 0x80u : fp8[magnitude];
    case BF8:
        return value < 0 ? bf8[magnitude] | 0x80u : bf8[magnitude];
    case I8:
        return (uint8_t)(int8_t)value;
    default:
        return (uint32_t)value;
    }
}

/* Puts element e of a lane into registers from reg on. */
static void put(unsigned reg, unsigned lane, enum type t, unsigned e, int value) {
    unsigned bits = bits_of(t), at = e * bits;
    uint64_t code = encode(t, value);
    for (unsigned b = 0; b < bits; b += 8) {
        unsigned position = at + b;
        ((uint8_t *)&wave->vgpr[reg + position / 32][lane])[position % 32 / 8] =
            (uint8_t)(code >> b);
    }
}

static int a_at[16][32][64], b_at[16][64][32], c_at[16][32][32];

/* A lane holds consecutive elements along k of one row (or column); the lanes of a block follow
 * each other, first through the rows, then through k; blocks follow blocks. The 4 x 4 blocks of f64
 * have k outside. */
static void place(const struct shape *s, bool is_a) {
    unsigned side = is_a ? s->m : s->n, k = is_a && s->sparse ? s->k / 2 : s->k;
    unsigned per_lane = side * k * s->blocks / 64;
    for (unsigned block = 0; block < s->blocks; block++)
        for (unsigned i = 0; i < side; i++)
            for (unsigned at = 0; at < k; at++) {
                unsigned lane = i + side * (at / per_lane + k / per_lane * block);
                if (s->d == F64 && side == 4)
                    lane = i + 4 * block + 16 * at;
                put(is_a ? A_REG : B_REG, lane, is_a ? s->a : s->b, at % per_lane,
                    is_a ? a_at[block][i][at] : b_at[block][at][i]);
            }
}

/* Lane and register of an element of C and D. */
static unsigned result_lane(const struct shape *s, unsigned block, unsigned row, unsigned column,
                            unsigned *reg) {
    if (s->m == 32) {
        *reg = 16 * block + row / 8 * 4 + row % 4;
        return column + row / 4 % 2 * 32;
    }
    if (s->m == 16 && s->d == F64) {
        *reg = row / 4;
        return column + row % 4 * 16;
    }
    if (s->m == 16) {
        *reg = 4 * block + row % 4;
        return column + row / 4 * 16;
    }
    *reg = s->d == F64 ? 0 : row;
    return s->d == F64 ? column + 4 * block + 16 * row : column + 4 * block;
}

static void fill(const struct shape *s, unsigned *seed) {
    for (unsigned block = 0; block < s->blocks; block++) {
        for (unsigned i = 0; i < s->m; i++)
            for (unsigned k = 0; k < (s->sparse ? s->k / 2 : s->k); k++)
                a_at[block][i][k] = small(seed);
        for (unsigned k = 0; k < s->k; k++)
            for (unsigned j = 0; j < s->n; j++)
                b_at[block][k][j] = small(seed);
        for (unsigned i = 0; i < s->m; i++)
            for (unsigned j = 0; j < s->n; j++)
                c_at[block][i][j] = small(seed);
    }
}

static unsigned indices[64]; /* of a sparse A, by lane */

/* Which k of B element e of row i of A meets. */
static unsigned meets(const struct shape *s, unsigned i, unsigned e) {
    if (!s->sparse)
        return e;
    unsigned per_lane = s->m * (s->k / 2) / 64, lane = i + s->m * (e / per_lane);
    return e / 2 * 4 + (indices[lane] >> (2 * (e % per_lane)) & 3);
}

static void check(const struct shape *s) {
    unsigned stride = s->d == F64 ? 2 : 1;
    for (unsigned block = 0; block < s->blocks; block++)
        for (unsigned i = 0; i < s->m; i++)
            for (unsigned j = 0; j < s->n; j++) {
                int expected = c_at[block][i][j];
                for (unsigned e = 0; e < (s->sparse ? s->k / 2 : s->k); e++)
                    expected += a_at[block][i][e] * b_at[block][meets(s, i, e)][j];
                unsigned reg, lane = result_lane(s, block, i, j, &reg);
                uint64_t bits = wave->vgpr[D_REG + stride * reg][lane];
                if (s->d == F64)
                    bits |= (uint64_t)wave->vgpr[D_REG + 2 * reg + 1][lane] << 32;
                if (bits != encode(s->d, expected))
                    fail_msg("%s: block %u, row %u, column %u: %#llx instead of %d",
                             isa_info[s->op].name, block, i, j, (unsigned long long)bits, expected);
            }
}

static void run_shape(const struct shape *s, unsigned *seed) {
    unsigned c = s->sparse ? D_REG : C_REG, stride = s->d == F64 ? 2 : 1;
    wave_open(isa_info[s->op].gpus & 1 << ISA_GFX942 ? ISA_GFX942 : ISA_GFX90A);
    ISA_WAVE_EXEC(wave) = 1; /* does not matter to matrices */
    fill(s, seed);
    place(s, true);
    place(s, false);
    for (unsigned block = 0; block < s->blocks; block++)
        for (unsigned i = 0; i < s->m; i++)
            for (unsigned j = 0; j < s->n; j++) {
                unsigned reg, lane = result_lane(s, block, i, j, &reg);
                put(c + stride * reg, lane, s->d, 0, c_at[block][i][j]);
            }
    for (unsigned l = 0; l < 64; l++) { /* 0 and 2, or 1 and 3, of every four */
        indices[l] = l % 2 ? 0x88888888u : 0xddddddddu;
        wave->vgpr[30][l] = indices[l];
    }
    struct isa_insn i = { .op = (uint16_t)s->op,
                          .dst = V + D_REG,
                          .src = { V + A_REG, V + B_REG,
                                   (uint16_t)(V + (s->sparse ? 30 : C_REG)) } };
    assert_int_equal(execute(i), ISA_CONTINUE);
    check(s);
}

static void every_shape_multiplies(void **state) {
    (void)state;
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        run_shape(&shapes[i], &seed);
}

static void every_matrix_instruction_has_a_shape(void **state) {
    (void)state;
    for (unsigned op = 1; op < ISA_OP_COUNT; op++)
        if (isa_info[op].encoding == ISA_ENC_MAI && !isa_is_executable((enum isa_op)op))
            fail_msg("nothing executes %s", isa_info[op].name);
}

/* C may be a constant; lane groups of B can be broadcast. */
static void constants_and_patterns(void **state) {
    (void)state;
    wave_open(ISA_GFX90A);
    for (unsigned l = 0; l < 64; l++) {
        put(A_REG, l, F32, 0, 1);
        put(B_REG, l, F32, 0, l < 32 ? 1 : 2);
    }
    struct isa_insn i = { .op = ISA_OP_v_mfma_f32_32x32x2f32,
                          .dst = V + D_REG,
                          .src = { V + A_REG, V + B_REG, ISA_FLOAT_0_5 + 2 } }; /* 1.0 */
    float f;
    assert_int_equal(execute(i), ISA_CONTINUE);
    memcpy(&f, &wave->vgpr[D_REG][5], sizeof f);
    assert_true(f == 1 + 1 + 2);
    i.ext = 2u << 8; /* the second 32 lanes twice */
    assert_int_equal(execute(i), ISA_CONTINUE);
    memcpy(&f, &wave->vgpr[D_REG][5], sizeof f);
    assert_true(f == 1 + 2 + 2);
}

/* gfx90a takes a denormal f16 for 0 in these instructions, gfx942 does not. */
static void denormals_are_a_matter_of_the_gpu(void **state) {
    (void)state;
    for (int gpu = ISA_GFX90A; gpu <= ISA_GFX942; gpu++) {
        wave_open((enum isa_gpu)gpu);
        for (unsigned l = 0; l < 64; l++) {
            wave->vgpr[A_REG][l] = l < 16 ? 1 : 0; /* 2^-24 in element 0 of k */
            wave->vgpr[B_REG][l] = l < 16 ? 0x3c00 : 0;
        }
        struct isa_insn i = { .op = gpu == ISA_GFX90A ? ISA_OP_v_mfma_f32_16x16x16f16
                                                      : ISA_OP_v_mfma_f32_16x16x16_f16,
                              .dst = V + D_REG,
                              .src = { V + A_REG, V + B_REG, ISA_INT_0 } };
        float f;
        assert_int_equal(execute(i), ISA_CONTINUE);
        memcpy(&f, &wave->vgpr[D_REG][0], sizeof f);
        assert_true(f == (gpu == ISA_GFX90A ? 0.0f : 0x1p-24f));
    }
}

static void accumulation_registers_are_moved_by_lane(void **state) {
    (void)state;
    wave_open(ISA_GFX90A);
    ISA_WAVE_EXEC(wave) = 4;
    vgpr(3)[2] = 77;
    struct isa_insn i = { .op = ISA_OP_v_accvgpr_write_b32,
                          .dst = ISA_AGPR0 + 9,
                          .src = { V + 3 } };
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(wave->vgpr[256 + 9][2], 77);
    assert_int_equal(wave->vgpr[256 + 9][3], 0);
    i = (struct isa_insn){ .op = ISA_OP_v_accvgpr_read_b32,
                           .dst = V + 5,
                           .src = { ISA_AGPR0 + 9 } };
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(vgpr(5)[2], 77);
    static const struct {
        uint16_t source;
        uint32_t expected;
    } scalars[] = { { 11, 0x1234 }, { ISA_INT_M1, 0xffffffff }, { ISA_FLOAT_0_5, 0x3f000000 } };
    wave->sgpr[11] = 0x1234;
    for (unsigned n = 0; n < sizeof scalars / sizeof *scalars; n++) {
        i = (struct isa_insn){ .op = ISA_OP_v_accvgpr_write_b32,
                               .dst = ISA_AGPR0 + 9,
                               .src = { scalars[n].source } };
        wave->vgpr[256 + 9][63] = 5;
        ISA_WAVE_EXEC(wave) = 0x100000005;
        assert_int_equal(execute(i), ISA_CONTINUE);
        for (unsigned l = 0; l < ISA_LANES; l++)
            assert_int_equal(wave->vgpr[256 + 9][l], l == 0 || l == 2 || l == 32
                                                         ? scalars[n].expected
                                                     : l == 63 ? 5
                                                               : 0);
    }
    wave_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_multiplies),
        cmocka_unit_test(every_matrix_instruction_has_a_shape),
        cmocka_unit_test(constants_and_patterns),
        cmocka_unit_test(denormals_are_a_matter_of_the_gpu),
        cmocka_unit_test(accumulation_registers_are_moved_by_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
