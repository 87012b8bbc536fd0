/* Undefined values in registers: which dwords of a result of 64 bits they reach, and dwords that
 * are put together of a defined and an undefined one. */
#include "isa/taint.h"
#include "unit/isa_wave.h"

enum { LOW = 10, HIGH, RESULT = 30, FACTOR = 40, CARRY = 50, SELECTOR = 52 };

static struct isa_taint taint;
static unsigned used;
static struct isa_origin used_origin;

static bool is_undefined(void *context, const struct isa_wave *w, unsigned space, uint64_t address,
                         uint32_t bytes) {
    (void)context, (void)w, (void)space, (void)address, (void)bytes;
    return false;
}

static void define(void *context, const struct isa_wave *w, unsigned space, uint64_t address,
                   uint32_t bytes, bool undefined) {
    (void)context, (void)w, (void)space, (void)address, (void)bytes, (void)undefined;
}

static void count(void *context, const struct isa_wave *w, const struct isa_insn *i,
                  enum isa_taint_use how, struct isa_origin origin, unsigned lane) {
    (void)context, (void)w, (void)lane;
    assert_int_equal(how, isa_info[i->op].encoding < ISA_ENC_SMEM ? ISA_TAINT_BRANCH
                                                                  : ISA_TAINT_ADDRESS);
    used_origin = origin;
    used++;
}

static const struct isa_taint_host host = { .is_undefined = is_undefined,
                                            .define = define,
                                            .used = count };

static void step(struct isa_insn i) {
    isa_taint_before(&taint, wave, &i);
    assert_int_equal(execute(i), ISA_CONTINUE);
    isa_taint_after(&taint, wave, &i);
}

static void move(unsigned to, unsigned from) {
    step((struct isa_insn){ .op = ISA_OP_v_mov_b32, .dst = ISA_VGPR0 + to, .src = { from } });
}

/* v0 and all SGPRs are defined; what a test moves 0 to is too. */
static void begin(void) {
    wave_open(ISA_GFX942);
    isa_taint_reset(&taint, &host, ISA_FLAT_SCRATCH);
    used = 0;
    move(FACTOR, ISA_INT_0);
}

static int close_wave(void **state) {
    (void)state;
    wave_close();
    return 0;
}

/* Each makes RESULT and the register after it of 64 bits in `from` and 0. */
static void make(enum isa_op op, unsigned from) {
    struct isa_insn i = { .op = (uint16_t)op, .dst = ISA_VGPR0 + RESULT, .sdst = CARRY };
    i.src[0] = i.src[1] = i.src[2] = ISA_VGPR0 + FACTOR;
    switch (op) {
    case ISA_OP_v_lshlrev_b64:
        i.src[1] = (uint16_t)(ISA_VGPR0 + from);
        break;
    case ISA_OP_v_lshl_add_u64:
        i.src[0] = (uint16_t)(ISA_VGPR0 + from);
        i.src[2] = ISA_INT_0;
        break;
    default:
        i.src[2] = (uint16_t)(ISA_VGPR0 + from);
    }
    step(i);
}

static const enum isa_op upwards[] = { ISA_OP_v_mad_u64_u32, ISA_OP_v_mad_i64_i32,
                                       ISA_OP_v_lshl_add_u64, ISA_OP_v_lshlrev_b64 };
enum { UPWARDS = sizeof upwards / sizeof *upwards };

static void the_second_dword_does_not_reach_the_first(void **state) {
    (void)state;
    for (unsigned n = 0; n < UPWARDS; n++) {
        begin();
        move(LOW, ISA_INT_0);
        make(upwards[n], LOW);
        assert_true(taint.vgpr[RESULT] == 0);
        assert_true(taint.vgpr[RESULT + 1] == ~UINT64_C(0));
        assert_int_equal(taint.vgpr_origin[RESULT + 1].at, HIGH);
        assert_int_equal(taint.sgpr[CARRY] != 0, n < 2); /* the carry is the whole sum's */
    }
}

