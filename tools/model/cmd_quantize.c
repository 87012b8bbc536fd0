/* greta_model quantize - rewrites a model with other tensor types. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "model/quant/quantize.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/quantize.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/quantize.def"
};

static void print_types(FILE *out) {
    fprintf(out,
            "%s\n"
            "A type by itself is that of every matrix. Q4_K_M and Q5_K_M keep the output and half "
            "of\n"
            "attn_v and ffn_down in Q6_K. Rows that do not fit a type's blocks get the next better "
            "type.\n\n",
            quant_mix_names());
}

const struct option_table cmd_quantize_options = {
    .name = "greta_model quantize",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_model quantize [options] IN OUT TYPE\n"
              "\n"
              "Rewrites the matrices of a model; vectors and metadata stay as they are. Types:\n",
    .more = print_types,
};

static void print_result(const char *path, const struct quantize_result *r, double seconds) {
    char in[BYTES_TEXT], out[BYTES_TEXT];
    bytes_format(r->bytes_in, in);
    bytes_format(r->bytes_out, out);
    printf("%s: %" PRIu64 " tensors changed, %" PRIu64 " kept, %s -> %s, in %.1f s\n", path,
           r->changed, r->kept, in, out, seconds);
    if (r->fallbacks)
        printf("%" PRIu64 " tensors have rows that do not fit the type and got another\n",
               r->fallbacks);
    if (r->requantized)
        fprintf(stderr,
                "greta_model quantize: %" PRIu64 " tensors were quantised already; better start"
                " from F32, F16 or BF16\n",
                r->requantized);
}

static int quantize(const char *in, const char *out, const char *type, int threads) {
    struct err e = { 0 };
    struct progress bar = progress_begin("quantizing");
    struct quantize_options o = { .threads = threads,
                                  .progress = progress_show,
                                  .progress_user = &bar,
                                  .cancel = program_catch_interrupts() };
    struct quantize_result result;
    gguf *g = NULL;
    enum rc rc = quant_mix_find(type, &o.mix, &e);
    if (!rc)
        rc = gguf_open(&g, in, &e);
    if (!rc)
        rc = quantize_model(g, out, &o, &result, &e);
    double seconds = progress_end(&bar);
    gguf_close(&g);
    if (rc)
        return cmd_failed(&cmd_quantize_options, &e);
    print_result(out, &result, seconds);
    return EXIT_CLEAN;
}

int cmd_quantize(int argc, char **argv) {
    static const struct option_table *const t = &cmd_quantize_options;
    struct options o = { 0 };
    struct option_operands files;
    int code = option_begin(t, &o, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count < 3)
        return option_wrong(t, "name the input, the output and the type", NULL);
    if (files.count > 3)
        return option_wrong(t, "expected one input, one output and one type, found also",
                            files.words[3]);
    return quantize(files.words[0], files.words[1], files.words[2], (int)o.threads);
}
