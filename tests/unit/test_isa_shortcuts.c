/* Short ways through the interpreter give what the long ones give: vector instructions with neg and
 * abs, constants and v_div_fmas; scratch without a lookup per lane; dwords of memory by each
 * instruction set of the processor, of which pairs are never torn. */
#include "base/cpu.h"
#include "isa/valu.h"
#include "unit/isa_wave.h"

#include <pthread.h>
#include <stdatomic.h>

static uint64_t seed = 88172645463325252u;

static uint64_t random64(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

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

/* ---- vector instructions ---- */

enum { FIRST_OUT = 6, OUT = 4 };

static void fill_registers(void) {
    static const uint32_t special[] = { 0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                        0xff800000, 0x7fc00000, 1,          0x00800000, 0x3ff00000,
                                        0xbff00000, 0x7ff00000, 0xfff80000 };
    for (unsigned r = 0; r < FIRST_OUT + OUT; r++)
        for (unsigned l = 0; l < ISA_LANES; l++)
            vgpr(r)[l] = random64() % 4 ? (uint32_t)random64()
                                        : special[random64() % (sizeof special / sizeof *special)];
}

/* Everything that a vector instruction can change. */
struct outcome {
    uint32_t rows[FIRST_OUT + OUT][ISA_LANES];
    uint32_t sgpr[ISA_SGPRS];
};

static struct outcome read_outcome(void) {
    struct outcome o;
    memcpy(o.rows, wave->vgpr, sizeof o.rows);
    memcpy(o.sgpr, wave->sgpr, sizeof o.sgpr);
    return o;
}

static void write_outcome(const struct outcome *o) {
    memcpy(wave->vgpr, o->rows, sizeof o->rows);
    memcpy(wave->sgpr, o->sgpr, sizeof o->sgpr);
}

/* Whether it took a short way, which is then the same as the long one. */
static bool agrees(struct isa_insn i) {
    i.words = 2;
    isa_bind(&i);
    if (i.exec == isa_valu_general)
        return false;
    struct outcome before = read_outcome();
    assert_int_equal(i.exec(wave, &i), ISA_CONTINUE);
    struct outcome quick = read_outcome();
    write_outcome(&before);
    assert_int_equal(isa_valu_general(wave, &i), ISA_CONTINUE);
    struct outcome slow = read_outcome();
    if (memcmp(&quick, &slow, sizeof quick) != 0)
        fail_msg("%s with modifiers %#x differs", isa_info[i.op].name, i.modifiers);
    return true;
}

static struct isa_insn vector(enum isa_op op, uint32_t modifiers, bool scalar) {
    const struct isa_info *info = &isa_info[op];
    bool compares = info->type[0] == ISA_TYPE_M64;
    return (struct isa_insn){
        .op = (uint16_t)op,
        .form = ISA_E64,
        .dst = (uint16_t)(compares ? 20 : ISA_VGPR0 + FIRST_OUT),
        .src = { scalar ? 30 : ISA_VGPR0, ISA_VGPR0 + 2, ISA_VGPR0 + 4 },
        .modifiers = modifiers,
        .literal = 0x40490fdb,
    };
}

/* One of F32 and F64, or a comparison of such. */
static bool has_signs(const struct isa_info *info) {
    return info->type[1] == ISA_TYPE_F32 || info->type[1] == ISA_TYPE_F64;
}

static void signs_of_sources_are_flipped_as_the_long_way_flips_them(void **state) {
    (void)state;
    unsigned quick = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        const struct isa_info *info = &isa_info[op];
        if (!isa_valu_has(op) || !has_signs(info) || info->forms & ISA_FORM_SDST ||
            info->forms & ISA_FORM_LIT || info->encoding == ISA_ENC_VOP3P)
            continue;
        unsigned signs = 1u << isa_valu_sources(op);
        for (uint32_t neg = 0; neg < signs; neg++)
            for (uint32_t abs = 0; abs < signs; abs++) {
                fill_registers();
                ISA_WAVE_EXEC(wave) = random64() % 2 ? ~UINT64_C(0) : random64();
                ISA_WAVE_VCC(wave) = random64() % 2 ? 0 : random64();
                isa_write64(wave, 30, random64());
                quick += agrees(vector(op, neg | abs * ISA_MOD_ABS, random64() % 3 == 0));
            }
    }
    assert_true(quick > 1000);
}

