/* Memory instructions of the interpreter: addresses, widths, limits, atomics, and what faults. */
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

static struct isa_insn global(enum isa_op op, unsigned dst, unsigned data) {
    return (struct isa_insn){
        .op = (uint16_t)op,
        .dst = (uint16_t)(V + dst),
        .src = { V + 0, (uint16_t)(V + data), ISA_OFF },
    };
}

/* Lane l at base + stride * l. */
static void spread(uint64_t base, uint64_t stride) {
    for (unsigned l = 0; l < ISA_LANES; l++)
        set_address(0, l, base + stride * l);
}

static void contiguous_lanes_take_one_check(void **state) {
    (void)state;
    spread(MEMORY_BASE + 256, 4);
    assert_int_equal(execute(global(ISA_OP_global_load_dword, 4, 0)), ISA_CONTINUE);
    assert_int_equal(spans, 1);
    assert_int_equal(lane_calls, 0);
    assert_memory_equal(vgpr(4), memory + 256, 256);
    spread(MEMORY_BASE + 512, 16);
    assert_int_equal(execute(global(ISA_OP_global_load_dwordx4, 8, 0)), ISA_CONTINUE);
    assert_int_equal(spans, 2);
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned d = 0; d < 4; d++)
            assert_int_equal(vgpr(8 + d)[l], word_at(memory + 512 + 16 * l + 4 * d));
}

static void lanes_that_are_off_keep_their_registers(void **state) {
    (void)state;
    spread(MEMORY_BASE + 1, 6); /* also not aligned, and not contiguous */
    ISA_WAVE_EXEC(wave) = 0x8000000000000005;
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(4)[l] = 0xabcd0000 + l;
    assert_int_equal(execute(global(ISA_OP_global_load_dword, 4, 0)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(4)[l], ISA_WAVE_EXEC(wave) >> l & 1 ? word_at(memory + 1 + 6 * l)
                                                                  : 0xabcd0000 + l);
}

static void widths_are_extended_as_their_names_say(void **state) {
    (void)state;
    static const struct {
        enum isa_op op;
        uint32_t expected;
    } loads[] = {
        { ISA_OP_global_load_ubyte, 0x85 },
        { ISA_OP_global_load_sbyte, 0xffffff85 },
        { ISA_OP_global_load_ushort, 0xf185 },
        { ISA_OP_global_load_sshort, 0xfffff185 },
        { ISA_OP_global_load_ubyte_d16, 0xaaaa0085 },
        { ISA_OP_global_load_sbyte_d16, 0xaaaaff85 },
        { ISA_OP_global_load_short_d16, 0xaaaaf185 },
        { ISA_OP_global_load_short_d16_hi, 0xf185bbbb },
        { ISA_OP_global_load_ubyte_d16_hi, 0x0085bbbb },
        { ISA_OP_global_load_sbyte_d16_hi, 0xff85bbbb },
    };
    memory[0] = 0x85;
    memory[1] = 0xf1;
    ISA_WAVE_EXEC(wave) = 1;
    set_address(0, 0, MEMORY_BASE);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        vgpr(4)[0] = 0xaaaabbbb;
        assert_int_equal(execute(global(loads[i].op, 4, 0)), ISA_CONTINUE);
        assert_int_equal(vgpr(4)[0], loads[i].expected);
    }
    vgpr(5)[0] = 0x11223344;
    assert_int_equal(execute(global(ISA_OP_global_store_byte_d16_hi, 0, 5)), ISA_CONTINUE);
    assert_int_equal(memory[0], 0x22);
    assert_int_equal(memory[1], 0xf1);
    assert_int_equal(execute(global(ISA_OP_global_store_short_d16_hi, 0, 5)), ISA_CONTINUE);
    assert_int_equal(memory[1], 0x11);
    assert_int_equal(execute(global(ISA_OP_global_store_byte, 0, 5)), ISA_CONTINUE);
    assert_int_equal(memory[0], 0x44);
}

