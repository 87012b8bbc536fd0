/* Which argument memory instructions go through, found without running the code. */
#include "isa/through.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x4000u

/* Two pointer arguments, at the start of the segment that s[0:1] points to. */
static const uint8_t arguments[4] = { 1, 1, 2, 2 };

static uint8_t *find(const uint32_t *words, size_t bytes) {
    struct isa_code *code;
    struct err e = { 0 };
    const struct isa_through_kernel k = { .entry = BASE,
                                          .end = BASE + bytes,
                                          .kernarg = 0,
                                          .preload = -1,
                                          .argument = arguments,
                                          .dwords = 4 };
    assert_int_equal(isa_code_open(&code, ISA_GFX90A, words, bytes, BASE, &e), RC_OK);
    uint8_t *found = isa_through_find(code, &k);
    isa_code_close(&code);
    return found;
}

static void addresses_keep_the_argument_they_are_made_from(void **state) {
    static const uint32_t words[] = {
        0xc00a0100, 0x00000000, /*  0: s_load_dwordx4 s[4:7], s[0:1], 0x0 */
        0xc0060202, 0x00000000, /*  2: s_load_dwordx2 s[8:9], s[4:5], 0x0 */
        0x24020082,             /*  4: v_lshlrev_b32 v1, 2, v0 */
        0xdc508000, 0x02040001, /*  5: global_load_dword v2, v1, s[4:5] */
        0xdc508000, 0x02080001, /*  7: global_load_dword v2, v1, s[8:9] */
        0x7e080206, 0x7e0a0207, /*  9: v_mov_b32 v4, s6; v5, s7 */
        0x32080304, 0x380a0a80, /* 11: v[4:5] += v1 */
        0xdc708000, 0x007f0204, /* 13: global_store_dword v[4:5], v2, off */
        0x7d980087,             /* 15: v_cmp_gt_u32 vcc, 7, v0 */
        0xbe8a206a,             /* 16: s_and_saveexec_b64 s[10:11], vcc */
        0x7e080204, 0x7e0a0205, /* 17: v_mov_b32 v4, s4; v5, s5 */
        0xdc708000, 0x007f0204, /* 19: global_store_dword v[4:5], v2, off */
        0x87fe0a7e,             /* 21: s_or_b64 exec, exec, s[10:11] */
        0xdc708000, 0x007f0204, /* 22: global_store_dword v[4:5], v2, off */
        0xbf068014, 0xbf850002, /* 24: s_cmp_eq_u32 s20, 0; s_cbranch_scc1 2 */
        0xbe840006, 0xbe850007, /* 26: s_mov_b32 s4, s6; s5, s7 */
        0xdc508000, 0x02040001, /* 28: global_load_dword v2, v1, s[4:5] */
        0x80860406,             /* 30: s_sub_u32 s6, s6, s4 */
        0xdc508000, 0x02060001, /* 31: global_load_dword v2, v1, s[6:7] */
        0xbf810000,             /* 33: s_endpgm */
    };
    uint8_t *found = find(words, sizeof words), expected[sizeof words / 4] = { 0 };
    (void)state;
    assert_non_null(found);
    expected[2] = expected[5] = 1;
    expected[13] = 2;
    expected[19] = 1; /* of the lanes that are on; 22: some lanes have the other */
    assert_memory_equal(found, expected, sizeof expected);
    free(found);
}

static void nothing_is_known_where_jumps_are_computed(void **state) {
    static const uint32_t words[] = { 0xbe801d02 /* s_setpc_b64 s[2:3] */, 0xbf810000 };
    (void)state;
    assert_null(find(words, sizeof words));
}

static void random_words_do_no_harm(void **state) {
    uint32_t words[64], random = 1;
    (void)state;
    for (int n = 0; n < 20000; n++) {
        for (size_t i = 0; i < 64; i++) {
            random = random * 1664525 + 1013904223;
            words[i] = n % 2 ? random : random >> 8 | 0xbf000000u; /* branches among them */
        }
        free(find(words, sizeof words));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_keep_the_argument_they_are_made_from),
        cmocka_unit_test(nothing_is_known_where_jumps_are_computed),
        cmocka_unit_test(random_words_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
