/* Result codes and their messages. */
#include "unit/test.h"

#include <string.h>

#include "base/err.h"

static void set_stores_code_and_message(void **state) {
    (void)state;
    struct err e = { 0 };
    assert_int_equal(err_set(&e, RC_FORMAT, "%s: %d bytes", "m.gguf", 7), RC_FORMAT);
    assert_int_equal(e.rc, RC_FORMAT);
    assert_string_equal(e.msg, "m.gguf: 7 bytes");
}

static void set_without_a_reader_only_returns_the_code(void **state) {
    (void)state;
    assert_int_equal(err_set(NULL, RC_IO, "nobody reads this"), RC_IO);
}

static void long_message_is_cut_and_terminated(void **state) {
    (void)state;
    struct err e = { 0 };
    char long_text[2 * sizeof e.msg];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    err_set(&e, RC_RANGE, "%s", long_text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    err_prefix(&e, "file");
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    assert_memory_equal(e.msg, "file: xxx", 9);
}

static void prefix_stands_before_the_message_and_keeps_the_code(void **state) {
    (void)state;
    struct err e = { 0 };
    err_set(&e, RC_RANGE, "offset 9 past end 8");
    assert_int_equal(err_prefix(&e, "tensor '%s'", "wq"), RC_RANGE);
    assert_string_equal(e.msg, "tensor 'wq': offset 9 past end 8");
}

static void every_code_has_its_name(void **state) {
    (void)state;
    assert_string_equal(rc_name(RC_OK), "RC_OK");
    assert_string_equal(rc_name(RC_REFUSED), "RC_REFUSED");
    assert_string_equal(rc_name((enum rc)1000), "RC_?");
    for (int rc = RC_OK; rc <= RC_BUSY; rc++)
        assert_string_not_equal(rc_name((enum rc)rc), "RC_?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_stores_code_and_message),
        cmocka_unit_test(set_without_a_reader_only_returns_the_code),
        cmocka_unit_test(long_message_is_cut_and_terminated),
        cmocka_unit_test(prefix_stands_before_the_message_and_keeps_the_code),
        cmocka_unit_test(every_code_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