static void a_scalar_base_takes_an_offset_of_32_bits(void **state) {
    (void)state;
    struct isa_insn i = global(ISA_OP_global_load_dword, 4, 0);
    i.src[2] = 10;
    i.imm = -8;
    isa_write64(wave, 10, MEMORY_BASE + 100);
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(0)[l] = 4 * (63 - l);
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(4)[l], word_at(memory + 92 + 4 * (63 - l)));
}

static void a_fault_names_lane_and_byte(void **state) {
    (void)state;
    spread(MEMORY_BASE + MEMORY_BYTES - 40, 4);
    assert_int_equal(execute(global(ISA_OP_global_store_dword, 0, 5)), ISA_FAULT);
    assert_int_equal(wave->stop.lane, 10);
    assert_int_equal(wave->stop.address, MEMORY_BASE + MEMORY_BYTES);
    assert_int_equal(wave->stop.kind, ISA_STORE);
    assert_int_equal(wave->stop.space, ISA_SPACE_GLOBAL);
    ISA_WAVE_EXEC(wave) = 0;
    assert_int_equal(execute(global(ISA_OP_global_store_dword, 0, 5)), ISA_CONTINUE);
}

/* All lanes at one address: each one counts. */
static void atomics_of_all_lanes_add_up(void **state) {
    (void)state;
    struct isa_insn i = global(ISA_OP_global_atomic_add, 4, 5);
    i.memory = ISA_MEM_GLC;
    spread(MEMORY_BASE + 64, 0);
    memset(memory + 64, 0, 8);
    uint64_t seen = 0;
    for (unsigned l = 0; l < ISA_LANES; l++)
        vgpr(5)[l] = 1;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(word_at(memory + 64), 64);
    for (unsigned l = 0; l < ISA_LANES; l++)
        seen |= UINT64_C(1) << vgpr(4)[l];
    assert_true(seen == ~UINT64_C(0));
    i.memory = 0;
    memcpy(vgpr(4), vgpr(5), 256);
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(vgpr(4)[3], 1); /* without GLC nothing is returned */
    set_address(0, 9, MEMORY_BASE + 66);
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.lane, 9);
    assert_string_equal(wave->stop.why, "misaligned atomic");
}

static uint64_t one_atomic(enum isa_op op, uint64_t it, uint64_t data, uint64_t data1) {
    ISA_WAVE_EXEC(wave) = 1;
    set_address(0, 0, MEMORY_BASE + 64);
    memcpy(memory + 64, &it, sizeof it);
    bool wide = isa_info[op].type[0] == ISA_TYPE_B64;
    vgpr(5)[0] = (uint32_t)data;
    vgpr(6)[0] = (uint32_t)(wide ? data >> 32 : data1);
    vgpr(7)[0] = (uint32_t)data1;
    vgpr(8)[0] = (uint32_t)(data1 >> 32);
    assert_int_equal(execute(global(op, 4, 5)), ISA_CONTINUE);
    memcpy(&it, memory + 64, sizeof it);
    return it;
}

