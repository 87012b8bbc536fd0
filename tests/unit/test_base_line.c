/* Lines put together by hand read as printf() would write them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/line.h"
#include "unit/test.h"

static void numbers_read_as_printf_writes_them(void **state) {
    (void)state;
    static const uint64_t values[] = {
        0, 1, 9, 10, 99, 1000000, UINT32_MAX, INT64_MAX, UINT64_MAX
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[256], expected[256];
        struct line l = { .text = text, .size = sizeof text };
        line_add_u64(&l, values[i], 1);
        line_add(&l, " ");
        line_add_u64(&l, values[i], 6);
        line_add(&l, " ");
        line_add_i64(&l, (int64_t)values[i]);
        line_add(&l, " ");
        line_add_hex(&l, values[i]);
        snprintf(expected, sizeof expected, "%" PRIu64 " %06" PRIu64 " %" PRId64 " 0x%" PRIx64,
                 values[i], values[i], (int64_t)values[i], values[i]);
        assert_int_equal(l.used, strlen(expected));
        assert_memory_equal(text, expected, l.used);
    }
}

static void what_does_not_fit_is_left_out(void **state) {
    (void)state;
    char text[8] = "-------";
    struct line l = { .text = text, .size = 5 };
    line_add(&l, "abc");
    line_add_u64(&l, 1234, 1);
    assert_int_equal(l.used, 5);
    assert_memory_equal(text, "abc12--", 7);
    line_add(&l, "more");
    assert_int_equal(l.used, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_as_printf_writes_them),
        cmocka_unit_test(what_does_not_fit_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
