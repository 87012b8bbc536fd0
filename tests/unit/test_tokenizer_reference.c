/* Real vocabularies against reference token lists, where they lie beside the project. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"

static char folder[4096];

/* A whole file with a terminator, or NULL; the caller frees. */
static char *read_file(const char *name) {
    char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    data[size] = 0;
    fclose(f);
    return data;
}

static tokenizer *open_vocabulary(const char *name) {
    char path[sizeof folder + 64];
    struct err e = { 0 };
    gguf *g = NULL;
    tokenizer *t = NULL;
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    if (gguf_open(&g, path, &e) != RC_OK || tokenizer_open_gguf(&t, g, &e) != RC_OK)
        fail_msg("%s", e.msg);
    gguf_close(&g);
    return t;
}

/* One case: the ids must be those of the line. */
static void check_ids(const tokenizer *t, const char *text, size_t len, unsigned flags,
                      const char *line) {
    struct token_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(tokenizer_encode(t, text, len, flags, &list, &e), RC_OK);
    char *end;
    size_t n = 0;
    for (const char *at = line; *at && *at != '\n'; at = end, n++) {
        long id = strtol(at, &end, 10);
        if (end == at)
            break; /* trailing blank */
        if (n >= list.count || list.ids[n] != id)
            fail_msg("token %zu of '%.*s' must be %ld", n, (int)len, text, id);
    }
    assert_int_equal(n, list.count);
    token_list_close(&list);
}

/* Decoding gives back what was encoded, for texts that are UTF-8 (all of these are). */
static void check_round_trip(const tokenizer *t, const char *text, size_t len) {
    struct token_list list = { 0 };
    struct token_text out = { 0 };
    struct tokenizer_decoder d;
    struct err e = { 0 };
    assert_int_equal(tokenizer_encode(t, text, len, TOKENIZER_ADD_SPECIAL, &list, &e), RC_OK);
    tokenizer_decoder_init(&d, t, true, false);
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(tokenizer_decoder_push(&d, list.ids[i], &out, &e), RC_OK);
    assert_int_equal(tokenizer_decoder_flush(&d, &out, &e), RC_OK);
    assert_int_equal(out.len, len);
    if (len)
        assert_memory_equal(out.data, text, len);
    token_list_close(&list);
    token_text_close(&out);
}

/* Texts nastier than those of the folder, and what the reference makes of them, for each
 * vocabulary.
 */
#define TEXT(literal) literal, sizeof(literal) - 1

enum { SPECIALS = TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL };

