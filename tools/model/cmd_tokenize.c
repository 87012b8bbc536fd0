/* greta_model tokenize - text to token ids and back, with the tokenizer of a model file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/tokenize.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/tokenize.def"
};

const struct option_table cmd_tokenize_options = {
    .name = "greta_model tokenize",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before =
        "Usage: greta_model tokenize [options] FILE\n"
        "\n"
        "Reads text from standard input, every byte of it, and prints its token ids separated by\n"
        "spaces. Adds BOS and EOS where the model wants them.\n"
        "\n",
};

static enum rc read_input(struct token_text *text, struct err *e) {
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        enum rc rc = token_text_add(text, chunk, n, e);
        if (rc != RC_OK)
            return rc;
    }
    return ferror(stdin) ? err_set(e, RC_IO, "standard input: %s", strerror(errno)) : RC_OK;
}

static enum rc print_ids(const tokenizer *t, const struct options *o, const struct token_text *text,
                         struct err *e) {
    struct token_list list = { 0 };
    unsigned flags =
        (o->no_bos ? 0 : TOKENIZER_ADD_SPECIAL) | (o->special ? TOKENIZER_PARSE_SPECIAL : 0);
    enum rc rc = tokenizer_encode(t, text->data, text->len, flags, &list, e);
    for (size_t i = 0; rc == RC_OK && i < list.count; i++)
        printf(i ? " %d" : "%d", list.ids[i]);
    if (rc == RC_OK)
        putchar('\n');
    token_list_close(&list);
    return rc;
}

static enum rc print_text(const tokenizer *t, const struct options *o,
                          const struct token_text *input, struct err *e) {
    struct tokenizer_decoder d;
    struct token_text text = { 0 };
    enum rc rc = RC_OK;
    tokenizer_decoder_init(&d, t, true, o->special);
    const char *ids = input->data; /* terminated */
    for (ids += strspn(ids, " \t\r\n"); *ids && rc == RC_OK; ids += strspn(ids, " \t\r\n")) {
        char *end;
        errno = 0;
        long id = strtol(ids, &end, 10);
        if (end == ids || !strchr(" \t\r\n", *end) || errno || id < INT32_MIN || id > INT32_MAX) {
            rc =
                err_set(e, RC_FORMAT, "expected token ids separated by blanks, found '%.32s'", ids);
            break;
        }
        rc = tokenizer_decoder_push(&d, (int32_t)id, &text, e);
        ids = end;
    }
    if (rc == RC_OK && (size_t)(ids - input->data) + 1 != input->len)
        rc = err_set(e, RC_FORMAT, "expected token ids separated by blanks, found a zero byte");
    if (rc == RC_OK)
        rc = tokenizer_decoder_flush(&d, &text, e);
    if (rc == RC_OK)
        fwrite(text.data, 1, text.len, stdout);
    token_text_close(&text);
    return rc;
}

int cmd_tokenize(int argc, char **argv) {
    struct options o = { 0 };
    const char *path;
    int code = cmd_begin(&cmd_tokenize_options, &o, argc, argv, &path);
    if (code >= 0)
        return code;
    struct err e = { 0 };
    gguf *g = NULL;
    tokenizer *t = NULL;
    struct token_text input = { 0 };
    enum rc rc = gguf_open(&g, path, &e);
    if (rc == RC_OK)
        rc = tokenizer_open_gguf(&t, g, &e);
    if (rc == RC_OK)
        rc = read_input(&input, &e);
    if (rc == RC_OK && o.ids)
        rc = token_text_add(&input, "", 1, &e);
    if (rc == RC_OK)
        rc = o.ids ? print_text(t, &o, &input, &e) : print_ids(t, &o, &input, &e);
    if (rc == RC_OK && (fflush(stdout) != 0 || ferror(stdout)))
        rc = err_set(&e, RC_IO, "standard output: %s", strerror(errno));
    token_text_close(&input);
    tokenizer_close(&t);
    gguf_close(&g);
    return rc == RC_OK ? EXIT_CLEAN : cmd_failed(&cmd_tokenize_options, &e);
}
