/* SentencePiece on a vocabulary worked out by hand. */
#include "unit/test_tokenizer_tiny.h"

#include <math.h>

static struct tiny tiny;

static tokenizer *open_spm(void) {
    tiny_spm(&tiny);
    return tiny_open(&tiny);
}

/* The ids that tiny_spm() gives its words. */
enum {
    SPACE = TINY_WORDS,
    H,
    E,
    L,
    O,
    HE,
    LL,
    LO,
    LLO,
    HELL,
    HELLO,
    SP_H,
    SP_HELLO,
    SP_SP,
    W,
    EACUTE
};

static void merges_follow_the_scores(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    /* he (-5), ll (-6), llo (-8), hello (-10), and at last the blank before it (-12) */
    assert_ids(t, "hello", 0, "271");
    assert_ids(t, "ello", 0, "259 261 267"); /* ll before lo, which would leave l */
    assert_ids(t, "hel", 0, "259 264 262");  /* he before the blank and h (-11) */
    assert_ids(t, "ll", 0, "259 265");
    assert_ids(t, "lll", 0, "259 265 262");
    assert_ids(t, "", 0, "");
    tokenizer_close(&t);
    assert_null(t);
}

/* As Phi-3 has it: "<|user|>\n hello" is the same as "<|user|>hello". */
static void special_tokens_may_swallow_blanks(void **state) {
    (void)state;
    for (int strip = 0; strip < 2; strip++) {
        tiny_spm(&tiny);
        assert_int_equal(tiny_add(&tiny, "<|user|>", VOCAB_CONTROL, 0), 275);
        assert_int_equal(tiny_add(&tiny, "<|endoftext|>", VOCAB_CONTROL, 0), 276);
        tiny.source.strip_after_special = strip;
        tokenizer *t = tiny_open(&tiny);
        unsigned flags = TOKENIZER_PARSE_SPECIAL;
        assert_ids(t, "<|user|>\n hello", flags, strip ? "275 271" : "275 259 13 271");
        assert_ids(t, "<|user|>\n<|user|>hello", flags,
                   strip ? "275 275 271" : "275 259 13 275 271");
        assert_ids(t, "<|user|> \n", flags, strip ? "275" : "275 272 13");
        assert_ids(t, "hello\n<|endoftext|>\n", flags, "271 13 276 259 13");
        tokenizer_close(&t);
    }
}

/* Gemma puts no blank before a text, and has blanks and line ends as tokens of their own. */
static void a_vocabulary_without_a_prefix_keeps_blanks_as_they_are(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny.source.add_space_prefix = 0;
    assert_int_equal(tiny_add(&tiny, "\n\n", VOCAB_USER_DEFINED, 0), 275);
    assert_int_equal(tiny_add(&tiny, "   ", VOCAB_USER_DEFINED, 0), 276);
    assert_int_equal(tiny_add(&tiny, "<start_of_turn>", VOCAB_CONTROL, 0), 277);
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "hello", 0, "269");
    assert_ids(t, " hello", 0, "271");
    assert_ids(t, "hello\n\nhello", 0, "269 275 269");
    assert_ids(t, "hello   hello", 0, "269 276 269");
    assert_ids(t, "<start_of_turn>hello", TOKENIZER_PARSE_SPECIAL | TOKENIZER_ADD_SPECIAL,
               "1 277 269");
    tokenizer_close(&t);
}

static void a_better_score_changes_the_outcome(void **state) {
    (void)state;
    tiny_spm(&tiny);
    int32_t el = tiny_add(&tiny, "el", VOCAB_NORMAL, -4);
    assert_int_equal(el, 275);
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "hel", 0, "270 275");
    tokenizer_close(&t);
    tiny.scores[el] = -5.5f;
    t = tiny_open(&tiny);
    assert_ids(t, "hel", 0, "259 264 262");
    tokenizer_close(&t);
}

static void equal_scores_merge_from_the_left(void **state) {
    (void)state;
    tiny_spm(&tiny);
    for (int id = TINY_WORDS; id <= EACUTE; id++)
        tiny.scores[id] = 0;
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "llll", 0, "259 265 265");
    tiny.scores[LO] = -0.0f; /* equal to 0 */
    tokenizer_close(&t);
    t = tiny_open(&tiny);
    assert_ids(t, "llo", 0, "259 267");
    tokenizer_close(&t);
}

static void what_is_no_token_is_spelt_in_bytes(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    char ids[64];
    assert_ids(t, "\xC3\xA9", 0, "259 274");     /* a character of the vocabulary */
    assert_ids(t, "\xC3\xA8", 0, "259 198 171"); /* one that is not */
    assert_ids(t, "\xFF", 0, "259 258");
    assert_ids(t,
               "\xE2"
               "hh",
               0, "259 229 107 107"); /* a lead byte takes its neighbours along */
    assert_string_equal(tiny_ids(t, "\0", 1, 0, ids, sizeof ids), "259 3");
    tokenizer_close(&t);
}

