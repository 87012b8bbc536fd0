/* Sentences and rows: both languages say the same, singular and plural agree, nothing is cut. */
#include <string.h>

#include "unit/test.h"
#include "verdict/verdict.h"

static struct arena A;

static int teardown(void **state) {
    (void)state;
    arena_clear(&A);
    return 0;
}

static const char *say(enum lang lang, const struct sentence *s) {
    static char text[400];
    return sentence_format(lang, s, text, sizeof text);
}

/* Is "name" among the comma-separated names? */
static bool is_named(const char *names, const char *name, size_t length) {
    while (*names) {
        size_t n = strcspn(names, ",");
        if (n == length && !memcmp(names, name, n))
            return true;
        names += n + (names[n] == ',');
    }
    return false;
}

static bool uses(const char *form, const char *name, size_t length) {
    for (const char *at = form; (at = strchr(at, '{')); at++)
        if (!strncmp(at + 1, name, length) && strchr("}?", at[1 + length]))
            return true;
    return false;
}

static void both_languages_use_every_value_and_no_other(void **state) {
    (void)state;
    for (int i = 0; i < SENTENCE_COUNT; i++)
        for (int lang = 0; lang < LANG_COUNT; lang++) {
            enum sentence_id id = (enum sentence_id)i;
            const char *names = sentence_names(id), *form = sentence_template((enum lang)lang, id);
            for (const char *n = names; *n; n += strcspn(n, ",") + (n[strcspn(n, ",")] == ','))
                if (!uses(form, n, strcspn(n, ",")))
                    fail_msg("%s does not use %s: %s", sentence_name(id), n, form);
            for (const char *at = form; (at = strchr(at, '{')); at++)
                if (!is_named(names, at + 1, strcspn(at + 1, "?}")))
                    fail_msg("%s has a value without a name: %s", sentence_name(id), at);
        }
}

static void braces_and_choices_are_whole(void **state) {
    (void)state;
    for (int i = 0; i < SENTENCE_COUNT; i++)
        for (int lang = 0; lang < LANG_COUNT; lang++) {
            const char *form = sentence_template((enum lang)lang, (enum sentence_id)i);
            int depth = 0, choices = 0, bars = 0;
            for (const char *c = form; *c; c++) {
                depth += (*c == '{') - (*c == '}');
                choices += depth && *c == '?';
                bars += depth && *c == '|';
                assert_in_range(depth, 0, 2);
            }
            assert_int_equal(depth, 0);
            assert_int_equal(choices, bars);
        }
}

static void values_are_written_by_their_type(void **state) {
    (void)state;
    const struct sentence *call = SAY(&A, CALL_KERNEL, A_NAME("rope"), A_NUMBER(7));
    const struct sentence *s =
        SAY(&A, PAST_END, A_SENTENCE(call), A_SENTENCE(sentence_plain(SENTENCE_READS)), A_BYTES(4),
            A_NUMBER(0), A_SENTENCE(SAY(&A, MEMORY_TENSOR, A_NAME("pos"), A_BYTES(2))), A_BYTES(2));
    assert_string_equal(say(LANG_EN, s),
                        "kernel rope (event 7) reads 4 bytes at offset 0 of tensor "
                        "pos (2 bytes): 2 bytes past its end");
    assert_string_equal(say(LANG_ES, s),
                        "kernel rope (evento 7) lee 4 bytes en el desplazamiento 0 de tensor pos "
                        "(2 bytes): 2 bytes más allá de su final");
    s = SAY(&A, FREES_NEVER_ALLOCATED, A_SENTENCE(SAY(&A, CALL, A_NAME("hipFree"), A_NUMBER(3))),
            AN_ADDRESS(0x7f00));
    assert_string_equal(say(LANG_EN, s),
                        "hipFree (event 3) frees an address that was never allocated: 0x7f00");
}