static void the_first_dword_reaches_both(void **state) {
    (void)state;
    for (unsigned n = 0; n < UPWARDS; n++) {
        begin();
        move(HIGH, ISA_INT_0);
        make(upwards[n], LOW);
        assert_true(taint.vgpr[RESULT] == ~UINT64_C(0));
        assert_true(taint.vgpr[RESULT + 1] == ~UINT64_C(0));
        assert_int_equal(taint.vgpr_origin[RESULT].at, LOW);
    }
}

static void only_lanes_that_are_on_are_written(void **state) {
    (void)state;
    begin();
    move(LOW, ISA_INT_0);
    move(RESULT, ISA_INT_0);
    move(RESULT + 1, ISA_INT_0);
    ISA_WAVE_EXEC(wave) = 0xf0;
    make(ISA_OP_v_mad_u64_u32, LOW);
    assert_true(taint.vgpr[RESULT] == 0);
    assert_true(taint.vgpr[RESULT + 1] == 0xf0);
}

/* The undefined lanes of what an instruction puts together of two registers and a selector. */
static uint64_t put_together(enum isa_op op, unsigned first, unsigned second, uint32_t selector) {
    struct isa_insn i = { .op = (uint16_t)op, .dst = ISA_VGPR0 + RESULT };
    unsigned at = op == ISA_OP_v_bfi_b32 ? 1 : 0;
    i.src[op == ISA_OP_v_bfi_b32 ? 0 : 2] = SELECTOR;
    wave->sgpr[SELECTOR] = selector;
    i.src[at] = (uint16_t)(ISA_VGPR0 + first);
    i.src[at + 1] = (uint16_t)(ISA_VGPR0 + second);
    step(i);
    return taint.vgpr[RESULT];
}

/* FACTOR is defined, LOW and HIGH are not. */
static void a_dword_with_a_part_of_a_defined_one_is_defined(void **state) {
    (void)state;
    const enum isa_op perm = ISA_OP_v_perm_b32, bfi = ISA_OP_v_bfi_b32,
                      pack = ISA_OP_v_pack_b32_f16;
    const uint64_t all = ~UINT64_C(0);
    begin();
    assert_true(put_together(perm, LOW, FACTOR, 0x05040100) == 0);
    assert_true(put_together(perm, FACTOR, LOW, 0x05040100) == 0);
    assert_true(put_together(bfi, LOW, FACTOR, 0xffff) == 0);
    assert_true(put_together(bfi, FACTOR, LOW, 0xffff) == 0);
    assert_true(put_together(pack, LOW, FACTOR, 0) == 0);
    assert_true(put_together(pack, FACTOR, LOW, 0) == 0);
    assert_true(put_together(perm, LOW, HIGH, 0x05040100) == all);
    assert_true(put_together(bfi, LOW, HIGH, 0xffff) == all);
    assert_true(put_together(pack, LOW, HIGH, 0) == all);
}

static void a_dword_without_a_part_of_a_defined_one_is_undefined(void **state) {
    (void)state;
    const enum isa_op perm = ISA_OP_v_perm_b32, bfi = ISA_OP_v_bfi_b32;
    const uint64_t all = ~UINT64_C(0);
    begin();
    assert_true(put_together(perm, LOW, FACTOR, 0x07060504) == all);
    assert_true(put_together(perm, FACTOR, LOW, 0x03020100) == all);
    assert_true(put_together(perm, LOW, FACTOR, 0x0c0c0c04) == all); /* filled up with zeroes */
    assert_true(put_together(perm, LOW, FACTOR, 0x0b0a0b0a) == all); /* signs */
    assert_true(put_together(perm, FACTOR, LOW, 0x09080908) == all);
    assert_true(put_together(perm, LOW, FACTOR, 0x09080908) == 0);
    assert_true(put_together(perm, LOW, HIGH, 0x0d0c0d0c) == 0); /* constants alone */
    assert_true(put_together(bfi, LOW, FACTOR, ~0u) == all);
    assert_true(put_together(bfi, LOW, FACTOR, 0) == 0);
    assert_true(put_together(bfi, FACTOR, LOW, 0) == all);
    assert_true(put_together(bfi, FACTOR, LOW, ~0u) == 0);
}