static uint64_t f64_bits(double f) {
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static uint32_t f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static void every_atomic_does_what_its_name_says(void **state) {
    (void)state;
    static const struct {
        enum isa_op op;
        uint64_t it, data, data1, expected;
    } cases[] = {
        { ISA_OP_global_atomic_swap, 1, 2, 0, 2 },
        { ISA_OP_global_atomic_cmpswap, 7, 9, 7, 9 },
        { ISA_OP_global_atomic_cmpswap, 7, 9, 8, 7 },
        { ISA_OP_global_atomic_sub, 1, 2, 0, 0xffffffff },
        { ISA_OP_global_atomic_smin, 1, 0xffffffff, 0, 0xffffffff },
        { ISA_OP_global_atomic_umin, 1, 0xffffffff, 0, 1 },
        { ISA_OP_global_atomic_smax, 0x80000000, 3, 0, 3 },
        { ISA_OP_global_atomic_umax, 0x80000000, 3, 0, 0x80000000 },
        { ISA_OP_global_atomic_and, 0xff, 0x3c, 0, 0x3c },
        { ISA_OP_global_atomic_or, 0xf0, 0x3c, 0, 0xfc },
        { ISA_OP_global_atomic_xor, 0xf0, 0x3c, 0, 0xcc },
        { ISA_OP_global_atomic_inc, 4, 5, 0, 5 },
        { ISA_OP_global_atomic_inc, 5, 5, 0, 0 },
        { ISA_OP_global_atomic_dec, 0, 5, 0, 5 },
        { ISA_OP_global_atomic_dec, 6, 5, 0, 5 },
        { ISA_OP_global_atomic_dec, 5, 5, 0, 4 },
        { ISA_OP_global_atomic_add_x2, 0xffffffff, 1, 0, 0x100000000 },
        { ISA_OP_global_atomic_cmpswap_x2, 1u | 5ull << 32, 3, 1u | 5ull << 32, 3 },
        { ISA_OP_global_atomic_smin_x2, 1, ~0ull, 0, ~0ull },
        { ISA_OP_global_atomic_pk_add_f16, 0x3c004000, 0x3c003c00, 0, 0x40004200 },
        { ISA_OP_global_atomic_pk_add_bf16, 0x3f804000, 0x3f803f80, 0, 0x40004040 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (one_atomic(cases[i].op, cases[i].it, cases[i].data, cases[i].data1) !=
            cases[i].expected)
            fail_msg("%s (row %zu)", isa_info[cases[i].op].name, i);
    assert_int_equal(one_atomic(ISA_OP_global_atomic_add_f32, f32_bits(1.5f), f32_bits(2), 0),
                     f32_bits(3.5f));
    assert_true(one_atomic(ISA_OP_global_atomic_add_f64, f64_bits(1.5), f64_bits(2), 0) ==
                f64_bits(3.5));
    assert_true(one_atomic(ISA_OP_global_atomic_min_f64, f64_bits(0.0), f64_bits(-0.0), 0) ==
                f64_bits(-0.0));
    assert_true(one_atomic(ISA_OP_global_atomic_max_f64, UINT64_C(0x7ff8000000000000), f64_bits(2),
                           0) == f64_bits(2));
}

/* ---- flat and scratch ------------------------------------------------------------------------ */

static void flat_lanes_may_be_in_three_kinds_of_memory(void **state) {
    (void)state;
    struct isa_insn i = global(ISA_OP_flat_store_dword, 0, 5);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        uint64_t base = l % 3 == 0   ? MEMORY_BASE + 8 * l
                        : l % 3 == 1 ? SHARED_BASE + 8 * l
                                     : PRIVATE_BASE + 12;
        set_address(0, l, base);
        vgpr(5)[l] = 0x1000 + l;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        const uint8_t *at = l % 3 == 0   ? memory + 8 * l
                            : l % 3 == 1 ? lds + 8 * l
                                         : memory + MEMORY_BYTES / 2 + (3 * 64 + l) * 4;
        assert_int_equal(word_at(at), 0x1000 + l);
    }
    set_address(0, 1, SHARED_BASE + LDS_BYTES - 2);
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.space, ISA_SPACE_LDS);
    assert_int_equal(wave->stop.lane, 1);
}

static void scratch_is_each_lanes_own(void **state) {
    (void)state;
    struct isa_insn i = global(ISA_OP_scratch_store_dwordx3, 0, 5);
    i.imm = 4;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = 10; /* not aligned: pieces of four dwords */
        for (unsigned d = 0; d < 3; d++)
            vgpr(5 + d)[l] = 0x01020304 * (d + 1) + l;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    i.op = ISA_OP_scratch_load_dwordx3;
    i.dst = V + 12;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_memory_equal(vgpr(12), vgpr(5), 3 * 256);
    /* bytes 14 and 15 of lane 3 are in its fourth dword */
    assert_memory_equal(memory + MEMORY_BYTES / 2 + (3 * 64 + 3) * 4 + 2, &vgpr(5)[3], 2);
    vgpr(0)[40] = SCRATCH_BYTES - 15;
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.lane, 40);
    assert_int_equal(wave->stop.space, ISA_SPACE_SCRATCH);
}