static void a_vocabulary_without_bytes_falls_back_to_unknown(void **state) {
    (void)state;
    tiny_init(&tiny, "llama", "");
    tiny_add(&tiny, "<unk>", VOCAB_UNKNOWN, 0);
    tiny_add(&tiny, "a", VOCAB_NORMAL, 0);
    tiny.source.bos = tiny.source.eos = VOCAB_UNSET;
    tiny.source.add_space_prefix = 0;
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "axa", 0, "1 0 1");
    tokenizer_close(&t);
}

static void spaces_are_escaped_and_one_is_put_before(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    assert_ids(t, " ", 0, "272");
    assert_ids(t, "   ", 0, "272 272");
    assert_ids(t, "h  w", 0, "270 272 273");
    tokenizer_close(&t);

    tiny.source.add_space_prefix = 0;
    t = tiny_open(&tiny);
    assert_false(tokenizer_adds_space(t));
    assert_ids(t, "hello", 0, "269");
    tokenizer_close(&t);

    tiny.source.add_space_prefix = 1;
    t = tiny_open(&tiny);
    assert_ids(t, "w", TOKENIZER_CONTINUES, "273");
    tokenizer_close(&t);
}

/* Where a token reaches from one word into the next, words cannot be handled apart. */
static void tokens_across_words_are_found(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny_add(&tiny, "w" SP, VOCAB_NORMAL, 5);
    tiny_add(&tiny, "w" SP "w", VOCAB_NORMAL, 5);
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "w w", 0, "259 276");
    assert_ids(t, "w  w", 0, "259 275 259 273");
    tokenizer_close(&t);
}

static void special_tokens_only_where_asked_for(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    assert_ids(t, "w", TOKENIZER_ADD_SPECIAL, "1 259 273");
    assert_ids(t, "", TOKENIZER_ADD_SPECIAL, "1");
    assert_ids(t, "</s>", TOKENIZER_PARSE_SPECIAL, "2");
    assert_ids(t, "w</s>w", TOKENIZER_PARSE_SPECIAL, "259 273 2 259 273");
    assert_ids(t, "<s></s><unk>", TOKENIZER_PARSE_SPECIAL, "1 2 0");
    assert_ids(t, "</s>", 0, "259 63 50 118 65");
    assert_ids(t, "</s>", TOKENIZER_PARSE_SPECIAL | TOKENIZER_UNTRUSTED, "259 63 50 118 65");
    tokenizer_close(&t);

    tiny.source.add_bos = 0;
    tiny.source.add_eos = 1;
    t = tiny_open(&tiny);
    assert_ids(t, "w", TOKENIZER_ADD_SPECIAL, "259 273 2");
    tokenizer_close(&t);
}

static void user_defined_tokens_come_before_merges(void **state) {
    (void)state;
    tiny_spm(&tiny);
    int32_t ell = tiny_add(&tiny, "ell", VOCAB_USER_DEFINED, 0);
    int32_t tool = tiny_add(&tiny, "<tool>", VOCAB_USER_DEFINED, 0);
    tokenizer *t = tiny_open(&tiny);
    assert_int_equal(ell, 275);
    assert_int_equal(tool, 276);
    assert_ids(t, "hello", 0, "270 275 259 263");
    assert_ids(t, "<tool>", 0, "276");
    assert_ids(t, "<tool>", TOKENIZER_UNTRUSTED, "259 63 119 263 263 262 65");
    assert_ids(t, "hello", TOKENIZER_UNTRUSTED, "270 275 259 263");
    tokenizer_close(&t);
}

static void longer_special_tokens_win_wherever_they_are(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny_add(&tiny, "ww", VOCAB_USER_DEFINED, 0);   /* 275 */
    tiny_add(&tiny, "whhh", VOCAB_USER_DEFINED, 0); /* 276 */
    tiny_add(&tiny, "o", VOCAB_USER_DEFINED,
             0); /* 277: the text of 263 again; the last one counts */
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "wwhhh", 0, "259 273 276");
    assert_ids(t, "www", 0, "275 259 273");
    assert_ids(t, "wow", 0, "259 273 277 259 273");
    tokenizer_close(&t);
}

