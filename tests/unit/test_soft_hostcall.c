/* printf messages of kernels: how their parts come together, and what is printed. */
#include "test.h"

#include "soft/runtime/hostcall/hostcall.h"

#include <stdlib.h>
#include <string.h>

/* A message in words: a format and up to four arguments, each a word. */
struct message {
    uint64_t words[64];
    size_t count;
};

static void add_text(struct message *m, const char *text) {
    memcpy(&m->words[m->count], text, strlen(text) + 1);
    m->count += strlen(text) / 8 + 1;
}

static void add_word(struct message *m, uint64_t word) {
    m->words[m->count++] = word;
}

static void add_double(struct message *m, double d) {
    uint64_t word;
    memcpy(&word, &d, sizeof word);
    add_word(m, word);
}

static void expect(const struct message *m, const char *text) {
    char *got = NULL;
    size_t size;
    FILE *f = open_memstream(&got, &size);
    int n = hostcall_format(f, m->words, m->count);
    fclose(f);
    assert_string_equal(got, text);
    assert_int_equal(n, strlen(text));
    free(got);
}

static void integers_are_cut_to_their_length(void **state) {
    (void)state;
    struct message m = { .count = 0 };
    add_text(&m, "%d %u %lld %hd %hhu %x");
    add_word(&m, UINT64_C(0xffffffff));
    add_word(&m, UINT64_C(0x1ffffffff));
    add_word(&m, UINT64_MAX);
    add_word(&m, 0x18000);
    add_word(&m, 0x1ff);
    add_word(&m, 0xabc);
    expect(&m, "-1 4294967295 -1 -32768 255 abc");
}

static void width_and_precision_may_be_arguments(void **state) {
    (void)state;
    struct message m = { .count = 0 };
    add_text(&m, "%*d|%-*d|%.*f|%8.3e|%05d");
    add_word(&m, 5);
    add_word(&m, 7);
    add_word(&m, 4);
    add_word(&m, 8);
    add_word(&m, 2);
    add_double(&m, 1.005);
    add_double(&m, 12345.678);
    add_word(&m, 42);
    expect(&m, "    7|8   |1.00|1.235e+04|00042");
}

static void strings_take_as_many_words_as_they_are_long(void **state) {
    (void)state;
    struct message m = { .count = 0 };
    add_text(&m, "%.3s|%s|%10s|%c%%");
    add_text(&m, "longer than it is printed");
    add_text(&m, "");
    add_text(&m, "12345678");
    add_word(&m, '!');
    expect(&m, "lon||  12345678|!%");
}

static void percent_signs_have_no_width(void **state) {
    (void)state;
    struct message m = { .count = 0 };
    char glibc[64];
    const char *format = "%% %5% %-08% %.3% %l% %*% %d%%";
    add_text(&m, format);
    add_word(&m, 12);
    add_word(&m, 7);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(glibc, sizeof glibc, format, 12, 7);
#pragma GCC diagnostic pop
    assert_string_equal(glibc, "% % % % % % 7%");
    expect(&m, glibc);
}

static void missing_arguments_and_unknown_conversions_are_harmless(void **state) {
    (void)state;
    struct message m = { .count = 0 };
    add_text(&m, "%d %s %n%y %");
    add_word(&m, 3);
    expect(&m, "3  %y ");
}

enum { BEGIN = 1, END = 2, ONE_WORD = 1 << 5, TWO_WORDS = 2 << 5 };

static void parts_of_two_messages_do_not_mix(void **state) {
    (void)state;
    uint64_t a[8] = { BEGIN | ONE_WORD, 1 }, b[8] = { BEGIN | ONE_WORD, 1 };
    hostcall_message(a);
    hostcall_message(b);
    assert_int_not_equal(a[0] >> 8, b[0] >> 8);
    assert_int_equal(a[0] & BEGIN, 0);
    memcpy(&a[1], "%d\n", 4);
    memcpy(&b[1], "none\n", 6);
    a[0] = (a[0] >> 8 << 8) | TWO_WORDS | END;
    a[2] = 12345;
    b[0] = (b[0] >> 8 << 8) | ONE_WORD | END;
    hostcall_message(a);
    hostcall_message(b);
    assert_int_equal(a[0], strlen("12345\n"));
    assert_int_equal(b[0], strlen("none\n"));
}

static void a_part_of_no_message_is_refused(void **state) {
    (void)state;
    uint64_t words[8] = { UINT64_C(77) << 8 | END };
    hostcall_message(words);
    assert_int_equal(words[0], UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_cut_to_their_length),
        cmocka_unit_test(width_and_precision_may_be_arguments),
        cmocka_unit_test(strings_take_as_many_words_as_they_are_long),
        cmocka_unit_test(percent_signs_have_no_width),
        cmocka_unit_test(missing_arguments_and_unknown_conversions_are_harmless),
        cmocka_unit_test(parts_of_two_messages_do_not_mix),
        cmocka_unit_test(a_part_of_no_message_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
