/* Scalar code: branches, calls, stops, and what a wave that stopped says. */
#include "isa/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x10000u

struct fixture {
    struct isa_code *code;
    struct isa_group group;
    struct isa_wave *wave;
};

static void start(struct fixture *f, const uint32_t *words, size_t n) {
    struct err e = { 0 };
    assert_int_equal(isa_code_open(&f->code, ISA_GFX90A, words, 4 * n, BASE, &e), RC_OK);
    f->wave = aligned_alloc(64, sizeof *f->wave);
    assert_non_null(f->wave);
    memset(&f->group, 0, sizeof f->group);
    isa_wave_reset(f->wave, f->code, &f->group, NULL, NULL);
    assert_int_equal(isa_wave_jump(f->wave, BASE), ISA_CONTINUE);
}

static void finish(struct fixture *f) {
    isa_code_close(&f->code);
    free(f->wave);
}

static void loop_sums_numbers(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xbe800080, /* s_mov_b32 s0, 0 */
        0xb001000a, /* s_movk_i32 s1, 10 */
        0x80000100, /* s_add_u32 s0, s0, s1 */
        0xb701ffff, /* s_addk_i32 s1, -1 */
        0xbf078001, /* s_cmp_lg_u32 s1, 0 */
        0xbf85fffc, /* s_cbranch_scc1 -4 */
        0xbf810000, /* s_endpgm */
    };
    struct fixture f;
    start(&f, code, sizeof code / 4);
    assert_int_equal(isa_run(f.wave, 1000), ISA_END);
    assert_int_equal(f.wave->sgpr[0], 55);
    assert_int_equal(f.wave->executed, 2 + 10 * 4 + 1);
    finish(&f);
}

static void branches_look_at_what_their_names_say(void **state) {
    (void)state;
    static const struct {
        uint32_t word; /* one ahead */
        uint32_t scc;
        uint64_t vcc, exec;
        bool taken;
    } branches[] = {
        { 0xbf820001, 0, 0, 0, true },                  /* s_branch */
        { 0xbf840001, 0, 1, 1, true },                  /* s_cbranch_scc0 */
        { 0xbf840001, 1, 0, 0, false },                 /* */
        { 0xbf850001, 1, 0, 0, true },                  /* s_cbranch_scc1 */
        { 0xbf850001, 0, 1, 1, false },                 /* */
        { 0xbf860001, 1, 0, 1, true },                  /* s_cbranch_vccz */
        { 0xbf860001, 0, UINT64_C(1) << 63, 0, false }, /* */
        { 0xbf870001, 0, UINT64_C(1) << 32, 0, true },  /* s_cbranch_vccnz */
        { 0xbf870001, 1, 0, 1, false },                 /* */
        { 0xbf880001, 1, 1, 0, true },                  /* s_cbranch_execz */
        { 0xbf880001, 0, 0, UINT64_C(1) << 63, false }, /* */
        { 0xbf890001, 0, 0, UINT64_C(1) << 32, true },  /* s_cbranch_execnz */
        { 0xbf890001, 1, 1, 0, false },                 /* */
        { 0xbf970001, 1, ~UINT64_C(0), 1, false },      /* s_cbranch_cdbgsys: no debugger */
        { 0xbf980001, 1, ~UINT64_C(0), 1, false },      /* s_cbranch_cdbguser */
        { 0xbf990001, 1, ~UINT64_C(0), 1, false },      /* s_cbranch_cdbgsys_or_user */
        { 0xbf9a0001, 1, ~UINT64_C(0), 1, false },      /* s_cbranch_cdbgsys_and_user */
    };
    for (size_t n = 0; n < sizeof branches / sizeof *branches; n++) {
        const uint32_t code[] = { branches[n].word, 0xb0000007 /* s_movk_i32 s0, 7 */, 0xbf810000 };
        struct fixture f;
        start(&f, code, 3);
        f.wave->scc = branches[n].scc;
        ISA_WAVE_VCC(f.wave) = branches[n].vcc;
        ISA_WAVE_EXEC(f.wave) = branches[n].exec;
        assert_int_equal(isa_run(f.wave, 100), ISA_END);
        assert_int_equal(f.wave->sgpr[0], branches[n].taken ? 0 : 7);
        finish(&f);
    }
}