static void a_load_may_go_to_lds(void **state) {
    (void)state;
    struct isa_insn i = global(ISA_OP_global_load_lds_ubyte, 0, 0);
    i.imm = 8;
    ISA_WAVE_M0(wave) = 512;
    spread(MEMORY_BASE, 2);
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(word_at(lds + 520 + 4 * l), memory[8 + 2 * l]);
}

static void all_widths_may_go_to_lds(void **state) {
    (void)state;
    static const struct {
        enum isa_op global, scratch;
        uint32_t expected;
    } loads[] = {
        { ISA_OP_global_load_lds_ubyte, ISA_OP_scratch_load_lds_ubyte, 0x85 },
        { ISA_OP_global_load_lds_sbyte, ISA_OP_scratch_load_lds_sbyte, 0xffffff85 },
        { ISA_OP_global_load_lds_ushort, ISA_OP_scratch_load_lds_ushort, 0xf185 },
        { ISA_OP_global_load_lds_sshort, ISA_OP_scratch_load_lds_sshort, 0xfffff185 },
        { ISA_OP_global_load_lds_dword, ISA_OP_scratch_load_lds_dword, 0x7766f185 },
    };
    const uint32_t value = 0x7766f185, lane = 37, other = 0x5a5a5a5a;
    ISA_WAVE_M0(wave) = 256;
    ISA_WAVE_EXEC(wave) = UINT64_C(1) << lane;
    for (size_t n = 0; n < 2 * (sizeof loads / sizeof *loads); n++) {
        bool scratch = n % 2;
        struct isa_insn i = global(scratch ? loads[n / 2].scratch : loads[n / 2].global, 0, 0);
        i.imm = 16;
        memset(lds, 0x5a, sizeof lds);
        set_address(0, lane, scratch ? 8 : MEMORY_BASE + 8);
        memcpy(scratch ? memory + MEMORY_BYTES / 2 + (6 * 64 + lane) * 4 : memory + 24, &value,
               sizeof value);
        assert_int_equal(execute(i), ISA_CONTINUE);
        for (unsigned l = 0; l < ISA_LANES; l++)
            assert_int_equal(word_at(lds + 272 + 4 * l), l == lane ? loads[n / 2].expected : other);
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

static struct isa_insn buffer(enum isa_op op, unsigned bits) {
    return (struct isa_insn){
        .op = (uint16_t)op, .dst = V + 5, .src = { V + 0, 16, ISA_INT_0 }, .memory = (uint16_t)bits
    };
}

static void describe(uint64_t base, uint32_t stride, uint32_t records, uint32_t word3) {
    wave->sgpr[16] = (uint32_t)base;
    wave->sgpr[17] = (uint32_t)(base >> 32) | stride << 16;
    wave->sgpr[18] = records;
    wave->sgpr[19] = word3;
}

static void a_buffer_ends_at_num_records(void **state) {
    (void)state;
    describe(MEMORY_BASE, 0, 100, 0);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = 4 * l;
        vgpr(5)[l] = vgpr(6)[l] = 0xffffffff;
    }
    assert_int_equal(execute(buffer(ISA_OP_buffer_load_dwordx2, ISA_MEM_OFFEN)), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(vgpr(5)[l], l < 25 ? word_at(memory + 4 * l) : 0);
        assert_int_equal(vgpr(6)[l], l < 24 ? word_at(memory + 4 * l + 4) : 0);
        vgpr(5)[l] = 0x77777777;
    }
    assert_int_equal(execute(buffer(ISA_OP_buffer_store_dword, ISA_MEM_OFFEN)), ISA_CONTINUE);
    assert_int_equal(word_at(memory + 96), 0x77777777);
    assert_int_not_equal(word_at(memory + 100), 0x77777777);
}

static void an_index_counts_strides(void **state) {
    (void)state;
    describe(MEMORY_BASE + 8, 12, 10, 0);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = 63 - l;
        vgpr(1)[l] = 4;
    }
    assert_int_equal(execute(buffer(ISA_OP_buffer_load_dword, ISA_MEM_IDXEN | ISA_MEM_OFFEN)),
                     ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(vgpr(5)[l], 63 - l < 10 ? word_at(memory + 12 + 12 * (63 - l)) : 0);
}

/* The descriptor that gfx90a has for scratch: a dword of every lane side by side. */
static void scratch_through_a_descriptor_is_swizzled(void **state) {
    (void)state;
    describe(SCRATCH_BASE, 0, 0xffffffff, 3u << 21 | 1u << 23);
    wave->sgpr[17] |= 1u << 31;
    struct isa_insn i = buffer(ISA_OP_buffer_store_dwordx2, ISA_MEM_OFFEN);
    i.imm = 8;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = 4;
        vgpr(5)[l] = l;
        vgpr(6)[l] = 1000 + l;
    }
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        assert_int_equal(word_at(memory + MEMORY_BYTES / 2 + (3 * 64 + l) * 4), l);
        assert_int_equal(word_at(memory + MEMORY_BYTES / 2 + (4 * 64 + l) * 4), 1000 + l);
    }
    vgpr(0)[2] = SCRATCH_BYTES;
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.lane, 2);
    assert_int_equal(wave->stop.space, ISA_SPACE_SCRATCH);
}

