/* What a terminal would obey, or could not show, becomes question marks; other text stays. */
#include <string.h>

#include "base/err.h"
#include "base/printable.h"
#include "unit/test.h"

static void expect(const char *in, const char *out) {
    char text[64];
    assert_true(strlen(in) < sizeof text);
    strcpy(text, in);
    printable_scrub(text, strlen(text));
    assert_string_equal(text, out);
}

static void text_stays(void **state) {
    (void)state;
    expect("", "");
    expect("blk.0.attn_q.weight\n\tgrün 日本語 🙂",
           "blk.0.attn_q.weight\n\tgrün 日本語 🙂");
}

static void controls_are_replaced(void **state) {
    (void)state;
    expect("\x1b[2Jgone\x07\r", "?[2Jgone??");
    expect("a\x7f\x01", "a??");
    expect("\xc2\x9b"
           "31m",
           "??31m"); /* C1: CSI in one character */
    expect("x\xe2\x80\xae"
           "evil",
           "x???evil"); /* from right to left */
    expect("x\xe2\x81\xa6y", "x???y");
}

static void what_is_no_text_is_replaced(void **state) {
    (void)state;
    expect("\xff\xfe", "??");
    expect("\xc3", "?");                /* cut */
    expect("\xc0\xaf", "??");           /* longer than needed */
    expect("\xed\xa0\x80", "???");      /* half of a pair */
    expect("\xf4\x90\x80\x80", "????"); /* past the last character */
    expect("\x9b"
           "31m",
           "?31m");
}

static void ascii_may_be_left_to_others(void **state) {
    (void)state;
    char text[] = "\x1b[1m\xc2\x9b\xff";
    printable_scrub_wide(text, strlen(text));
    assert_string_equal(text, "\x1b[1m???");
}

static void messages_are_scrubbed(void **state) {
    (void)state;
    struct err e = { 0 };
    assert_int_equal(err_set(&e, RC_FORMAT, "tensor '%s'", "\x1b]0;pwned\x07"), RC_FORMAT);
    assert_string_equal(e.msg, "tensor '?]0;pwned?'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays),
        cmocka_unit_test(controls_are_replaced),
        cmocka_unit_test(what_is_no_text_is_replaced),
        cmocka_unit_test(ascii_may_be_left_to_others),
        cmocka_unit_test(messages_are_scrubbed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
