/* DS instructions of the interpreter: LDS, and lanes that exchange values. */
#include "unit/isa_wave.h"

enum { V = ISA_VGPR0 };

static int fresh(void **state) {
    (void)state;
    wave_open(ISA_GFX942);
    return 0;
}

static int done(void **state) {
    (void)state;
    wave_close();
    return 0;
}

/* Address in v0, data in v5 and v8, result in v12. */
static struct isa_insn ds(enum isa_op op, int offset) {
    return (struct isa_insn){
        .op = (uint16_t)op, .dst = V + 12, .src = { V + 0, V + 5, V + 8 }, .imm = offset
    };
}

static void spread(uint32_t base, uint32_t stride) {
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = base + stride * l;
        vgpr(5)[l] = 100 + l;
        vgpr(6)[l] = 200 + l;
        vgpr(8)[l] = 300 + l;
        vgpr(9)[l] = 400 + l;
    }
}

static void what_is_written_can_be_read(void **state) {
    (void)state;
    spread(16, 16);
    assert_int_equal(execute(ds(ISA_OP_ds_write_b64, 8)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(word_at(lds + 24 + 16 * l), 100 + l);
        assert_int_equal(word_at(lds + 28 + 16 * l), 200 + l);
    }
    assert_int_equal(execute(ds(ISA_OP_ds_read_b96, 4)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(14)[l], 200 + l);
    lds[0] = 0x85;
    spread(0, 0);
    assert_int_equal(execute(ds(ISA_OP_ds_read_i8, 0)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[63], 0xffffff85);
}

static void two_places_have_offsets_in_elements(void **state) {
    (void)state;
    spread(0, 4);
    assert_int_equal(execute(ds(ISA_OP_ds_write2_b32, 2 | 80 << 8)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(word_at(lds + 8 + 4 * l), 100 + l);
        assert_int_equal(word_at(lds + 320 + 4 * l), 300 + l);
    }
    assert_int_equal(execute(ds(ISA_OP_ds_read2st64_b32, 0 | 2 << 8)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(vgpr(12)[l], word_at(lds + 4 * l));
        assert_int_equal(vgpr(13)[l], word_at(lds + 2 * 256 + 4 * l));
    }
    /* The second place faults before the first is written. */
    uint32_t before = word_at(lds);
    spread(0, 4);
    assert_int_equal(execute(ds(ISA_OP_ds_write2st64_b32, 0 | 16 << 8)), ISA_FAULT);
    assert_int_equal(word_at(lds), before);
}

static void an_access_past_the_allocation_faults(void **state) {
    (void)state;
    spread(LDS_BYTES - 4 * 20, 4);
    assert_int_equal(execute(ds(ISA_OP_ds_read_b32, 0)), ISA_FAULT);
    assert_int_equal(wave->stop.lane, 20);
    assert_int_equal(wave->stop.address, LDS_BYTES);
    assert_int_equal(wave->stop.space, ISA_SPACE_LDS);
    spread(0xfffffffc, 0);
    assert_int_equal(execute(ds(ISA_OP_ds_read_b32, 0)), ISA_FAULT);
}

static void atomics_count_every_lane(void **state) {
    (void)state;
    uint64_t seen = 0;
    spread(64, 0);
    memset(lds + 64, 0, 8);
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(5)[l] = 1;
    assert_int_equal(execute(ds(ISA_OP_ds_add_u32, 0)), ISA_CONTINUE);
    assert_int_equal(word_at(lds + 64), 64);
    assert_int_equal(execute(ds(ISA_OP_ds_add_rtn_u32, 0)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        seen |= UINT64_C(1) << (vgpr(12)[l] - 64);
    assert_true(seen == ~UINT64_C(0));
    ISA_WAVE_EXEC(wave) = 2;
    vgpr(5)[1] = 128; /* compared */
    vgpr(8)[1] = 5;   /* stored */
    assert_int_equal(execute(ds(ISA_OP_ds_cmpst_rtn_b32, 0)), ISA_CONTINUE);
    assert_int_equal(word_at(lds + 64), 5);
    assert_int_equal(vgpr(12)[1], 128);
}

static void counters_move_by_the_number_of_lanes(void **state) {
    (void)state;
    ISA_WAVE_EXEC(wave) = 0xf0f;
    ISA_WAVE_M0(wave) = 32;
    memset(lds + 40, 0, 4);
    assert_int_equal(execute(ds(ISA_OP_ds_append, 8)), ISA_CONTINUE);
    assert_int_equal(word_at(lds + 40), 8);
    assert_int_equal(execute(ds(ISA_OP_ds_append, 8)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[11], 8);
    assert_int_equal(execute(ds(ISA_OP_ds_consume, 8)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[0], 16);
    assert_int_equal(word_at(lds + 40), 8);
}

static void lanes_exchange_values(void **state) {
    (void)state;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = 4 * ((l + 1) % 64);
        vgpr(5)[l] = 500 + l;
    }
    assert_int_equal(execute(ds(ISA_OP_ds_bpermute_b32, 0)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[0], 501);
    assert_int_equal(vgpr(12)[63], 500);
    assert_int_equal(execute(ds(ISA_OP_ds_permute_b32, 0)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[0], 563);
    assert_int_equal(vgpr(12)[1], 500);
    ISA_WAVE_EXEC(wave) = ~UINT64_C(2); /* lane 1 is off */
    assert_int_equal(execute(ds(ISA_OP_ds_bpermute_b32, 0)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[0], 0);
}

static void swizzles_follow_their_pattern(void **state) {
    (void)state;
    struct isa_insn i = ds(ISA_OP_ds_swizzle_b32, 0);
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(0)[l] = 700 + l;
    i.imm = 0x1f | 1 << 10; /* and 31, xor 1: neighbours */
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[6], 707);
    assert_int_equal(vgpr(12)[33], 732);
    i.imm = 0x8000 | 0x1b; /* four lanes reversed */
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[4], 707);
    i.imm = 0xc000 | 3 << 5; /* rotated by 3 within 32 */
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[30], 701);
    assert_int_equal(vgpr(12)[62], 733);
    i.imm = 0xe000;
    assert_int_equal(execute(i), ISA_UNSUPPORTED);
}

/* What adding `data` to `it` in LDS leaves there in that MODE. */
static uint32_t sum_in_lds(uint32_t mode, uint32_t it, uint32_t data) {
    wave->mode = mode;
    ISA_WAVE_EXEC(wave) = 1;
    memcpy(lds, &it, sizeof it);
    vgpr(0)[0] = 0;
    vgpr(5)[0] = data;
    assert_int_equal(execute(ds(ISA_OP_ds_add_rtn_f32, 0)), ISA_CONTINUE);
    assert_int_equal(vgpr(12)[0], it); /* the value before, as it was */
    return word_at(lds);
}

static void sums_of_floats_treat_denormals_as_mode_says(void **state) {
    (void)state;
    enum { NONE = 0, INPUTS = 1 << 4, OUTPUTS = 2 << 4, NEGATIVE = (int)0x80000000 };
    const uint32_t smallest = 0x00800000, denormal = 0x00000005, one = 0x3f800000;
    assert_int_equal(sum_in_lds(ISA_MODE_DEFAULT, denormal, denormal), 2 * denormal);
    assert_int_equal(sum_in_lds(NONE, denormal, denormal), 0);
    assert_int_equal(sum_in_lds(NONE, denormal | (uint32_t)NEGATIVE, denormal | (uint32_t)NEGATIVE),
                     (uint32_t)NEGATIVE);
    assert_int_equal(sum_in_lds(NONE, smallest, denormal), smallest);
    assert_int_equal(sum_in_lds(NONE, one, one), 0x40000000);
    assert_int_equal(sum_in_lds(INPUTS, smallest, denormal), smallest + denormal);
    assert_int_equal(sum_in_lds(INPUTS, denormal, denormal), 0);
    assert_int_equal(sum_in_lds(OUTPUTS, smallest, denormal), smallest);
    assert_int_equal(sum_in_lds(OUTPUTS, smallest + 5, smallest | (uint32_t)NEGATIVE), 5);
}

/* LLVM takes the addition as one that may flush on gfx90a, and that keeps denormals on gfx942. */
static void additions_to_memory_are_exact_on_gfx942_only(void **state) {
    (void)state;
    static const enum isa_op ops[] = { ISA_OP_global_atomic_add_f32, ISA_OP_buffer_atomic_add_f32 };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        assert_int_equal(isa_exactness_on(ISA_GFX90A, ops[k]), ISA_APPROXIMATE);
        assert_int_equal(isa_exactness_on(ISA_GFX942, ops[k]), ISA_EXACT);
    }
    assert_int_equal(isa_exactness_on(ISA_GFX90A, ISA_OP_global_atomic_pk_add_f16), ISA_EXACT);
    assert_int_equal(isa_exactness_on(ISA_GFX90A, ISA_OP_ds_add_f32), ISA_EXACT);
    assert_int_equal(isa_exactness_on(ISA_GFX942, ISA_OP_v_rcp_f32), ISA_PRECISION);
}

static void the_global_data_share_is_not_there(void **state) {
    (void)state;
    struct isa_insn i = ds(ISA_OP_ds_add_u32, 0);
    i.memory = ISA_MEM_GDS;
    assert_int_equal(execute(i), ISA_UNSUPPORTED);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fresh, done)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(what_is_written_can_be_read),
        T(two_places_have_offsets_in_elements),
        T(an_access_past_the_allocation_faults),
        T(atomics_count_every_lane),
        T(counters_move_by_the_number_of_lanes),
        T(lanes_exchange_values),
        T(swizzles_follow_their_pattern),
        T(the_global_data_share_is_not_there),
        T(sums_of_floats_treat_denormals_as_mode_says),
        T(additions_to_memory_are_exact_on_gfx942_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