static const struct {
    const char *text;
    size_t len;
    unsigned flags;
    const char *llama_spm, *llama_bpe, *gpt_2, *qwen2;
} nasty[] = {
    /* not UTF-8, overlong, surrogate, cut off */
    { TEXT("\xFF\xFE a\xC0\x8A"
           "b \xED\xA0\x80\xE2\x82"),
      0, "29871 258 257 229 153 132 29874 195 141 29890 29871 240 163 131 229 133",
      "10178 264 198 65 10997 64319 10178", "6353 257 198 65 220 169 254 222 6353",
      "9973 264 198 65 10764 63219 9973" },
    /* blanks and what only looks like one */
    { TEXT("a\xE1\xA0\x8E"
           "b\xE3\x80\x80"
           "c \xC2\x85\r\n\x1C\0"),
      0, "263 228 163 145 29890 30358 29883 29871 197 136 30004 13 31 3",
      "64 157 254 236 65 23249 66 2188 227 319 216 188",
      "64 157 254 236 65 5099 222 66 1587 227 201 198 216 188",
      "64 123970 236 65 22441 66 2139 227 319 216 188" },
    /* a clitic, digits of three scripts, letters newer than PCRE2 */
    { TEXT("'\xC5\xBF we'LL 12345\xD9\xA1\xD9\xA2 \xF0\x9D\x8B\x80\xF0\xB1\x8D\x90x"), 0,
      "525 30473 591 29915 2208 29871 29896 29906 29941 29946 29945 220 164 220 165 29871 243 160 "
      "142 131 243 180 144 147 29916",
      "6 129 123 584 6 4178 220 4513 1774 109610 110546 220 57352 233 222 172 109 235 238 87",
      "6 129 123 356 6 3069 17031 2231 149 94 149 95 220 47728 233 222 172 109 235 238 87",
      "6 144815 582 6 4086 220 16 17 18 19 20 149 94 149 95 220 56252 233 222 172 109 235 238 87" },
    /* names of special tokens */
    { TEXT("<s>hi</s><unk><|eot_id|><|im_end|><|endoftext|> <|reserved_special_token_3|>"),
      SPECIALS,
      "1 1 7251 2 0 529 29989 29872 327 29918 333 29989 5299 29989 326 29918 355 29989 5299 29989 "
      "355 974 726 29989 29958 529 29989 690 9841 29918 18732 29918 6979 29918 29941 29989 29958",
      "128000 45147 29 6151 524 82 1822 3200 29 128009 27 91 318 6345 91 1822 91 8862 728 428 91 "
      "29 220 128005",
      "27 82 29 5303 3556 82 6927 2954 6927 91 68 313 62 312 91 6927 91 320 62 437 91 29 50256 "
      "1279 91 411 8520 62 20887 62 30001 62 18 91 29",
      "44047 29 6023 128247 128243 1784 91 68 354 842 91 29 151645 151643 82639 51102 41629 6458 "
      "62 18 91 29" },
    /* joined emoji, a combining mark, Hangul, blanks */
    { TEXT("\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
           "e\xCC\x81 \xED\x95\x9C\xEA\xB5\xAD\t\t  \n\n x"),
      0,
      "29871 243 162 148 171 30722 243 162 148 172 30722 243 162 148 170 29872 30103 29871 30877 "
      "31293 12 12 259 13 13 921",
      "9468 239 101 102470 9468 239 102 102470 9468 239 100 68 54939 104008 13854 271 865",
      "41840 101 447 235 41840 102 447 235 41840 100 68 136 223 220 47991 250 166 113 255 197 197 "
      "220 220 628 2124",
      "145367 378 235 145233 378 235 145665 68 53839 130092 13544 271 856" },
};

static void check_nasty(const tokenizer *t, const char *name) {
    for (size_t i = 0; i < sizeof nasty / sizeof *nasty; i++) {
        const char *line = !strcmp(name, "llama-spm")   ? nasty[i].llama_spm
                           : !strcmp(name, "llama-bpe") ? nasty[i].llama_bpe
                           : !strcmp(name, "gpt-2")     ? nasty[i].gpt_2
                                                        : nasty[i].qwen2;
        check_ids(t, nasty[i].text, nasty[i].len, nasty[i].flags, line);
    }
}

static void check_vocabulary(const char *name) {
    char *cases = folder[0] ? read_file("cases.inp") : NULL;
    if (!cases) {
        print_message("skipped: there is no shared/vocab beside the project\n");
        skip();
    }
    char out_name[64];
    snprintf(out_name, sizeof out_name, "%s.out", name);
    char *lines = read_file(out_name);
    assert_non_null(lines);
    tokenizer *t = open_vocabulary(name);
    size_t n = 0;
    const char *text = cases, *line = lines;
    for (const char *end; (end = strstr(text, SEPARATOR)) && *line; n++) {
        check_ids(t, text, (size_t)(end - text), 0, line);
        check_round_trip(t, text, (size_t)(end - text));
        text = end + strlen(SEPARATOR);
        line = strchr(line, '\n');
        line = line ? line + 1 : "";
    }
    assert_true(n >= 46);
    check_nasty(t, name);
    print_message("%s: %zu texts\n", name, n);
    tokenizer_close(&t);
    free(cases);
    free(lines);
}

static void llama_2_gives_the_reference_tokens(void **state) {
    (void)state;
    check_vocabulary("llama-spm");
}

static void llama_3_gives_the_reference_tokens(void **state) {
    (void)state;
    check_vocabulary("llama-bpe");
}

static void gpt_2_gives_the_reference_tokens(void **state) {
    (void)state;
    check_vocabulary("gpt-2");
}

static void qwen2_gives_the_reference_tokens(void **state) {
    (void)state;
    check_vocabulary("qwen2");
}

int main(void) {
    const char *root = getenv("SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/../shared/vocab", root ? root : ".");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_2_gives_the_reference_tokens),
        cmocka_unit_test(llama_3_gives_the_reference_tokens),
        cmocka_unit_test(gpt_2_gives_the_reference_tokens),
        cmocka_unit_test(qwen2_gives_the_reference_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
