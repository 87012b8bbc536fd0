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

static void unset_and_empty_mean_the_fallback(void **state) {
    (void)state;
    struct err e = { 0 };
    unsetenv("GRETA_SOFT_DEVICES");
    unsetenv("GRETA_SOFT_PIN");
    unsetenv("GRETA_SOFT_FAULT");
    unsetenv("GRETA_SOFT_MEMORY");
    for (int i = 0; i < 2; i++) {
        uint64_t devices = 7, memory = 7;
        assert_int_equal(env_read_number(ENV_GRETA_SOFT_DEVICES, &devices, &e), RC_OK);
        assert_int_equal(devices, 1);
        assert_true(env_flag(ENV_GRETA_SOFT_PIN));
        assert_string_equal(env_text(ENV_GRETA_SOFT_FAULT), "sticky");
        assert_int_equal(env_read_number(ENV_GRETA_SOFT_MEMORY, &memory, &e), RC_OK);
        assert_int_equal(memory, 7); /* no fallback: the caller's */
        assert_null(env_text(ENV_GCORE_RECORD_JOIN));
        setenv("GRETA_SOFT_DEVICES", "", 1);
        setenv("GRETA_SOFT_PIN", "", 1);
        setenv("GRETA_SOFT_FAULT", "", 1);
        setenv("GRETA_SOFT_MEMORY", "", 1);
    }
}

static void set_value_wins_over_the_fallback(void **state) {
    (void)state;
    struct err e = { 0 };
    uint64_t memory = 0;
    setenv("GRETA_SOFT_MEMORY", "2M", 1);
    assert_int_equal(env_read_number(ENV_GRETA_SOFT_MEMORY, &memory, &e), RC_OK);
    assert_int_equal(memory, 2 << 20);
    setenv("GRETA_SOFT_PIN", "off", 1);
    assert_false(env_flag(ENV_GRETA_SOFT_PIN));
    setenv("GRETA_SOFT_FAULT", "abort", 1);
    assert_string_equal(env_text(ENV_GRETA_SOFT_FAULT), "abort");
}

static void strict_read_names_variable_value_and_range(void **state) {
    (void)state;
    struct err e = { 0 };
    uint64_t number = 9;
    bool flag = true;
    setenv("GRETA_SOFT_DEVICES", "lots", 1);
    assert_int_equal(env_read_number(ENV_GRETA_SOFT_DEVICES, &number, &e), RC_USAGE);
    assert_string_equal(e.msg,
                        "GRETA_SOFT_DEVICES='lots': expected a number such as 4096, 0x1000 or 64M");
    setenv("GRETA_SOFT_DEVICES", "17", 1);
    assert_int_equal(env_read_number(ENV_GRETA_SOFT_DEVICES, &number, &e), RC_USAGE);
    assert_string_equal(e.msg, "GRETA_SOFT_DEVICES: expected 1 to 16, found '17'");
    assert_int_equal(number, 9);
    setenv("GRETA_SOFT_PIN", "lots", 1);
    assert_int_equal(env_read_flag(ENV_GRETA_SOFT_PIN, &flag, &e), RC_USAGE);
    assert_true(flag);
    assert_string_equal(e.msg, "GRETA_SOFT_PIN='lots': expected 0 or 1");
    assert_true(env_flag(ENV_GRETA_SOFT_PIN));
}

static void a_misspelt_variable_is_named_with_the_one_meant(void **state) {
    (void)state;
    struct err e = { 0 };
    assert_int_equal(env_refuse_unknown("GRETA_SOFT_", &e), RC_OK);
    setenv("GRETA_SOFT_CHECKED", "0", 1);
    assert_int_equal(env_refuse_unknown("GRETA_SOFT_", &e), RC_USAGE);
    assert_string_equal(e.msg, "GRETA_SOFT_CHECKED=0: there is no such setting; the nearest is "
                               "GRETA_SOFT_CHECK (auto, off, bounds, init, race, all)");
    unsetenv("GRETA_SOFT_CHECKED");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_and_without_suffix),
        cmocka_unit_test(what_is_not_a_number_is_refused),
        cmocka_unit_test(switches),
        cmocka_unit_test(unset_and_empty_mean_the_fallback),
        cmocka_unit_test(set_value_wins_over_the_fallback),
        cmocka_unit_test(strict_read_names_variable_value_and_range),
        cmocka_unit_test(a_misspelt_variable_is_named_with_the_one_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
