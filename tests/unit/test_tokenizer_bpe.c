/* Byte-level BPE on a vocabulary worked out by hand, and the ways to cut a text into words. */
#include "unit/test_tokenizer_tiny.h"

#include "model/tokenizer/tokenizer_pre.h"

static struct tiny tiny;

static tokenizer *open_bpe(const char *pre) {
    tiny_bpe(&tiny, pre);
    return tiny_open(&tiny);
}

/* The ids that tiny_bpe() gives to what its merges make. */
enum { HE = 256, LL, HELL, HELLO, SP_HELLO };

static void merges_follow_their_order(void **state) {
    (void)state;
    tokenizer *t = open_bpe("gpt-2");
    assert_ids(t, "hello", 0, "259");
    assert_ids(t, " hello hello", 0, "260 260");
    assert_ids(t, "hel", 0, "256 108");
    assert_ids(t, "lll", 0, "257 108");
    assert_ids(t, "", 0, "");
    tokenizer_close(&t);
}

static void bytes_are_spelt_in_the_alphabet(void **state) {
    (void)state;
    tokenizer *t = open_bpe("gpt-2");
    char ids[64];
    assert_ids(t, "\xC3\xA9\n", 0, "195 169 10");
    assert_ids(t, "\xF0\x9F\x98\x80", 0, "240 159 152 128");
    assert_string_equal(tiny_ids(t, "\0\x7F", 2, 0, ids, sizeof ids), "0 127");
    tokenizer_close(&t);
}

static void what_is_not_utf8_becomes_a_replacement_character(void **state) {
    (void)state;
    tokenizer *t = open_bpe("gpt-2");
    assert_ids(t, "\xFF", 0, "239 191 189");
    assert_ids(t, "\xE2\x82", 0, "239 191 189 239 191 189");
    assert_ids(t, "\xC1\x81", 0, "65");              /* overlong: the character it means */
    assert_ids(t, "\xED\xA0\x80", 0, "237 160 128"); /* a surrogate stays */
    assert_ids(t, "\xF4\x90\x80\x80", 0,
               "239 191 189 239 191 189 239 191 189 239 191 189"); /* past U+10FFFF */
    tokenizer_close(&t);
}

/* "oo" is in the merge list, but no token: it falls apart again. */
static void a_merge_that_makes_no_token_is_spelt(void **state) {
    (void)state;
    tokenizer *t = open_bpe("gpt-2");
    assert_ids(t, "oo", 0, "111 111");
    assert_ids(t, "helloo", 0, "259 111");
    assert_ids(t, "ooo", 0, "111 111 111");
    tokenizer_close(&t);
}

static void bytes_that_the_vocabulary_lacks_are_dropped(void **state) {
    (void)state;
    tiny_init(&tiny, "gpt2", "gpt-2");
    tiny_add(&tiny, "a", VOCAB_NORMAL, 0);
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "abba", 0, "0 0");
    tokenizer_close(&t);
}

static void a_word_that_is_a_token_may_ignore_the_merges(void **state) {
    (void)state;
    tiny_bpe(&tiny, "gpt-2");
    int32_t word = tiny_add(&tiny, "lhe", VOCAB_NORMAL, 0); /* the merges never make it */
    assert_int_equal(word, 261);
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "lhe", 0, "108 256");
    tokenizer_close(&t);
    tiny.source.pre = tiny_string("llama-bpe");
    t = tiny_open(&tiny);
    assert_ids(t, "lhe", 0, "261");
    assert_ids(t, "lhel", 0, "108 256 108");
    tokenizer_close(&t);
}

static void the_first_of_two_equal_merges_counts(void **state) {
    (void)state;
    tiny_init(&tiny, "gpt2", "gpt-2");
    static const char *const texts[] = { "a", "b", "c", "ab", "bc" };
    for (size_t i = 0; i < 5; i++)
        tiny_add(&tiny, texts[i], VOCAB_NORMAL, 0);
    tiny_merge(&tiny, "a b");
    tiny_merge(&tiny, "b c");
    tiny_merge(&tiny, "a b");
    tiny_merge(&tiny, "nonsense");
    tiny_merge(&tiny, "");
    tiny_merge(&tiny, "x ");
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "abc", 0, "3 2");
    tokenizer_close(&t);
}

static void special_tokens_cut_the_text(void **state) {
    (void)state;
    tiny_bpe(&tiny, "llama-bpe");
    int32_t bos = tiny_add(&tiny, "<|begin_of_text|>", VOCAB_CONTROL, 0);
    int32_t eot = tiny_add(&tiny, "<|eot_id|>", VOCAB_CONTROL, 0);
    tiny.source.bos = bos;
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(eot, 262);
    assert_int_equal(tokenizer_eot(t), eot);
    assert_ids(t, "hello<|eot_id|>hello", TOKENIZER_PARSE_SPECIAL, "259 262 259");
    assert_ids(t, "hello", TOKENIZER_ADD_SPECIAL, "261 259"); /* llama-bpe adds BOS by default */
    assert_ids(t, "<|eot_id|>", 0, "60 124 101 111 116 95 105 100 124 62");
    assert_ids(t, "<|eot_id|", TOKENIZER_PARSE_SPECIAL, "60 124 101 111 116 95 105 100 124");
    tokenizer_close(&t);
}

