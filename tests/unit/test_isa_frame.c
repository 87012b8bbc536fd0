/* Which memory instructions are for one variable of a kernel's stack only, found without running
 * the code. */
#include "isa/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x4000u

static uint8_t *find(const uint32_t *words, size_t bytes, bool zero_is_null) {
    struct isa_code *code;
    struct err e = { 0 };
    const struct isa_frame_kernel k = { .entry = BASE,
                                        .end = BASE + bytes,
                                        .zero_is_null = zero_is_null };
    assert_int_equal(isa_code_open(&code, ISA_GFX90A, words, bytes, BASE, &e), RC_OK);
    uint8_t *found = isa_frame_find(code, &k);
    isa_code_close(&code);
    return found;
}

static void only_addresses_of_certain_constants_are_for_one_variable(void **state) {
    static const uint32_t words[] = {
        0x24020082,             /*  0: v_lshlrev_b32_e32 v1, 2, v0 */
        0x680402ff, 0x000000a0, /*  1: v_add_u32_e32 v2, 0xa0, v1 */
        0xe0501000, 0x80000302, /*  3: buffer_load_dword v3, v2, s[0:3], 0 offen */
        0xe0501000, 0x80000303, /*  5: buffer_load_dword v3, v3, s[0:3], 0 offen */
        0x7e080290,             /*  7: v_mov_b32_e32 v4, 16 */
        0xe0701000, 0x80000304, /*  8: buffer_store_dword v3, v4, s[0:3], 0 offen */
        0x68080888,             /* 10: v_add_u32_e32 v4, 8, v4 */
        0xbf068004,             /* 11: s_cmp_eq_u32 s4, 0 */
        0xbf85fffb,             /* 12: s_cbranch_scc1 loop */
        0x7e0a02ff, 0x000000a0, /* 13: v_mov_b32_e32 v5, 0xa0 */
        0x000a0a90,             /* 15: v_cndmask_b32_e32 v5, 16, v5, vcc */
        0x680a0305,             /* 16: v_add_u32_e32 v5, v5, v1 */
        0xe0501000, 0x80000305, /* 17: buffer_load_dword v3, v5, s[0:3], 0 offen */
        0xbf850002,             /* 19: s_cbranch_scc1 other */
        0x680c0490,             /* 20: v_add_u32_e32 v6, 16, v2 */
        0xbf820002,             /* 21: s_branch both */
        0x680c04ff, 0x000000a0, /* 22: v_add_u32_e32 v6, 0xa0, v2 */
        0xe0501000, 0x80000306, /* 24: buffer_load_dword v3, v6, s[0:3], 0 offen */
        0x7d980087,             /* 26: v_cmp_gt_u32_e32 vcc, 7, v0 */
        0xbe8a206a,             /* 27: s_and_saveexec_b64 s[10:11], vcc */
        0x68040290,             /* 28: v_add_u32_e32 v2, 16, v1 */
        0xe0501000, 0x80000302, /* 29: buffer_load_dword v3, v2, s[0:3], 0 offen */
        0x87fe0a7e,             /* 31: s_or_b64 exec, exec, s[10:11] */
        0xe0501000, 0x80000302, /* 32: buffer_load_dword v3, v2, s[0:3], 0 offen */
        0x7e080290,             /* 34: v_mov_b32_e32 v4, 16 */
        0xe0701000, 0x80000304, /* 35: buffer_store_dword v3, v4, s[0:3], 0 offen */
        0x680808ff, 0x000000a0, /* 37: v_add_u32_e32 v4, 0xa0, v4 */
        0xbf85fffb,             /* 39: s_cbranch_scc1 far */
        0xbf810000,             /* 40: s_endpgm */
    };
    uint8_t *found = find(words, sizeof words, false), expected[sizeof words / 4] = { 0 };
    (void)state;
    assert_non_null(found);
    expected[3] = ISA_FRAME_ONE;
    expected[8] =
        ISA_FRAME_STEPPED;        /* moved by a loop; 35: too far, that may be another variable */
    expected[29] = ISA_FRAME_ONE; /* of the lanes that are on; 32: others have another constant */
    /* 5: loaded; 17: one of two constants; 24: another constant on each path */
    assert_memory_equal(found, expected, sizeof expected);
    free(found);
}

/* Eight or sixteen bits hold no address, so that an index need not be scaled to be a number. */
static void a_loaded_byte_is_a_number(void **state) {
    static const uint32_t words[] = {
        0xdc408000, 0x01040000, /*  0: global_load_ubyte v1, v0, s[4:5] */
        0x680402ff, 0x000000a0, /*  2: v_add_u32_e32 v2, 0xa0, v1 */
        0xe0401000, 0x80000302, /*  4: buffer_load_ubyte v3, v2, s[0:3], 0 offen */
        0xdc508000, 0x01040000, /*  6: global_load_dword v1, v0, s[4:5] */
        0x680402ff, 0x000000a0, /*  8: v_add_u32_e32 v2, 0xa0, v1 */
        0xe0401000, 0x80000302, /* 10: buffer_load_ubyte v3, v2, s[0:3], 0 offen */
        0xbf810000,             /* 12: s_endpgm */
    };
    (void)state;
    uint8_t *found = find(words, sizeof words, false);
    assert_non_null(found);
    assert_int_equal(found[4], ISA_FRAME_ONE);
    assert_int_equal(found[10], ISA_FRAME_ANY);
    free(found);
}

/* v_cndmask_b32 v5, 0, v5 of a place is how a pointer to private memory is made generic. */
static void a_choice_between_null_and_a_place_is_that_place(void **state) {
    static const uint32_t words[] = {
        0x24020082,             /* 0: v_lshlrev_b32 v1, 2, v0 */
        0x7e0a02ff, 0x000000a0, /* 1: v_mov_b32 v5, 0xa0 */
        0x000a0a80,             /* 3: v_cndmask_b32 v5, 0, v5, vcc */
        0x680a0305,             /* 4: v_add_u32 v5, v5, v1 */
        0xe0501000, 0x80000305, /* 5: buffer_load_dword v3, v5, s[0:3], 0 offen */
        0xbf810000,             /* 7: s_endpgm */
    };
    (void)state;
    for (int null = 0; null < 2; null++) {
        uint8_t *found = find(words, sizeof words, null);
        assert_non_null(found);
        assert_int_equal(found[5], null);
        free(found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_addresses_of_certain_constants_are_for_one_variable),
        cmocka_unit_test(a_loaded_byte_is_a_number),
        cmocka_unit_test(a_choice_between_null_and_a_place_is_that_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
