/* JSON as it comes out: nesting, escapes, numbers. */
#include "unit/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

static char *text;
static size_t text_len;

static struct json start(int indent) {
    FILE *f = open_memstream(&text, &text_len);
    assert_non_null(f);
    return json_begin(f, indent);
}

static void expect(struct json *j, const char *wanted) {
    assert_int_equal(json_end(j, NULL), RC_OK);
    fclose(j->out);
    assert_string_equal(text, wanted);
    free(text);
}

static void nested_values_on_one_line(void **state) {
    (void)state;
    struct json j = start(0);
    json_object_open(&j, NULL);
    json_string(&j, "verdict", "CLEAN");
    json_array_open(&j, "events");
    json_u64(&j, NULL, UINT64_MAX);
    json_i64(&j, NULL, INT64_MIN);
    json_object_open(&j, NULL);
    json_object_close(&j);
    json_array_open(&j, NULL);
    json_array_close(&j);
    json_array_close(&j);
    json_bool(&j, "yes", true);
    json_bool(&j, "no", false);
    json_null(&j, "culprit");
    json_string(&j, "site", NULL);
    json_format(&j, "address", "0x%x", 4096);
    json_object_close(&j);
    expect(&j, "{\"verdict\": \"CLEAN\", \"events\": [18446744073709551615, "
               "-9223372036854775808, {}, []], \"yes\": true, \"no\": false, \"culprit\": null, "
               "\"site\": null, \"address\": \"0x1000\"}\n");
}

static void indentation_follows_the_nesting(void **state) {
    (void)state;
    struct json j = start(2);
    json_object_open(&j, NULL);
    json_array_open(&j, "a");
    json_u64(&j, NULL, 1);
    json_u64(&j, NULL, 2);
    json_array_close(&j);
    json_object_open(&j, "o");
    json_object_close(&j);
    json_object_close(&j);
    expect(&j, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"o\": {}\n}\n");
}

static void special_characters_are_escaped(void **state) {
    (void)state;
    struct json j = start(0);
    json_text(&j, NULL, "q\" b\\ n\n t\t z\0 e\x1b d\x7f", 20);
    expect(&j, "\"q\\\" b\\\\ n\\n t\\t z\\u0000 e\\u001b d\\u007f\"\n");
}

static void utf8_passes_and_what_is_not_is_replaced(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\n" },
        { "a\xff", "\"a\xef\xbf\xbd\"\n" },                               /* no lead byte */
        { "\xc3", "\"\xef\xbf\xbd\"\n" },                                 /* cut off */
        { "\xc3(", "\"\xef\xbf\xbd(\"\n" },                               /* no continuation */
        { "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"\n" },                 /* overlong */
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n" }, /* surrogate */
        { "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json j = start(0);
        json_string(&j, NULL, cases[i].in);
        expect(&j, cases[i].out);
    }
}

static void doubles_are_short_and_read_back_exactly(void **state) {
    (void)state;
    struct json j = start(0);
    json_array_open(&j, NULL);
    json_double(&j, NULL, 0.1);
    json_double(&j, NULL, 1.0 / 3.0);
    json_double(&j, NULL, -2.5e300);
    json_double(&j, NULL, 3);
    json_double(&j, NULL, NAN);
    json_double(&j, NULL, INFINITY);
    json_array_close(&j);
    expect(&j, "[0.1, 0.3333333333333333, -2.5e+300, 3, null, null]\n");
}

static void failed_stream_is_reported(void **state) {
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    assert_non_null(f);
    struct json j = json_begin(f, 0);
    json_string(&j, NULL, "no room");
    assert_int_equal(json_end(&j, NULL), RC_IO);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_values_on_one_line),
        cmocka_unit_test(indentation_follows_the_nesting),
        cmocka_unit_test(special_characters_are_escaped),
        cmocka_unit_test(utf8_passes_and_what_is_not_is_replaced),
        cmocka_unit_test(doubles_are_short_and_read_back_exactly),
        cmocka_unit_test(failed_stream_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