/* Merges may make the text of a control token; untrusted text stops one merge before it. */
static void untrusted_text_cannot_merge_to_a_control_token(void **state) {
    (void)state;
    tiny_bpe(&tiny, "llama-bpe");
    tiny.types[HELL] = VOCAB_CONTROL;
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "hell", 0, "258");
    assert_ids(t, "hell", TOKENIZER_UNTRUSTED, "256 257");
    assert_ids(t, " hello", TOKENIZER_UNTRUSTED, "260"); /* a word that is a token itself */
    tokenizer_close(&t);
}

static void text_comes_back(void **state) {
    (void)state;
    tiny_bpe(&tiny, "gpt-2");
    int32_t user = tiny_add(&tiny, "\xC4\xA0", VOCAB_USER_DEFINED, 0);
    tokenizer *t = tiny_open(&tiny);
    const int32_t ids[] = { SP_HELLO, 0xF0, 0x9F, 0x98, 0x80, 10, user };
    char *text = tiny_text(t, ids, 7, true, false);
    assert_string_equal(text, " hello\xF0\x9F\x98\x80\n\xC4\xA0");
    free(text);
    tokenizer_close(&t);
}

static void every_byte_has_its_piece(void **state) {
    (void)state;
    tokenizer *t = open_bpe("gpt-2");
    for (int b = 0; b < 256; b++) {
        struct gguf_string piece = tokenizer_piece(t, b);
        assert_int_equal(piece.len, 1);
        assert_int_equal((uint8_t)piece.data[0], b);
    }
    assert_int_equal(tokenizer_piece(t, -1).len, 0);
    assert_int_equal(tokenizer_piece(t, 100000).len, 0);
    tokenizer_close(&t);
}

/* Splits and joins the words with '|'. */
static const char *words_of(const char *pre, const char *text, size_t len, char *out) {
    tokenizer_pre *p = NULL;
    struct tokenizer_words words;
    struct err e = { 0 };
    if (tokenizer_pre_open(&p, pre, strlen(pre), &e) != RC_OK ||
        tokenizer_pre_split(p, text, len, &words, &e) != RC_OK)
        fail_msg("%s", e.msg);
    uint32_t from = 0;
    char *at = out;
    for (size_t i = 0; i < words.count; i++) {
        assert_true(words.end[i] > from); /* no word is empty */
        if (i)
            *at++ = '|';
        memcpy(at, words.text + from, words.end[i] - from);
        at += words.end[i] - from;
        from = words.end[i];
    }
    *at = 0;
    tokenizer_words_close(&words);
    tokenizer_pre_close(&p);
    return out;
}

#define NEW_LETTER "\xF0\xB1\x8D\x90" /* U+31350, of Unicode 15.0 */
#define NEW_DIGIT  "\xF0\x9D\x8B\x80" /* U+1D2C0, of Unicode 15.0 */
#define OLD_SPACE  "\xE1\xA0\x8E"     /* U+180E, which was a space once */
#define WIDE_SPACE "\xE3\x80\x80"     /* U+3000 */

static const char *const splits[][3] = {
    { "gpt-2", "I'm we'Ve 1234!?  x", "I|'m| we|'|Ve| 1234|!?| | x" },
    { "gpt-2", " \n\n a\t\tb  ", " \n\n| a|\t|\t|b|  " },
    { "gpt-2", "a" OLD_SPACE "b", "a|" OLD_SPACE "|b" },
    { "gpt-2", "a" WIDE_SPACE WIDE_SPACE "b", "a|" WIDE_SPACE "|" WIDE_SPACE "|b" },
    { "gpt-2", NEW_LETTER "a" NEW_DIGIT "1", NEW_LETTER "a|" NEW_DIGIT "1" },
    { "llama-bpe", "I'M we'Ve 12345!?\n\n x", "I|'M| we|'Ve| |123|45|!?\n\n| x" },
    { "llama-bpe", " \n \n  a", " \n \n| | a" },
    { "llama-bpe", "(foo)bar_baz", "(foo|)bar|_baz" },
    { "llama-bpe", "'\xC5\xBFx", "'\xC5\xBFx" }, /* long s is no s here */
    { "llama3", "1234", "123|4" },
    { "dbrx", "1234", "123|4" },
    { "qwen2", "1234 \r\nx", "1|2|3|4| \r\n|x" },
    { "deepseek-r1-qwen", "12", "1|2" },
    { "smollm", "a12 b", "a|1|2| b" },
    { "starcoder", "x = 42;\n", "x| =| |4|2|;|\n" },
    { "smollm", "a  1", "a|  |1" },
    { "tekken", "HTTPServer fooBar", "HTTPServer| foo|Bar" },
    { "tekken", "ABC 1,2/\n", "ABC| |1|,|2|/\n" },
    { "default", "a+b==c 12345", "a|+|b|==|c| |123|45" },
    { "", "12345", "123|45" },
};

