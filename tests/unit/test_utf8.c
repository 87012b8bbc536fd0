/* UTF-8: strict decoding, and output that arrives in pieces. */
#include "unit/test.h"

#include <string.h>

#include "model/tokenizer/utf8.h"

static void every_scalar_value_survives_encoding_and_decoding(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char bytes[4];
        uint32_t back = 0;
        size_t n = utf8_encode(cp, bytes);
        size_t expected = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, expected);
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            assert_int_equal(utf8_decode(bytes, n, &back), 0);
            continue;
        }
        assert_int_equal(utf8_decode(bytes, n, &back), n);
        assert_int_equal(back, cp);
        if (n > 1)
            assert_int_equal(utf8_decode(bytes, n - 1, &back), 0);
    }
}

static void malformed_sequences_are_no_characters(void **state) {
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3\x28",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xE2\x28\xA1",
        "\xE2\x82\x28",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80",
        "\xFE",
        "\xFF",
    };
    uint32_t cp;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &cp), 0);
    assert_int_equal(utf8_decode("", 0, &cp), 0);
}

static size_t stream(const char *in, size_t len, size_t cut, char *out) {
    struct utf8_stream s = { 0 };
    size_t n = utf8_stream_push(&s, in, cut, out);
    n += utf8_stream_push(&s, in + cut, len - cut, out + n);
    return n + utf8_stream_flush(&s, out + n);
}

/* Input and what must come out of it, however it is cut. */
static const char *const streams[][2] = {
    { "plain", "plain" },
    { "h\xC3\xA9llo \xE2\x82\xAC \xF0\x9F\x98\x80!",
      "h\xC3\xA9llo \xE2\x82\xAC \xF0\x9F\x98\x80!" },
    /* a beginning that is not completed is one U+FFFD, however long it got */
    { "\xF0\x9F\x98x", "\xEF\xBF\xBDx" },
    { "\xE2\x82", "\xEF\xBF\xBD" },
    { "\xE2\x82\xE2\x82\xAC", "\xEF\xBF\xBD\xE2\x82\xAC" },
    /* bytes that cannot begin anything are one each */
    { "\x80\xFF!", "\xEF\xBF\xBD\xEF\xBF\xBD!" },
    { "\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD" },
    { "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
    { "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
};

static void a_stream_gives_the_same_wherever_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        const char *in = streams[i][0], *expected = streams[i][1];
        for (size_t cut = 0; cut <= strlen(in); cut++) {
            char out[128];
            size_t n = stream(in, strlen(in), cut, out);
            assert_int_equal(n, strlen(expected));
            assert_memory_equal(out, expected, n);
        }
    }
}

static void a_stream_writes_a_character_as_soon_as_it_is_whole(void **state) {
    (void)state;
    struct utf8_stream s = { 0 };
    char out[16];
    assert_int_equal(utf8_stream_push(&s, "\xF0", 1, out), 0);
    assert_int_equal(utf8_stream_push(&s, "\x9F", 1, out), 0);
    assert_int_equal(utf8_stream_push(&s, "\x98", 1, out), 0);
    assert_int_equal(utf8_stream_push(&s, "\x80", 1, out), 4);
    assert_memory_equal(out, "\xF0\x9F\x98\x80", 4);
    assert_int_equal(utf8_stream_flush(&s, out), 0);
}

static void a_stream_stays_within_its_room(void **state) {
    (void)state;
    struct utf8_stream s = { 0 };
    char out[UTF8_STREAM_ROOM(1)];
    for (unsigned b = 0; b < 65536; b++) {
        char pair[2] = { (char)(b >> 8), (char)b };
        s = (struct utf8_stream){ 0 };
        assert_true(utf8_stream_push(&s, pair, 1, out) <= UTF8_STREAM_ROOM(1));
        assert_true(utf8_stream_push(&s, pair + 1, 1, out) <= UTF8_STREAM_ROOM(1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_value_survives_encoding_and_decoding),
        cmocka_unit_test(malformed_sequences_are_no_characters),
        cmocka_unit_test(a_stream_gives_the_same_wherever_it_is_cut),
        cmocka_unit_test(a_stream_writes_a_character_as_soon_as_it_is_whole),
        cmocka_unit_test(a_stream_stays_within_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
