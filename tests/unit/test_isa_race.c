/* Races within a launch: what orders two accesses, and what does not. */
#include "isa/exec.h"
#include "isa/race.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

enum { WAVES = 4, ADDRESS = 0x1000 };

struct launch {
    struct isa_race *race;
    struct isa_race_group *group[2];
    struct isa_wave *wave;
    struct isa_insn insn;
};

static void begin(struct launch *l) {
    *l = (struct launch){ .race = isa_race_open(WAVES, NULL) };
    assert_non_null(l->race);
    for (int i = 0; i < 2; i++)
        assert_non_null(l->group[i] = isa_race_begin(l->race, (uint64_t)i));
    l->wave = aligned_alloc(_Alignof(struct isa_wave), sizeof *l->wave);
    assert_non_null(l->wave);
    memset(l->wave, 0, sizeof *l->wave);
    l->insn.op = ISA_OP_global_store_dword;
    l->insn.src[1] = ISA_VGPR0;
}

static void end(struct launch *l) {
    for (int i = 0; i < 2; i++)
        isa_race_end(&l->group[i]);
    isa_race_close(&l->race);
    free(l->wave);
}

/* One lane of a wave accesses four bytes; the instruction's address tells findings apart. */
static bool touch(struct launch *l, int group, uint32_t wave, enum isa_access_kind kind,
                  uint64_t address, uint64_t pc) {
    uint64_t at[ISA_LANES] = { address };
    struct isa_race_found found;
    l->wave->index = wave;
    struct isa_access a = { .wave = l->wave,
                            .insn = &l->insn,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = (uint8_t)kind,
                            .bytes = 4,
                            .lanes = 1 };
    return isa_race_access(l->group[group], &a, pc, at, NULL, &found);
}

static void waves_race_unless_a_barrier_orders_them(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
    assert_true(touch(&l, 0, 1, ISA_LOAD, ADDRESS, 2));
    assert_false(touch(&l, 0, 2, ISA_STORE, ADDRESS + 64, 3));
    isa_race_barrier(l.group[0]);
    assert_false(touch(&l, 0, 1, ISA_LOAD, ADDRESS + 64, 4));
    end(&l);
}

static void a_wave_does_not_race_with_itself(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
    assert_false(touch(&l, 0, 0, ISA_LOAD, ADDRESS, 2));
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 3));
    end(&l);
}

static void readers_and_atomics_may_meet(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_LOAD, ADDRESS, 1));
    assert_false(touch(&l, 1, 0, ISA_LOAD, ADDRESS, 2));
    assert_false(touch(&l, 0, 0, ISA_ATOMIC, ADDRESS + 64, 3));
    assert_false(touch(&l, 1, 0, ISA_ATOMIC, ADDRESS + 64, 4));
    assert_true(touch(&l, 1, 0, ISA_STORE, ADDRESS, 5)); /* the first group has read it */
    end(&l);
}

static void a_fence_and_an_atomic_order_groups(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
    isa_race_wait(l.group[0], 0);
    assert_false(touch(&l, 0, 0, ISA_ATOMIC, ADDRESS + 64, 2));
    assert_false(touch(&l, 1, 0, ISA_ATOMIC, ADDRESS + 64, 3));
    assert_false(touch(&l, 1, 0, ISA_LOAD, ADDRESS, 4));
    end(&l);
}

static void an_atomic_without_a_fence_does_not(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
    assert_false(touch(&l, 0, 0, ISA_ATOMIC, ADDRESS + 64, 2));
    assert_false(touch(&l, 1, 0, ISA_ATOMIC, ADDRESS + 64, 3));
    assert_true(touch(&l, 1, 0, ISA_LOAD, ADDRESS, 4));
    end(&l);
}

static void neighbouring_bytes_are_apart(void **state) {
    (void)state;
    struct launch l;
    uint64_t at[ISA_LANES];
    struct isa_race_found found;
    begin(&l);
    for (int group = 0; group < 2; group++) {
        struct isa_access a = { .wave = l.wave,
                                .insn = &l.insn,
                                .space = ISA_SPACE_GLOBAL,
                                .kind = ISA_STORE,
                                .bytes = 1,
                                .lanes = 1 };
        at[0] = ADDRESS + (uint64_t)group;
        assert_false(isa_race_access(l.group[group], &a, 1, at, NULL, &found));
    }
    end(&l);
}

static void lanes_of_one_store_race_if_their_values_differ(void **state) {
    (void)state;
    struct launch l;
    struct isa_race_found found;
    uint64_t at[ISA_LANES] = { ADDRESS, ADDRESS };
    begin(&l);
    struct isa_access a = { .wave = l.wave,
                            .insn = &l.insn,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = ISA_STORE,
                            .bytes = 4,
                            .lanes = 3 };
    assert_false(isa_race_access(l.group[0], &a, 1, at, NULL, &found));
    l.wave->vgpr[0][1] = 7;
    assert_true(isa_race_access(l.group[0], &a, 2, at, NULL, &found));
    assert_int_equal(found.side[0].lane, 0);
    assert_int_equal(found.side[1].lane, 1);
    end(&l);
}

static void the_same_two_instructions_are_told_once(void **state) {
    (void)state;
    struct launch l;
    begin(&l);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
    assert_true(touch(&l, 0, 1, ISA_LOAD, ADDRESS, 2));
    assert_false(touch(&l, 0, 2, ISA_LOAD, ADDRESS, 2));
    end(&l);
}