static void texts_are_cut_as_the_models_expect(void **state) {
    (void)state;
    char out[256];
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        assert_string_equal(words_of(splits[i][0], splits[i][1], strlen(splits[i][1]), out),
                            splits[i][2]);
}

/* Random text of what decides where a cut is, and bytes that are not UTF-8. */
static size_t random_text(char *text, size_t room, unsigned *seed) {
    static const char some[] = "aZ'09 \n\r\t.!_|\xC3\xA9\xE2\x80\x83\xF0\x9F\x98\x80\xFF";
    *seed = *seed * 1103515245u + 12345u;
    size_t len = (*seed >> 16) % room;
    for (size_t i = 0; i < len; i++) {
        *seed = *seed * 1103515245u + 12345u;
        text[i] = some[(*seed >> 16) % (sizeof some - 1)];
    }
    return len;
}

static void every_way_to_cut_keeps_every_byte(void **state) {
    (void)state;
    static const char *const names[] = { "gpt-2",  "llama-bpe", "qwen2",  "smollm",
                                         "tekken", "dbrx",      "default" };
    unsigned seed = 1, corrected = 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        tokenizer_pre *p = NULL;
        struct tokenizer_words words;
        struct err e = { 0 };
        assert_int_equal(tokenizer_pre_open(&p, names[n], strlen(names[n]), &e), RC_OK);
        for (unsigned round = 0; round < 500; round++) {
            char text[64];
            size_t len = random_text(text, sizeof text, &seed);
            assert_int_equal(tokenizer_pre_split(p, text, len, &words, &e), RC_OK);
            uint32_t last = 0;
            for (size_t i = 0; i < words.count; i++) {
                assert_true(words.end[i] > last);
                last = words.end[i];
            }
            corrected += words.copies != NULL;
            if (!words.copies)
                assert_int_equal(last, len);
            tokenizer_words_close(&words);
        }
        tokenizer_pre_close(&p);
    }
    assert_true(corrected > 100 && corrected < 3400);
}

/* Looking back over a run of blanks must neither give up nor take for ever. */
static void a_megabyte_of_blanks_is_one_word(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, ' ', N);
    static const char *const names[] = { "gpt-2", "llama-bpe", "qwen2", "tekken", "default" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tokenizer_pre *p = NULL;
        struct tokenizer_words words;
        struct err e = { 0 };
        assert_int_equal(tokenizer_pre_open(&p, names[i], strlen(names[i]), &e), RC_OK);
        assert_int_equal(tokenizer_pre_split(p, text, N, &words, &e), RC_OK);
        assert_int_equal(words.count, 1);
        assert_int_equal(words.end[0], N);
        tokenizer_words_close(&words);
        text[N - 1] = 'x';
        assert_int_equal(tokenizer_pre_split(p, text, N, &words, &e), RC_OK);
        assert_int_equal(words.count, 2);
        assert_int_equal(words.end[0], N - 2);
        tokenizer_words_close(&words);
        text[N - 1] = ' ';
        tokenizer_pre_close(&p);
    }
    free(text);
}

static void an_unknown_way_to_cut_is_named(void **state) {
    (void)state;
    tokenizer_pre *p = NULL;
    struct err e = { 0 };
    assert_int_equal(tokenizer_pre_open(&p, "llama", 5, &e), RC_UNSUPPORTED);
    assert_null(p);
    assert_non_null(strstr(e.msg, "tokenizer.ggml.pre is 'llama'; greta knows llama-bpe"));
    assert_int_equal(tokenizer_pre_open(&p, " ", 1, &e), RC_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_their_order),
        cmocka_unit_test(bytes_are_spelt_in_the_alphabet),
        cmocka_unit_test(what_is_not_utf8_becomes_a_replacement_character),
        cmocka_unit_test(a_merge_that_makes_no_token_is_spelt),
        cmocka_unit_test(bytes_that_the_vocabulary_lacks_are_dropped),
        cmocka_unit_test(a_word_that_is_a_token_may_ignore_the_merges),
        cmocka_unit_test(the_first_of_two_equal_merges_counts),
        cmocka_unit_test(special_tokens_cut_the_text),
        cmocka_unit_test(untrusted_text_cannot_merge_to_a_control_token),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(every_byte_has_its_piece),
        cmocka_unit_test(texts_are_cut_as_the_models_expect),
        cmocka_unit_test(every_way_to_cut_keeps_every_byte),
        cmocka_unit_test(a_megabyte_of_blanks_is_one_word),
        cmocka_unit_test(an_unknown_way_to_cut_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