/* Merging is free to make any text, also that of a control token; untrusted text may not. */
static void untrusted_text_cannot_merge_to_a_control_token(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny_add(&tiny, "<", VOCAB_NORMAL, -1);  /* 275 */
    tiny_add(&tiny, "s>", VOCAB_NORMAL, -1); /* 276 */
    tiny.source.add_space_prefix = 0;
    tokenizer *t = tiny_open(&tiny);
    assert_ids(t, "<s>", 0, "1");
    assert_ids(t, "<s>", TOKENIZER_UNTRUSTED, "275 276");
    tokenizer_close(&t);

    /* nor by spelling, where a byte has no token but a control token's text is that byte */
    tiny_init(&tiny, "llama", "");
    tiny_add(&tiny, "<unk>", VOCAB_UNKNOWN, 0);
    tiny_add(&tiny, "!", VOCAB_CONTROL, 0);
    tiny.source.add_space_prefix = 0;
    t = tiny_open(&tiny);
    assert_ids(t, "!", TOKENIZER_PARSE_SPECIAL, "1");
    assert_ids(t, "!", TOKENIZER_UNTRUSTED, "0");
    tokenizer_close(&t);
}

static void not_a_number_as_score_does_no_harm(void **state) {
    (void)state;
    tiny_spm(&tiny);
    tiny.scores[HE] = NAN;
    tiny.scores[LL] = -INFINITY;
    tiny.scores[LO] = INFINITY;
    tokenizer *t = tiny_open(&tiny);
    struct token_list list = { 0 };
    assert_int_equal(tokenizer_encode(t, "hello hello", 11, 0, &list, NULL), RC_OK);
    assert_true(list.count > 0);
    token_list_close(&list);
    tokenizer_close(&t);
}

static void text_comes_back(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    const int32_t ids[] = { 1, SPACE, HE, LLO, SP_HELLO, 198, 171, 2 };
    char *text = tiny_text(t, ids, 8, true, false);
    assert_string_equal(text, "hello hello\xC3\xA8");
    free(text);
    text = tiny_text(t, ids, 8, true, true);
    assert_string_equal(text, "<s>hello hello\xC3\xA8</s>");
    free(text);
    text = tiny_text(t, ids + 4, 1, false, false);
    assert_string_equal(text, " hello");
    free(text);
    tokenizer_close(&t);
}

static void incomplete_characters_are_held_back(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    struct tokenizer_decoder d;
    struct token_text out = { 0 };
    struct err e = { 0 };
    tokenizer_decoder_init(&d, t, false, false);
    const uint8_t smile[4] = { 0xF0, 0x9F, 0x98, 0x80 };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(out.len, 0);
        assert_int_equal(tokenizer_decoder_push(&d, TINY_BYTES + smile[i], &out, &e), RC_OK);
    }
    assert_int_equal(out.len, 4);
    assert_memory_equal(out.data, smile, 4);
    assert_int_equal(tokenizer_decoder_push(&d, TINY_BYTES + 0xE2, &out, &e), RC_OK);
    assert_int_equal(out.len, 4);
    assert_int_equal(tokenizer_decoder_flush(&d, &out, &e), RC_OK);
    assert_memory_equal(out.data + 4, "\xEF\xBF\xBD", 3);
    assert_int_equal(out.len, 7);
    assert_int_equal(tokenizer_decoder_push(&d, 9999, &out, &e), RC_RANGE);
    assert_string_equal(e.msg, "token 9999 is outside the vocabulary of 275 tokens");
    assert_int_equal(tokenizer_decoder_push(&d, -1, &out, &e), RC_RANGE);
    token_text_close(&out);
    tokenizer_close(&t);
}

/* A run without a single blank is the worst case; time grows with n log n, not with its square. */
static void long_runs_do_not_take_long(void **state) {
    (void)state;
    tokenizer *t = open_spm();
    enum { N = 1 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, 'l', N);
    struct token_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(tokenizer_encode(t, text, N, 0, &list, &e), RC_OK);
    assert_int_equal(list.count, 1 + N / 2);
    token_list_close(&list);
    free(text);
    tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_the_scores),
        cmocka_unit_test(special_tokens_may_swallow_blanks),
        cmocka_unit_test(a_vocabulary_without_a_prefix_keeps_blanks_as_they_are),
        cmocka_unit_test(a_better_score_changes_the_outcome),
        cmocka_unit_test(equal_scores_merge_from_the_left),
        cmocka_unit_test(what_is_no_token_is_spelt_in_bytes),
        cmocka_unit_test(a_vocabulary_without_bytes_falls_back_to_unknown),
        cmocka_unit_test(spaces_are_escaped_and_one_is_put_before),
        cmocka_unit_test(tokens_across_words_are_found),
        cmocka_unit_test(special_tokens_only_where_asked_for),
        cmocka_unit_test(user_defined_tokens_come_before_merges),
        cmocka_unit_test(longer_special_tokens_win_wherever_they_are),
        cmocka_unit_test(untrusted_text_cannot_merge_to_a_control_token),
        cmocka_unit_test(not_a_number_as_score_does_no_harm),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(incomplete_characters_are_held_back),
        cmocka_unit_test(long_runs_do_not_take_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
