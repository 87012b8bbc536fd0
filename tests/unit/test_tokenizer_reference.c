/* Real vocabularies against reference token lists, where they lie beside the project. */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer.h"

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
static void check_ids(const tokenizer *t, const char *text, size_t len, const char *line) {
    struct token_list list = { 0 };
    struct err e = { 0 };
    assert_int_equal(tokenizer_encode(t, text, len, 0, &list, &e), RC_OK);
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
        check_ids(t, text, (size_t)(end - text), line);
        check_round_trip(t, text, (size_t)(end - text));
        text = end + strlen(SEPARATOR);
        line = strchr(line, '\n');
        line = line ? line + 1 : "";
    }
    assert_true(n >= 46);
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
