/* Numbers of bytes for people. */
#include "unit/test.h"

#include <string.h>

#include "base/bytes.h"

static void every_unit_begins_at_1024_of_the_last(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.00 KiB" },
        { 1536, "1.50 KiB" },
        { 1 << 20, "1.00 MiB" },
        { 5ull << 29, "2.50 GiB" },
        { 1ull << 40, "1.00 TiB" },
        { UINT64_MAX, "16777216.00 TiB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[BYTES_TEXT];
        bytes_format(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_begins_at_1024_of_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