/* ---- scalar ---------------------------------------------------------------------------------- */

static void scalar_loads_and_buffers(void **state) {
    (void)state;
    struct isa_insn i = { .op = ISA_OP_s_load_dwordx8,
                          .dst = 24,
                          .src = { 10, ISA_OFF },
                          .memory = ISA_MEM_IMM,
                          .imm = 16 };
    isa_write64(wave, 10, MEMORY_BASE + 64);
    ISA_WAVE_EXEC(wave) = 0; /* does not matter */
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_memory_equal(&wave->sgpr[24], memory + 80, 32);
    i.op = ISA_OP_s_buffer_load_dwordx2;
    i.src[0] = 16;
    describe(MEMORY_BASE, 0, 20, 0);
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_int_equal(wave->sgpr[24] | wave->sgpr[25], 0); /* 16 + 8 is more than 20 */
    i.imm = 12;
    assert_int_equal(execute(i), ISA_CONTINUE);
    assert_memory_equal(&wave->sgpr[24], memory + 12, 8);
    i.op = ISA_OP_s_load_dword;
    i.src[0] = 10;
    isa_write64(wave, 10, MEMORY_BASE + MEMORY_BYTES);
    i.imm = 0;
    assert_int_equal(execute(i), ISA_FAULT);
    assert_int_equal(wave->stop.address, MEMORY_BASE + MEMORY_BYTES);
}

static void every_memory_instruction_is_executable(void **state) {
    (void)state;
    for (unsigned op = 1; op < ISA_OP_COUNT; op++) {
        const struct isa_info *info = &isa_info[op];
        if (!(info->forms & (ISA_FORM_LOAD | ISA_FORM_STORE | ISA_FORM_ATOMIC)))
            continue;
        if (!isa_is_executable((enum isa_op)op))
            fail_msg("nothing executes %s", info->name);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, fresh, done)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(contiguous_lanes_take_one_check),
        T(lanes_that_are_off_keep_their_registers),
        T(widths_are_extended_as_their_names_say),
        T(a_scalar_base_takes_an_offset_of_32_bits),
        T(a_fault_names_lane_and_byte),
        T(atomics_of_all_lanes_add_up),
        T(every_atomic_does_what_its_name_says),
        T(flat_lanes_may_be_in_three_kinds_of_memory),
        T(scratch_is_each_lanes_own),
        T(a_load_may_go_to_lds),
        T(all_widths_may_go_to_lds),
        T(a_buffer_ends_at_num_records),
        T(an_index_counts_strides),
        T(scratch_through_a_descriptor_is_swizzled),
        T(scalar_loads_and_buffers),
        T(every_memory_instruction_is_executable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