static void singular_and_plural_agree(void **state) {
    (void)state;
    assert_string_equal(say(LANG_EN, SAY(&A, PAIRS_BY_TIME, A_NUMBER(1))),
                        "1 pair of operations is ordered only by when the program's threads "
                        "happened to run");
    assert_non_null(strstr(say(LANG_EN, SAY(&A, PAIRS_BY_TIME, A_NUMBER(2))), "2 pairs of "
                                                                              "operations are "));
    assert_non_null(strstr(say(LANG_ES, SAY(&A, PAIRS_BY_TIME, A_NUMBER(1))), "1 par de "
                                                                              "operaciones está "));
    char text[160];
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        for (int lang = 0; lang < LANG_COUNT; lang++) {
            const char *form =
                hypothesis_words((enum lang)lang, (enum verdict_hypothesis_id)i)->counted;
            char one[160];
            sentence_count(form, 1, one, sizeof one);
            sentence_count(form, 2, text, sizeof text);
            assert_int_equal(strncmp(one, "1 ", 2), 0);
            assert_int_equal(strncmp(text, "2 ", 2), 0);
            assert_string_not_equal(one + 1, text + 1);
            assert_null(strpbrk(one, "{}|"));
        }
}

static void every_row_is_whole_in_both_languages(void **state) {
    (void)state;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_words *en =
                                          hypothesis_words(LANG_EN, (enum verdict_hypothesis_id)i),
                                      *es =
                                          hypothesis_words(LANG_ES, (enum verdict_hypothesis_id)i);
        const char *const columns[][2] = {
            { en->question, es->question }, { en->confirms, es->confirms },
            { en->refutes, es->refutes },   { en->counted, es->counted },
            { en->absent, es->absent },     { en->advice, es->advice },
        };
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            assert_true(columns[k][0] && *columns[k][0] && columns[k][1] && *columns[k][1]);
            assert_string_not_equal(columns[k][0], columns[k][1]);
        }
        assert_int_equal(en->question[strlen(en->question) - 1], '?');
        assert_int_equal(strncmp(es->question, "¿", 2), 0);
        assert_int_equal(en->advice[strlen(en->advice) - 1], '.');
    }
}

static void what_is_kept_outlives_its_names(void **state) {
    (void)state;
    struct arena first = { 0 };
    char name[] = "rope";
    const struct sentence *s = SAY(&first, CALL_KERNEL, A_NAME(name), A_NUMBER(7));
    const struct sentence *kept = sentence_keep(&A, s);
    assert_true(sentence_same(s, kept));
    memcpy(name, "????", 4);
    assert_false(sentence_same(s, kept));
    arena_clear(&first);
    assert_string_equal(sentence_text(LANG_EN, kept), "kernel rope (event 7)");
    assert_string_equal(sentence_text(LANG_ES, kept), "kernel rope (evento 7)");
    assert_string_equal(kept->value[0].name, "rope");
}

static void a_small_buffer_cuts(void **state) {
    (void)state;
    char text[8];
    memset(text, 'x', sizeof text);
    sentence_format(LANG_EN, SAY(&A, CALL_KERNEL, A_NAME("rope"), A_NUMBER(7)), text, sizeof text);
    assert_true(strlen(text) < sizeof text);
    assert_int_equal(strncmp(text, "kernel", 6), 0);
    assert_string_equal(sentence_format(LANG_EN, NULL, text, sizeof text), "");
}

static void braces_in_names_stay(void **state) {
    (void)state;
    assert_string_equal(say(LANG_EN, SAY(&A, KERNEL_NAMED, A_NAME("f<{x?a|b}>"))),
                        "kernel f<{x?a|b}>");
}

static void bytes_are_exact(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = { { 0, "0 bytes" },       { 1, "1 byte" },     { 2, "2 bytes" },
                  { 1024, "1024 bytes" }, { 4096, "4 KiB" },   { 4097, "4097 bytes" },
                  { 8 << 20, "8 MiB" },   { 1 << 30, "1 GiB" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        assert_string_equal(sentence_bytes(cases[i].bytes, text, sizeof text), cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_languages_use_every_value_and_no_other),
        cmocka_unit_test(braces_and_choices_are_whole),
        cmocka_unit_test_teardown(values_are_written_by_their_type, teardown),
        cmocka_unit_test_teardown(singular_and_plural_agree, teardown),
        cmocka_unit_test(every_row_is_whole_in_both_languages),
        cmocka_unit_test_teardown(what_is_kept_outlives_its_names, teardown),
        cmocka_unit_test_teardown(a_small_buffer_cuts, teardown),
        cmocka_unit_test_teardown(braces_in_names_stay, teardown),
        cmocka_unit_test(bytes_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