static void constants_come_in_their_places(void **state) {
    (void)state;
    static const enum isa_op ops[] = { ISA_OP_v_fmamk_f32, ISA_OP_v_fmaak_f32, ISA_OP_v_madmk_f32,
                                       ISA_OP_v_madak_f32 };
    for (unsigned n = 0; n < 4; n++)
        for (unsigned round = 0; round < 10; round++) {
            fill_registers();
            ISA_WAVE_EXEC(wave) = round % 2 ? ~UINT64_C(0) : random64();
            struct isa_insn i = vector(ops[n], 0, round % 3 == 0);
            i.form = ISA_E32;
            assert_true(agrees(i));
        }
    set_address(0, 0, 0x40000000); /* 2 */
    vgpr(2)[0] = 0x3f800000;       /* 1 */
    ISA_WAVE_EXEC(wave) = 1;       /* K is pi */
    struct isa_insn i = vector(ISA_OP_v_fmamk_f32, 0, false);
    i.form = ISA_E32;
    assert_int_equal(execute(i), ISA_CONTINUE);
    float sum = 0;
    memcpy(&sum, &vgpr(FIRST_OUT)[0], sizeof sum);
    assert_true(sum > 7.28f && sum < 7.29f); /* 2 pi + 1 */
}

/* A vector register, a scalar one, an inline constant, or a literal if `literal` allows it. */
static uint16_t any_source(enum isa_type type, unsigned s, bool literal) {
    if (type == ISA_TYPE_M64)
        return random64() % 2 ? ISA_VCC : 32;
    switch (random64() % 5) {
    case 0:
        return (uint16_t)(30 + 2 * s);
    case 1:
        return (uint16_t)(ISA_INT_0 + random64() % (ISA_INT_M16 + 1 - ISA_INT_0));
    case 2:
        return (uint16_t)(ISA_FLOAT_0_5 + random64() % 9);
    case 3:
        return literal ? ISA_LITERAL : ISA_VGPR0;
    default:
        return (uint16_t)(ISA_VGPR0 + 2 * s);
    }
}

static void what_a_source_is_does_not_change_the_result(void **state) {
    (void)state;
    unsigned quick = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        const struct isa_info *info = &isa_info[op];
        if (!isa_valu_has(op) || info->encoding == ISA_ENC_VOP3P ||
            info->forms & (ISA_FORM_LIT | ISA_FORM_OPSEL))
            continue;
        for (unsigned round = 0; round < 40; round++) {
            fill_registers();
            ISA_WAVE_EXEC(wave) = round % 4 == 0 ? ~UINT64_C(0) : round % 4 == 1 ? 0 : random64();
            ISA_WAVE_VCC(wave) = random64();
            for (unsigned r = 30; r < 36; r += 2)
                isa_write64(wave, r, random64());
            struct isa_insn i = vector(op, 0, false);
            i.sdst = round % 2 ? ISA_VCC : 40;
            i.form = round % 2 ? ISA_E32 : ISA_E64;
            for (unsigned s = 0; s < 3; s++)
                i.src[s] = any_source(info->type[s + 1], s, round % 2 && s == 0);
            quick += agrees(i);
        }
    }
    assert_true(quick > 10000);
}