/* The lanes' own selectors decide, and an undefined one makes the dword undefined. */
static void selectors_are_those_of_the_lanes(void **state) {
    (void)state;
    struct isa_insn i = { .op = ISA_OP_v_perm_b32,
                          .dst = ISA_VGPR0 + RESULT,
                          .src = { ISA_VGPR0 + LOW, ISA_VGPR0 + FACTOR, ISA_VGPR0 } };
    begin();
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(0)[l] = l % 2 ? 0x07060504 : 0x05040100;
    step(i);
    assert_true(taint.vgpr[RESULT] == UINT64_C(0xaaaaaaaaaaaaaaaa));
    i.src[0] = ISA_VGPR0 + FACTOR;
    i.src[2] = ISA_VGPR0 + HIGH;
    step(i);
    assert_true(taint.vgpr[RESULT] == ~UINT64_C(0));
}

/* With s_set_gpr_idx_on the registers that are meant, not those that are written down. */
static void indexed_registers_are_those_of_the_index(void **state) {
    (void)state;
    const uint64_t all = ~UINT64_C(0);
    enum { SRC0 = 1 << 12, DST = 1 << 15 };
    begin();
    wave->mode |= ISA_MODE_GPR_IDX;
    ISA_WAVE_M0(wave) = DST | 5;
    move(RESULT, ISA_INT_0);
    assert_true(taint.vgpr[RESULT] == all);
    assert_true(taint.vgpr[RESULT + 5] == 0);
    ISA_WAVE_M0(wave) = SRC0 | 1;
    move(RESULT, ISA_VGPR0 + FACTOR - 1);
    assert_true(taint.vgpr[RESULT] == 0);
    move(RESULT, ISA_VGPR0 + FACTOR);
    assert_true(taint.vgpr[RESULT] == all);
    assert_int_equal(taint.vgpr_origin[RESULT].at, FACTOR + 1);
}

/* Masks that compilers keep in lanes: defined in the lanes that are on, and nowhere else. */
static void a_lane_is_undefined_if_the_whole_scalar_is(void **state) {
    (void)state;
    struct isa_insn i = { .op = ISA_OP_v_writelane_b32,
                          .dst = ISA_VGPR0 + FACTOR,
                          .src = { SELECTOR, ISA_INT_0 + 3 } };
    begin();
    taint.sgpr[SELECTOR] = ~1u;
    step(i);
    assert_true(taint.vgpr[FACTOR] == 0);
    taint.sgpr[SELECTOR] = ~0u;
    step(i);
    assert_true(taint.vgpr[FACTOR] == 1 << 3);
}

static void load(void) {
    for (unsigned l = 0; l < ISA_LANES; l++)
        set_address(RESULT, l, MEMORY_BASE);
    step((struct isa_insn){ .op = ISA_OP_global_load_dword,
                            .dst = ISA_VGPR0 + 60,
                            .src = { ISA_VGPR0 + RESULT, 0, ISA_OFF } });
}

/* What compilers make of 64 bits times 32 for an address: the second product adds to a register
 * whose neighbour nothing has written. */
static void an_address_of_two_products_is_defined(void **state) {
    (void)state;
    begin();
    move(LOW, ISA_INT_0);
    make(ISA_OP_v_mad_u64_u32, LOW);
    move(RESULT + 1, ISA_VGPR0 + RESULT);
    load();
    assert_int_equal(used, 0);
    make(ISA_OP_v_mad_u64_u32, LOW);
    load();
    assert_int_equal(used, 1);
    assert_int_equal(used_origin.at, HIGH);
}

/* ---- scalar instructions --------------------------------------------------------------------- */

/* What a scalar instruction reads: two sources, the destination, EXEC and SCC. */
struct scalars {
    uint64_t a, b, d, exec;
    uint32_t scc;
};

static uint64_t random_bits(void) {
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = state >> 32;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | state >> 32;
}

static void put(unsigned code, uint64_t value) {
    wave->sgpr[code] = (uint32_t)value;
    wave->sgpr[code + 1] = (uint32_t)(value >> 32);
}

static uint64_t pair_of(const uint32_t *registers, unsigned code) {
    return registers[code] | (uint64_t)registers[code + 1] << 32;
}

enum { A = 20, B = 22, D = 24 };

