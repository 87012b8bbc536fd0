/* greta_model synth - writes a model with random weights. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "model/synth.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/synth.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/synth.def"
};

static void print_types(FILE *out) {
    fprintf(out, "Types of the matrices:\n%s\n\n", quant_mix_names());
}

const struct option_table cmd_synth_options = {
    .name = "greta_model synth",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before =
        "Usage: greta_model synth [options] -o FILE\n"
        "\n"
        "Writes a model with random weights and a working tokenizer; the same seed gives the same "
        "file.\n"
        "\n",
    .more = print_types,
};

static enum rc take_vocab(const struct options *w, bool vocab_given, struct synth_options *o,
                          gguf **g, struct err *e) {
    const struct gguf_array *tokens;
    if (!w->vocab)
        return RC_OK;
    enum rc rc = gguf_open(g, w->vocab, e);
    if (!rc)
        rc = gguf_get_array(*g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, e);
    if (!rc && vocab_given && tokens->count != o->shape.vocab)
        rc = err_set(e, RC_USAGE, "%s has %" PRIu64 " tokens, the shape says vocab=%u", w->vocab,
                     tokens->count, o->shape.vocab);
    o->vocab = *g;
    return rc;
}

int cmd_synth(int argc, char **argv) {
    static const struct option_table *const t = &cmd_synth_options;
    struct options w = { .shape = "tiny", .type = "Q4_0", .seed = 1 };
    struct option_operands files;
    int code = option_begin(t, &w, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count)
        return option_wrong(t, "the output is named with -o, found also", files.words[0]);
    if (!w.output)
        return option_wrong(t, "name the output with -o FILE", NULL);
    struct err e = { 0 };
    struct synth_options o = { .seed = w.seed, .threads = (int)w.threads };
    struct progress bar = progress_begin("writing");
    gguf *vocab = NULL;
    bool vocab_given;
    o.progress = progress_show;
    o.progress_user = &bar;
    o.cancel = program_catch_interrupts();
    enum rc rc = synth_parse_shape(w.shape, &o.shape, &vocab_given, &e);
    if (!rc)
        rc = quant_mix_find(w.type, &o.mix, &e);
    if (!rc)
        rc = take_vocab(&w, vocab_given, &o, &vocab, &e);
    if (!rc)
        rc = synth_write(w.output, &o, &e);
    double seconds = progress_end(&bar);
    gguf_close(&vocab);
    if (rc)
        return cmd_failed(t, &e);
    gguf *made = NULL;
    if (gguf_open(&made, w.output, &e))
        return cmd_failed(t, &e);
    char size[BYTES_TEXT];
    bytes_format(gguf_file_bytes(made), size);
    printf("%s: %" PRIu64 " tensors, %s, in %.1f s\n", w.output, gguf_tensor_count(made), size,
           seconds);
    gguf_close(&made);
    return EXIT_CLEAN;
}