static void packed_dwords_come_from_where_op_sel_says(void **state) {
    (void)state;
    static const enum isa_op ops[] = { ISA_OP_v_pk_fma_f32, ISA_OP_v_pk_mul_f32,
                                       ISA_OP_v_pk_add_f32, ISA_OP_v_pk_mov_b32 };
    const uint32_t halves = 7u * ISA_MOD_OPSEL | 7u * ISA_MOD_OPSEL_HI;
    for (unsigned round = 0; round < 4000; round++) {
        struct isa_insn i = vector(ops[round % 4], 0, false);
        fill_registers();
        ISA_WAVE_EXEC(wave) = round % 3 ? ~UINT64_C(0) : random64();
        for (unsigned r = 30; r < 36; r += 2)
            isa_write64(wave, r, random64());
        i.modifiers = (uint32_t)random64() & (halves | 7u | 7u * ISA_MOD_NEG_HI);
        if (i.op == ISA_OP_v_pk_mov_b32)
            i.modifiers &= halves;
        i.dst = (uint16_t)(ISA_VGPR0 + random64() % 4 * 2); /* also a source */
        for (unsigned s = 0; s < 3; s++)
            i.src[s] = any_source(isa_info[i.op].type[s + 1], s, false);
        assert_true(agrees(i));
    }
}

/* ---- scratch ---- */

static unsigned looks;

static void look(void *context, const struct isa_access *a, const uint32_t offset[ISA_LANES]) {
    (void)context, (void)a, (void)offset;
    looks++;
}

static void scratch_is_the_same_with_and_without_a_look_at_each_lane(void **state) {
    (void)state;
    static const enum isa_op ops[] = {
        ISA_OP_scratch_store_byte,    ISA_OP_scratch_store_short,   ISA_OP_scratch_store_dword,
        ISA_OP_scratch_store_dwordx2, ISA_OP_scratch_store_dwordx3, ISA_OP_scratch_store_dwordx4,
        ISA_OP_scratch_load_ubyte,    ISA_OP_scratch_load_sbyte,    ISA_OP_scratch_load_sshort,
        ISA_OP_scratch_load_dword,    ISA_OP_scratch_load_dwordx2,  ISA_OP_scratch_load_dwordx4,
    };
    static uint8_t before[MEMORY_BYTES], after[MEMORY_BYTES];
    struct isa_memory watching = wave_memory;
    watching.scratch = look;
    for (unsigned round = 0; round < 600; round++) {
        struct isa_insn i = { .op = (uint16_t)ops[round % (sizeof ops / sizeof *ops)],
                              .dst = ISA_VGPR0 + FIRST_OUT,
                              .src = { ISA_VGPR0, ISA_VGPR0 + 2, ISA_OFF },
                              .imm = (int32_t)(random64() % 3 * 4) };
        fill_registers();
        ISA_WAVE_EXEC(wave) = round % 3 ? ~UINT64_C(0) : random64() | 1;
        uint32_t align = round % 5 ? 4 : 1, same = (uint32_t)random64() % 10 * align;
        for (unsigned l = 0; l < ISA_LANES; l++)
            vgpr(0)[l] = round % 2 ? same : (uint32_t)random64() % 10 * align;
        if (round % 20 == 19)
            vgpr(0)[round % ISA_LANES] = SCRATCH_BYTES - 2; /* some do not fit */
        struct outcome start = read_outcome();
        memcpy(before, memory, sizeof before);
        enum isa_result quick = execute(i);
        struct outcome first = read_outcome();
        memcpy(after, memory, sizeof after);
        write_outcome(&start);
        memcpy(memory, before, sizeof before);
        wave->memory = &watching;
        enum isa_result slow = execute(i);
        wave->memory = &wave_memory;
        struct outcome second = read_outcome();
        assert_int_equal(quick, slow);
        if (slow == ISA_CONTINUE && (memcmp(&first, &second, sizeof first) != 0 ||
                                     memcmp(after, memory, sizeof after) != 0))
            fail_msg("%s differs in round %u", isa_info[i.op].name, round);
    }
    assert_true(looks > 300);
}

/* ---- dwords of memory ---- */

/* Offsets of lanes that are off lead nowhere. */
static void make_offsets(unsigned kind, uint64_t lanes, uint32_t offset[ISA_LANES]) {
    uint32_t start = (uint32_t)random64() % 1000;
    for (uint32_t l = 0; l < ISA_LANES; l++) {
        offset[l] = kind == 0   ? start + 4 * l
                    : kind == 1 ? start
                    : kind == 2 ? start + 4 * (63 - l)
                    : kind == 3 ? start + 8 * l
                    : kind == 4 ? start + 4 * (l % 16) + 256 * (l / 16) /* rows of a tile */
                    : kind == 5 ? start + 100 * (l / 8)
                                : (uint32_t)random64() % 3000;
        if (!(lanes >> l & 1))
            offset[l] = (uint32_t)random64() | 0x40000000;
    }
    if (kind == 0 && random64() % 4 == 0)
        offset[__builtin_ctzll(lanes)] += 4; /* nearly a row */
}