static struct scalars compute(enum isa_op op, const struct scalars *in, bool followed) {
    struct isa_insn i = { .op = (uint16_t)op, .dst = D, .src = { A, B }, .imm = 3 };
    put(A, in->a);
    put(B, in->b);
    put(D, in->d);
    ISA_WAVE_EXEC(wave) = in->exec;
    wave->scc = in->scc;
    if (followed)
        step(i);
    else
        assert_int_equal(execute(i), ISA_CONTINUE);
    return (struct scalars){ .d = pair_of(wave->sgpr, D),
                             .exec = ISA_WAVE_EXEC(wave),
                             .scc = wave->scc };
}

static void undefine(unsigned code, uint64_t bits) {
    taint.sgpr[code] = (uint32_t)bits;
    taint.sgpr[code + 1] = (uint32_t)(bits >> 32);
}

static bool computes_on_scalars(unsigned op) {
    const struct isa_info *info = &isa_info[op];
    switch (op) {
    case ISA_OP_s_getpc_b64:
    case ISA_OP_s_swappc_b64:
    case ISA_OP_s_call_b64:
    case ISA_OP_s_getreg_b32:
    case ISA_OP_s_setreg_b32:
    case ISA_OP_s_setreg_imm32_b32:
    case ISA_OP_s_setvskip:
        return false;
    default:
        return info->encoding >= ISA_ENC_SOP2 && info->encoding <= ISA_ENC_SOPC &&
               !(info->forms & ISA_FORM_OPAQUE);
    }
}

/* Executes op twice, with other values in the undefined bits: whatever comes out different must
 * have been called undefined. */
static void compare_two_runs(enum isa_op op) {
    struct scalars in = { random_bits(), random_bits(), random_bits(), random_bits(),
                          (uint32_t)random_bits() & 1 };
    struct scalars off = { random_bits() & random_bits() & random_bits(), 0, 0, 0, 0 };
    uint64_t pick = random_bits();
    off.b = pick & 1 ? random_bits() & random_bits() : 0;
    off.d = pick & 2 ? random_bits() & random_bits() : 0;
    off.scc = pick & 4 ? 1 : 0;
    undefine(A, off.a);
    undefine(B, off.b);
    undefine(D, off.d);
    taint.scc = off.scc;
    used = 0;
    struct scalars one = compute(op, &in, true);
    uint64_t d = pair_of(taint.sgpr, D);
    bool scc = taint.scc;
    struct scalars other = { in.a ^ (off.a & random_bits()), in.b ^ (off.b & random_bits()),
                             in.d ^ (off.d & random_bits()), in.exec, in.scc ^ off.scc };
    struct scalars two = compute(op, &other, false);
    if ((one.d ^ two.d) & ~d || (one.scc != two.scc && !scc) || (one.exec != two.exec && !used))
        fail_msg("%s: a result that depends on undefined bits is called defined",
                 isa_info[op].name);
}

static void scalar_results_of_undefined_bits_are_undefined(void **state) {
    (void)state;
    unsigned found = 0;
    begin();
    for (unsigned op = 1; op < ISA_OP_COUNT; op++) {
        if (!computes_on_scalars(op))
            continue;
        found++;
        for (int n = 0; n < 200; n++)
            compare_two_runs((enum isa_op)op);
    }
    assert_in_range(found, 120, ISA_OP_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_dword_does_not_reach_the_first),
        cmocka_unit_test(the_first_dword_reaches_both),
        cmocka_unit_test(only_lanes_that_are_on_are_written),
        cmocka_unit_test(a_dword_with_a_part_of_a_defined_one_is_defined),
        cmocka_unit_test(a_dword_without_a_part_of_a_defined_one_is_undefined),
        cmocka_unit_test(selectors_are_those_of_the_lanes),
        cmocka_unit_test(indexed_registers_are_those_of_the_index),
        cmocka_unit_test(a_lane_is_undefined_if_the_whole_scalar_is),
        cmocka_unit_test(an_address_of_two_products_is_defined),
        cmocka_unit_test(scalar_results_of_undefined_bits_are_undefined),
    };
    return cmocka_run_group_tests(tests, NULL, close_wave);
}