/* Two groups store to the same place, the second while memory holds `there`. */
static bool second_store_races(uint32_t first, uint32_t second) {
    struct launch l;
    struct isa_race_found found;
    uint64_t at[ISA_LANES] = { ADDRESS };
    uint32_t there = 0;
    void *host[ISA_LANES] = { &there };
    begin(&l);
    struct isa_access a = { .wave = l.wave,
                            .insn = &l.insn,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = ISA_STORE,
                            .bytes = 4,
                            .lanes = 1 };
    l.wave->vgpr[0][0] = first;
    assert_false(isa_race_access(l.group[0], &a, 1, at, host, &found));
    there = first;
    l.wave->vgpr[0][0] = second;
    bool races = isa_race_access(l.group[1], &a, 2, at, host, &found);
    end(&l);
    return races;
}

static void stores_race_if_their_values_differ(void **state) {
    (void)state;
    assert_false(second_store_races(1, 1));
    assert_true(second_store_races(1, 2));
}

/* A store of some bytes at ADDRESS + offset, made after it was entered. */
static void store(struct launch *l, unsigned char *memory, unsigned offset, unsigned bytes,
                  uint32_t value) {
    struct isa_race_found found;
    uint64_t at[ISA_LANES] = { ADDRESS + offset };
    void *host[ISA_LANES] = { memory + offset };
    struct isa_access a = { .wave = l->wave,
                            .insn = &l->insn,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = ISA_STORE,
                            .bytes = bytes,
                            .lanes = 1 };
    l->wave->vgpr[0][0] = value;
    (void)isa_race_access(l->group[0], &a, 1, at, host, &found);
    memcpy(memory + offset, &value, bytes);
}

static void count_page(uint64_t address, void *user) {
    assert_true(address >= ADDRESS && address < ADDRESS + 16384);
    ++*(unsigned *)user;
}

static void memory_can_be_made_what_it_was(void **state) {
    (void)state;
    static unsigned char memory[16384], before[16384];
    struct launch l;
    unsigned pages = 0;
    begin(&l);
    for (size_t i = 0; i < sizeof memory; i++)
        before[i] = memory[i] = (unsigned char)(7 * i);
    store(&l, memory, 5, 1, 0xaa);
    store(&l, memory, 4, 4, 0xbbbbbbbb);
    store(&l, memory, 6, 4, 0xcccccccc);
    store(&l, memory, 12286, 4, 0xdddddddd); /* over the end of a page */
    assert_true(isa_race_is_restorable(l.race));
    assert_true(isa_race_is_written(l.race, ADDRESS + 9));
    assert_false(isa_race_is_written(l.race, ADDRESS + 10));
    assert_false(isa_race_is_written(l.race, ADDRESS + 3));
    isa_race_visit_pages(l.race, count_page, &pages);
    assert_int_equal(pages, 3);
    unsigned char part[8];
    memcpy(part, memory + 4, sizeof part);
    isa_race_restore(l.race, ADDRESS + 4, sizeof part, part);
    assert_memory_equal(part, before + 4, sizeof part);
    isa_race_restore(l.race, ADDRESS, sizeof memory, memory);
    assert_memory_equal(memory, before, sizeof memory);
    assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS + 64, 2)); /* nobody says what is there */
    assert_false(isa_race_is_restorable(l.race));
    end(&l);
}

static void a_limit_ends_the_search_and_is_said(void **state) {
    (void)state;
    static const struct isa_race_limits limits[] = { { 3, UINT64_MAX }, { UINT64_MAX, 4096 } };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct launch l;
        begin(&l);
        for (int k = 0; k < 2; k++)
            isa_race_end(&l.group[k]);
        isa_race_close(&l.race);
        assert_non_null(l.race = isa_race_open(WAVES, &limits[i]));
        assert_non_null(l.group[0] = isa_race_begin(l.race, 0));
        assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS, 1));
        assert_true(touch(&l, 0, 1, ISA_LOAD, ADDRESS, 2));
        assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS + 8, 3));
        assert_false(isa_race_is_full(l.race));
        assert_int_equal(isa_race_accesses(l.race), 3);
        assert_false(touch(&l, 0, 0, ISA_STORE, ADDRESS + 8192, 3));
        assert_true(isa_race_is_full(l.race));
        assert_false(touch(&l, 0, 1, ISA_LOAD, ADDRESS + 8, 4));
        end(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_race_unless_a_barrier_orders_them),
        cmocka_unit_test(a_wave_does_not_race_with_itself),
        cmocka_unit_test(readers_and_atomics_may_meet),
        cmocka_unit_test(a_fence_and_an_atomic_order_groups),
        cmocka_unit_test(an_atomic_without_a_fence_does_not),
        cmocka_unit_test(neighbouring_bytes_are_apart),
        cmocka_unit_test(lanes_of_one_store_race_if_their_values_differ),
        cmocka_unit_test(the_same_two_instructions_are_told_once),
        cmocka_unit_test(stores_race_if_their_values_differ),
        cmocka_unit_test(memory_can_be_made_what_it_was),
        cmocka_unit_test(a_limit_ends_the_search_and_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