enum { KINDS = 7 };

static void compare_dwords(const struct isa_rows *rows, const char *name) {
    static uint8_t from[4096], x[4096], y[4096];
    static uint32_t two[2][2 * ISA_LANES];
    uint32_t offset[ISA_LANES], a[ISA_LANES], b[ISA_LANES];
    for (unsigned n = 0; n < sizeof from; n++)
        from[n] = (uint8_t)random64();
    for (unsigned round = 0; round < 700; round++) {
        uint64_t lanes = round / KINDS % 2 ? ~UINT64_C(0) : random64() & random64();
        lanes |= UINT64_C(1) << random64() % ISA_LANES;
        make_offsets(round % KINDS, lanes, offset);
        for (unsigned l = 0; l < ISA_LANES; l++)
            a[l] = b[l] = (uint32_t)random64();
        memcpy(x, from, sizeof x);
        memcpy(y, from, sizeof y);
        isa_rows_base.store(x, offset, a, lanes);
        rows->store(y, offset, a, lanes);
        if (memcmp(x, y, sizeof x) != 0)
            fail_msg("store of kind %u by %s", round % KINDS, name);
        isa_rows_base.load(a, from, offset, lanes);
        rows->load(b, from, offset, lanes);
        if (memcmp(a, b, sizeof a) != 0)
            fail_msg("load of kind %u by %s", round % KINDS, name);
        isa_rows_base.load_pairs(two[0], from, offset, lanes);
        rows->load_pairs(two[1], from, offset, lanes);
        if (memcmp(two[0], two[1], sizeof two[0]) != 0)
            fail_msg("load of pairs of kind %u by %s", round % KINDS, name);
        isa_rows_base.store_pairs(x, offset, two[0], lanes);
        rows->store_pairs(y, offset, two[0], lanes);
        if (memcmp(x, y, sizeof x) != 0)
            fail_msg("store of pairs of kind %u by %s", round % KINDS, name);
    }
}

static void the_plain_set_moves_dwords_of_lanes_that_are_on(void **state) {
    (void)state;
    uint8_t bytes[300];
    uint32_t offset[ISA_LANES], d[ISA_LANES], expected;
    for (unsigned n = 0; n < sizeof bytes; n++)
        bytes[n] = (uint8_t)n;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        offset[l] = l % 2 ? 1 + 3 * l : 0x7fffffff;
        d[l] = 7;
    }
    isa_rows_base.load(d, bytes, offset, UINT64_C(0xaaaaaaaaaaaaaaaa));
    for (unsigned l = 0; l < ISA_LANES; l++) {
        memcpy(&expected, bytes + (l % 2 ? offset[l] : 0), 4);
        assert_int_equal(d[l], l % 2 ? expected : 7);
        offset[l] = l % 2 ? 40 : 0x7fffffff;
        d[l] = l;
    }
    isa_rows_base.store(bytes, offset, d, UINT64_C(0xaaaaaaaaaaaaaaaa));
    assert_int_equal(word_at(bytes + 40), 63); /* the highest wins */
}

/* ---- rows of elements side by side ---- */

/* Element l is `bytes` long; what is not in memory is the sign's, or 0. */
static void compare_loads(const struct isa_rows *rows, const char *name, const uint8_t *from) {
    uint32_t d[4 * ISA_LANES], expected;
    for (unsigned dwords = 1; dwords <= 4; dwords++) {
        rows->load_row(d, from, dwords);
        for (unsigned n = 0; n < dwords * ISA_LANES; n++)
            if (word_at(from + 4 * (size_t)dwords * (n % ISA_LANES) + 4 * (n / ISA_LANES)) != d[n])
                fail_msg("load of a row of %u dwords by %s", dwords, name);
    }
    for (unsigned kind = 0; kind < 4; kind++) {
        unsigned bytes = 1 + kind % 2, sign = kind / 2;
        rows->load_small(d, from, bytes, sign);
        for (unsigned l = 0; l < ISA_LANES; l++) {
            expected = bytes == 1 ? from[l] : from[2 * l] | (uint32_t)from[2 * l + 1] << 8;
            if (sign && expected >> (8 * bytes - 1))
                expected |= ~0u << 8 * bytes;
            if (d[l] != expected)
                fail_msg("load of a row of %u bytes by %s", bytes, name);
        }
    }
}

