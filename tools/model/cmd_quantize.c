/* greta_model quantize - rewrites a model with other tensor types. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/cmd.h"
#include "model/quantize.h"

static const char help[] =
    "Usage: greta_model quantize [options] IN OUT TYPE\n"
    "\n"
    "Rewrites the matrices of a model; vectors and metadata stay as they are. Types:\n"
    "%s\n"
    "A type by itself is that of every matrix. Q4_K_M and Q5_K_M keep the output and half of\n"
    "attn_v and ffn_down in Q6_K. Rows that do not fit a type's blocks get the next better type.\n"
    "\n"
    "  --threads N  threads (all processors)\n"
    "  --help       this text\n";

static const struct option long_options[] = {
    { "threads", required_argument, NULL, 't' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

/* -1: go on; otherwise the exit code. */
static int parse(int *threads, int argc, char **argv) {
    int c;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 't':
            if (!cmd_parse_count(optarg, 256, threads))
                return cmd_wrong("quantize", "--threads wants 1 to 256, found", optarg);
            break;
        case 'h':
            printf(help, quant_mix_names());
            return EXIT_CLEAN;
        case ':':
            return cmd_wrong("quantize", "option without its value", argv[optind - 1]);
        default:
            return cmd_wrong("quantize", "unknown option", argv[optind - 1]);
        }
    }
    if (argc - optind < 3)
        return cmd_wrong("quantize", "name the input, the output and the type", NULL);
    if (argc - optind > 3)
        return cmd_wrong("quantize", "one input, one output, one type, found also",
                         argv[optind + 3]);
    return -1;
}

static void print_result(const char *path, const struct quantize_result *r, double seconds) {
    char in[24], out[24];
    cmd_format_bytes(r->bytes_in, in);
    cmd_format_bytes(r->bytes_out, out);
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

int cmd_quantize(int argc, char **argv) {
    int threads = 0;
    int code = parse(&threads, argc, argv);
    if (code >= 0)
        return code;
    const char *in = argv[optind], *out = argv[optind + 1], *type = argv[optind + 2];
    struct err e = { 0 };
    struct progress bar = progress_begin("quantizing");
    struct quantize_options o = { .threads = threads,
                                  .progress = progress_show,
                                  .progress_user = &bar,
                                  .cancel = progress_catch_signals() };
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
        return cmd_failed("quantize", &e);
    print_result(out, &result, seconds);
    return EXIT_CLEAN;
}
