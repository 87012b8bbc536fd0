/* Environment variables as numbers, switches and strings. */
#include "unit/test.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/env.h"

static void numbers_with_and_without_suffix(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        { "0", 0 },
        { "4096", 4096 },
        { "010", 10 }, /* decimal, not octal */
        { "0x1F", 31 },
        { "64k", 64u << 10 },
        { "64K", 64u << 10 },
        { "3M", 3u << 20 },
        { "2GiB", 2ull << 30 },
        { "1tb", 1ull << 40 },
        { "18446744073709551615", UINT64_MAX },
        { "16777215T", 16777215ull << 40 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = 7;
        assert_true(env_parse_u64(cases[i].text, &v));
        assert_int_equal(v, cases[i].value);
    }
}

static void what_is_not_a_number_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = { "",         "-1",  "+1",    " 1",   "1 ",
                                       "x",        "0x",  "1.5G",  "1KK",  "1Q",
                                       "12ab",     "1ib", "0x-12", "1KiC", "18446744073709551616",
                                       "16777216T" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t v = 7;
        if (env_parse_u64(bad[i], &v))
            fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)v);
        assert_int_equal(v, 7);
    }
}

static void switches(void **state) {
    (void)state;
    static const char *const yes[] = { "1", "on", "Yes", "TRUE", "2", "0x10" };
    static const char *const no[] = { "0", "off", "No", "FALSE", "0x0" };
    bool v;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        v = false;
        assert_true(env_parse_bool(yes[i], &v) && v);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        v = true;
        assert_true(env_parse_bool(no[i], &v) && !v);
    }
    assert_false(env_parse_bool("maybe", &v));
}

static void unset_and_empty_mean_the_default(void **state) {
    (void)state;
    unsetenv("GRETA_TEST_ENV");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(env_get_u64("GRETA_TEST_ENV", 5), 5);
        assert_true(env_get_bool("GRETA_TEST_ENV", true));
        assert_string_equal(env_get_str("GRETA_TEST_ENV", "d"), "d");
        setenv("GRETA_TEST_ENV", "", 1);
    }
}

static void set_value_wins_over_the_default(void **state) {
    (void)state;
    setenv("GRETA_TEST_ENV", "2K", 1);
    assert_int_equal(env_get_u64("GRETA_TEST_ENV", 5), 2048);
    assert_true(env_get_bool("GRETA_TEST_ENV", false));
    assert_string_equal(env_get_str("GRETA_TEST_ENV", "d"), "2K");
}

static void strict_read_names_variable_and_value(void **state) {
    (void)state;
    struct err e = { 0 };
    uint64_t number = 9;
    bool flag = true;
    setenv("GRETA_TEST_ENV", "lots", 1);
    assert_int_equal(env_read_u64("GRETA_TEST_ENV", 5, &number, &e), RC_USAGE);
    assert_int_equal(number, 9);
    assert_string_equal(e.msg,
                        "GRETA_TEST_ENV='lots': expected a number such as 4096, 0x1000 or 64M");
    assert_int_equal(env_read_bool("GRETA_TEST_ENV", false, &flag, &e), RC_USAGE);
    assert_true(flag);
    assert_string_equal(e.msg, "GRETA_TEST_ENV='lots': expected 0 or 1");
    assert_int_equal(env_get_u64("GRETA_TEST_ENV", 5), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_and_without_suffix),
        cmocka_unit_test(what_is_not_a_number_is_refused),
        cmocka_unit_test(switches),
        cmocka_unit_test(unset_and_empty_mean_the_default),
        cmocka_unit_test(set_value_wins_over_the_default),
        cmocka_unit_test(strict_read_names_variable_and_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