static void budget_pauses_a_wave(void **state) {
    (void)state;
    static const uint32_t code[] = { 0xbf82ffff /* s_branch -1 */ };
    struct fixture f;
    start(&f, code, 1);
    assert_int_equal(isa_run(f.wave, 100), ISA_SLEEP);
    assert_int_equal(isa_run(f.wave, 100), ISA_SLEEP);
    assert_int_equal(f.wave->executed, 200);
    finish(&f);
}

static void unknown_instruction_stops_with_its_encoding(void **state) {
    (void)state;
    static const uint32_t code[] = { 0xbf800000, 0xffffffff, 0xbf810000 };
    struct fixture f;
    char text[256];
    start(&f, code, 3);
    assert_int_equal(isa_run(f.wave, 100), ISA_UNKNOWN);
    assert_int_equal(f.wave->stop.pc, BASE + 4);
    assert_int_equal(f.wave->stop.raw[0], 0xffffffff);
    isa_stop_print(f.wave, ISA_UNKNOWN, text, sizeof text);
    assert_string_equal(text, "unknown instruction at pc 0x10004: 0xffffffff 0xbf810000 is none of "
                              "gfx90a");
    assert_int_equal(isa_stop_instruction(f.wave, ISA_UNKNOWN, text, sizeof text), 0);
    assert_string_equal(text, "");
    finish(&f);
}

static void running_past_the_code_is_told(void **state) {
    (void)state;
    static const uint32_t code[] = { 0xbf800000 };
    struct fixture f;
    char text[256];
    start(&f, code, 1);
    assert_int_equal(isa_run(f.wave, 100), ISA_BAD_PC);
    isa_stop_print(f.wave, ISA_BAD_PC, text, sizeof text);
    assert_string_equal(text, "jump to 0x10004, where there is no code");
    assert_int_equal(isa_stop_instruction(f.wave, ISA_BAD_PC, text, sizeof text), 0);
    assert_string_equal(text, "");
    finish(&f);
}

static void code_runs_on_across_pages(void **state) {
    (void)state;
    enum { N = 3000 };
    uint32_t *code = malloc(N * sizeof *code);
    for (int k = 0; k < N - 1; k++)
        code[k] = 0xb7000001; /* s_addk_i32 s0, 1 */
    code[N - 1] = 0xbf810000;
    struct fixture f;
    start(&f, code, N);
    assert_int_equal(isa_run(f.wave, 10000), ISA_END);
    assert_int_equal(f.wave->sgpr[0], N - 1);
    assert_int_equal(f.wave->executed, N);
    assert_int_equal(f.wave->stop.pc, BASE + 4 * (N - 1));
    finish(&f);
    free(code);
}

static void call_and_return(void **state) {
    (void)state;
    static const uint32_t code[] = {
        0xba840002, /* s_call_b64 s[4:5], 2 */
        0xb0010007, /* s_movk_i32 s1, 7 */
        0xbf810000, /* s_endpgm */
        0xb0000003, /* s_movk_i32 s0, 3 */
        0xbe801d04, /* s_setpc_b64 s[4:5] */
    };
    struct fixture f;
    start(&f, code, sizeof code / 4);
    assert_int_equal(isa_run(f.wave, 100), ISA_END);
    assert_int_equal(f.wave->sgpr[0], 3);
    assert_int_equal(f.wave->sgpr[1], 7);
    assert_int_equal(f.wave->sgpr[4], BASE + 4);
    finish(&f);
}

static void trap_says_its_number(void **state) {
    (void)state;
    static const uint32_t code[] = { 0xbf920002 /* s_trap 2 */ };
    struct fixture f;
    char text[256];
    start(&f, code, 1);
    assert_int_equal(isa_run(f.wave, 100), ISA_TRAP);
    assert_int_equal(f.wave->stop.code, 2);
    isa_stop_print(f.wave, ISA_TRAP, text, sizeof text);
    assert_string_equal(text, "trap 2 at pc 0x10000: s_trap 2");
    isa_stop_instruction(f.wave, ISA_TRAP, text, sizeof text);
    assert_string_equal(text, "s_trap 2");
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_sums_numbers),
        cmocka_unit_test(branches_look_at_what_their_names_say),
        cmocka_unit_test(budget_pauses_a_wave),
        cmocka_unit_test(unknown_instruction_stops_with_its_encoding),
        cmocka_unit_test(running_past_the_code_is_told),
        cmocka_unit_test(code_runs_on_across_pages),
        cmocka_unit_test(call_and_return),
        cmocka_unit_test(trap_says_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