static void compare_stores(const struct isa_rows *rows, const char *name, const uint32_t *s) {
    uint8_t to[1200];
    for (unsigned bytes = 1; bytes <= 16; bytes = bytes < 4 ? 2 * bytes : bytes + 4) {
        memset(to, 0xee, sizeof to);
        if (bytes < 4)
            rows->store_small(to + 3, s, bytes);
        else
            rows->store_row(to + 3, s, bytes / 4);
        for (unsigned n = 0; n < bytes * ISA_LANES; n++) {
            uint32_t word = s[n % bytes / 4 * ISA_LANES + n / bytes];
            if (to[3 + n] != (uint8_t)(word >> n % bytes % 4 * 8))
                fail_msg("store of a row of %u bytes by %s", bytes, name);
        }
        assert_int_equal(to[2], 0xee);
        assert_int_equal(to[3 + bytes * ISA_LANES], 0xee);
    }
}

/* Lanes that read other lanes, and where bytes of scratch are. */
static void compare_places(const struct isa_rows *rows, const char *name, const uint32_t *s) {
    uint32_t from[ISA_LANES], d[ISA_LANES], at[ISA_LANES], odd = 0;
    uint64_t valid = random64();
    for (unsigned l = 0; l < ISA_LANES; l++) {
        from[l] = (uint32_t)(random64() % ISA_LANES);
        at[l] = (uint32_t)random64() % 4096 & ~(valid % 2 ? 3u : 1u);
        odd |= at[l] & 3;
    }
    rows->gather(d, s, from, valid);
    for (unsigned l = 0; l < ISA_LANES; l++)
        if (d[l] != (valid >> l & 1 ? s[from[l]] : 0))
            fail_msg("lanes of others by %s", name);
    rows->sum(d, s, 77);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(d[l], s[l] + 77);
    assert_int_equal(rows->swizzle(d, at), odd);
    for (unsigned l = 0; l < ISA_LANES; l++)
        assert_int_equal(d[l], (at[l] / 4 * ISA_LANES + l) * 4 + at[l] % 4);
}

static void compare_rows_of_memory(const struct isa_rows *rows, const char *name) {
    uint8_t from[16 * ISA_LANES + 16];
    uint32_t s[4 * ISA_LANES];
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned n = 0; n < sizeof from; n++)
            from[n] = (uint8_t)random64();
        for (unsigned n = 0; n < 4 * ISA_LANES; n++)
            s[n] = (uint32_t)random64();
        compare_loads(rows, name, from + round % 16);
        compare_stores(rows, name, s);
        compare_places(rows, name, s);
    }
}

static void instruction_sets_move_rows_of_any_element(void **state) {
    (void)state;
    compare_rows_of_memory(&isa_rows_base, "base");
#if defined(__x86_64__)
    if (cpu_features() & CPU_AVX2)
        compare_rows_of_memory(&isa_rows_avx2, "avx2");
    if (cpu_features() & CPU_AVX512)
        compare_rows_of_memory(&isa_rows_avx512, "avx512");
#endif
}

static void instruction_sets_move_the_same_dwords(void **state) {
    (void)state;
#if defined(__x86_64__)
    if (cpu_features() & CPU_AVX2)
        compare_dwords(&isa_rows_avx2, "avx2");
    if (cpu_features() & CPU_AVX512)
        compare_dwords(&isa_rows_avx512, "avx512");
#endif
    uint64_t address[ISA_LANES];
    for (unsigned l = 0; l < ISA_LANES; l++)
        address[l] = UINT64_C(0xfffffff000) + 12 * l;
    assert_true(isa_rows_chosen->is_row(address, 12));
    assert_false(isa_rows_chosen->is_row(address, 8));
    address[63]++;
    assert_false(isa_rows_chosen->is_row(address, 12));
}

