/* test_tokenizer_tiny.h - vocabularies small enough to work out by hand, for the tokenizer tests.
 */
#ifndef TESTS_UNIT_TEST_TOKENIZER_TINY_H
#define TESTS_UNIT_TEST_TOKENIZER_TINY_H

#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"

#define SP "\xE2\x96\x81" /* U+2581, a space in SentencePiece vocabularies */

struct tiny {
    char names[512][24];
    struct gguf_string tokens[512];
    float scores[512];
    uint8_t types[512];
    struct gguf_string merges[64];
    struct vocab_source source;
};

static inline struct gguf_string tiny_string(const char *s) {
    return (struct gguf_string){ s, strlen(s) };
}

/* Returns the id of the new token. */
static inline int32_t tiny_add(struct tiny *v, const char *text, enum vocab_type type,
                               float score) {
    size_t id = v->source.token_count++;
    assert_true(id < 512 && strlen(text) < sizeof v->names[0]);
    strcpy(v->names[id], text);
    v->tokens[id] = tiny_string(v->names[id]);
    v->types[id] = (uint8_t)type;
    v->scores[id] = score;
    return (int32_t)id;
}

static inline void tiny_merge(struct tiny *v, const char *merge) {
    assert_true(v->source.merge_count < 64);
    v->merges[v->source.merge_count++] = tiny_string(merge);
}

static inline void tiny_init(struct tiny *v, const char *model, const char *pre) {
    memset(v, 0, sizeof *v);
    vocab_source_init(&v->source, "tiny");
    v->source.model = tiny_string(model);
    v->source.pre = tiny_string(pre);
    v->source.tokens = v->tokens;
    v->source.scores = v->scores;
    v->source.types = v->types;
    v->source.merges = v->merges;
}

/* <unk> 0, <s> 1, </s> 2, the bytes 3 to 258, then words of "hello" and blanks from 259 on. */
enum { TINY_BYTES = 3, TINY_WORDS = 259 };

static inline void tiny_spm(struct tiny *v) {
    static const char *const words[] = { SP,         "h",   "e",   "l",       "o",     "he",
                                         "ll",       "lo",  "llo", "hell",    "hello", SP "h",
                                         SP "hello", SP SP, "w",   "\xC3\xA9" };
    tiny_init(v, "llama", "");
    tiny_add(v, "<unk>", VOCAB_UNKNOWN, 0);
    tiny_add(v, "<s>", VOCAB_CONTROL, 0);
    tiny_add(v, "</s>", VOCAB_CONTROL, 0);
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        tiny_add(v, name, VOCAB_BYTE, 0);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        tiny_add(v, words[i], VOCAB_NORMAL, -(float)i);
}

/* The 256 bytes in GPT-2's alphabet, 0 to 255 in the order of the bytes; then merges of "hello". */
static inline void tiny_bpe(struct tiny *v, const char *pre) {
    static const char *const merges[] = {
        "h e", "l l", "he ll", "hell o", "\xC4\xA0 hello", "o o"
    };
    tiny_init(v, "gpt2", pre);
    unsigned others = 0;
    for (unsigned b = 0; b < 256; b++) {
        char text[5] = "";
        int printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD);
        utf8_encode(printable ? b : 0x100 + others++, text);
        tiny_add(v, text, VOCAB_NORMAL, 0);
    }
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        char joined[24];
        const char *space = strchr(merges[i], ' ');
        snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        tiny_merge(v, merges[i]);
        if (strcmp(joined, "oo") != 0) /* a merge whose result is no token */
            tiny_add(v, joined, VOCAB_NORMAL, 0);
    }
}

static inline tokenizer *tiny_open(const struct tiny *v) {
    struct err e = { 0 };
    tokenizer *t = NULL;
    if (tokenizer_open(&t, &v->source, &e) != RC_OK)
        fail_msg("%s", e.msg);
    return t;
}

/* Encodes and writes the ids as text, separated by spaces. */
static inline const char *tiny_ids(const tokenizer *t, const char *text, size_t len, unsigned flags,
                                   char *out, size_t room) {
    struct err e = { 0 };
    struct token_list list = { 0 };
    if (tokenizer_encode(t, text, len, flags, &list, &e) != RC_OK)
        fail_msg("%s", e.msg);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < list.count && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%d", i ? " " : "", list.ids[i]);
    token_list_close(&list);
    return out;
}

#define assert_ids(t, text, flags, expected)                                                       \
    do {                                                                                           \
        char ids_[1024];                                                                           \
        assert_string_equal(tiny_ids(t, text, strlen(text), flags, ids_, sizeof ids_), expected);  \
    } while (0)

/* Decodes ids in one go; the caller frees. */
static inline char *tiny_text(const tokenizer *t, const int32_t *ids, size_t count, bool whole,
                              bool show_control) {
    struct err e = { 0 };
    struct token_text text = { 0 };
    struct tokenizer_decoder d;
    tokenizer_decoder_init(&d, t, whole, show_control);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tokenizer_decoder_push(&d, ids[i], &text, &e), RC_OK);
    assert_int_equal(tokenizer_decoder_flush(&d, &text, &e), RC_OK);
    assert_int_equal(token_text_add(&text, "", 1, &e), RC_OK);
    return text.data;
}

#endif