/* ---- elements of 8 bytes ---- */

static _Atomic bool over;
static _Atomic uint64_t passes; /* of the other thread */
static uint64_t shared_pairs[2 * ISA_LANES];
static uint64_t torn;

/* What other threads see of pairs that only ever are all zeros or all ones. */
static void *watch_pairs(void *writes) {
    for (uint64_t value = 0; !atomic_load(&over); value = ~value, atomic_fetch_add(&passes, 1))
        for (unsigned n = 0; n < 2 * ISA_LANES; n++)
            if (writes) {
                __atomic_store_n(&shared_pairs[n], value, __ATOMIC_RELAXED);
            } else {
                uint64_t seen = __atomic_load_n(&shared_pairs[n], __ATOMIC_RELAXED);
                torn += seen && ~seen;
            }
    return NULL;
}

static void *pairs_span(void *context, const struct isa_access *a, uint64_t address,
                        uint64_t bytes) {
    (void)context, (void)a, (void)bytes;
    return (uint8_t *)shared_pairs + (address - MEMORY_BASE);
}

static void move_pairs(bool store, uint64_t stride, uint64_t exec) {
    static const struct isa_memory pairs = { .span = pairs_span, .row = pairs_span };
    struct isa_insn i = { .op = store ? ISA_OP_global_store_dwordx2 : ISA_OP_global_load_dwordx2,
                          .dst = ISA_VGPR0 + FIRST_OUT,
                          .src = { ISA_VGPR0, ISA_VGPR0 + 2, ISA_OFF } };
    wave->memory = &pairs;
    ISA_WAVE_EXEC(wave) = exec;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        set_address(0, l, MEMORY_BASE + stride * l);
        vgpr(FIRST_OUT)[l] = vgpr(FIRST_OUT + 1)[l] = 0;
    }
    uint64_t enough =
        atomic_load(&passes) + 20000; /* the other thread really runs beside this one */
    for (unsigned round = 0; atomic_load(&passes) < enough; round++) {
        for (unsigned l = 0; l < ISA_LANES && store; l++)
            vgpr(2)[l] = vgpr(3)[l] = round % 2 ? ~0u : 0;
        assert_int_equal(execute(i), ISA_CONTINUE);
        for (unsigned l = 0; l < ISA_LANES && !store; l++)
            torn += vgpr(FIRST_OUT)[l] != vgpr(FIRST_OUT + 1)[l];
    }
}

static void pairs_of_dwords_are_read_and_written_at_once(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it is a race, of the kind that programs rely on */
#endif
    for (int store = 0; store < 2; store++) {
        pthread_t other;
        atomic_store(&over, false);
        memset(shared_pairs, 0, sizeof shared_pairs);
        assert_int_equal(pthread_create(&other, NULL, watch_pairs, store ? NULL : &over), 0);
        move_pairs(store, 8, ~UINT64_C(0));                 /* a row */
        move_pairs(store, 16, ~UINT64_C(0));                /* spread */
        move_pairs(store, 8, UINT64_C(0x00ffff00f0f0aaaa)); /* some lanes */
        atomic_store(&over, true);
        pthread_join(other, NULL);
        assert_int_equal(torn, 0);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, fresh, done)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(signs_of_sources_are_flipped_as_the_long_way_flips_them),
        T(constants_come_in_their_places),
        T(what_a_source_is_does_not_change_the_result),
        T(packed_dwords_come_from_where_op_sel_says),
        T(scratch_is_the_same_with_and_without_a_look_at_each_lane),
        T(the_plain_set_moves_dwords_of_lanes_that_are_on),
        T(instruction_sets_move_the_same_dwords),
        T(instruction_sets_move_rows_of_any_element),
        T(pairs_of_dwords_are_read_and_written_at_once),
    };
    isa_rows_choose();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
