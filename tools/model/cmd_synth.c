/* greta_model synth - writes a model with random weights. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/env.h"
#include "model/cmd.h"
#include "model/synth.h"

static const char help[] =
    "Usage: greta_model synth [options] -o FILE\n"
    "\n"
    "Writes a model with random weights and a working tokenizer; the same seed gives the same "
    "file.\n"
    "\n"
    "  --shape S    llama-2-7b, llama-2-13b, llama-3-8b, mistral-7b, tinyllama-1.1b, tiny (the\n"
    "               default), or key=value,… with keys dim, layers, heads, kv_heads, head_dim,\n"
    "               hidden, vocab, ctx, arch (llama, qwen2, qwen3), tied (0, 1), rope_base,\n"
    "               rope_scaling (none, linear, yarn, llama3), rope_factor, rope_ctx, window;\n"
    "               a name may come first: tiny,layers=5\n"
    "  --type T     type of the matrices (Q4_0 is the default):\n"
    "               %s\n"
    "  --seed N     seed of the random numbers (1)\n"
    "  --vocab F    take the tokenizer, and the vocabulary's size, from this GGUF file\n"
    "  --threads N  threads (all processors)\n"
    "  -o FILE      the file to write; it appears when it is complete\n"
    "  --help       this text\n";

enum { OPTION_SHAPE = 256, OPTION_TYPE, OPTION_SEED, OPTION_VOCAB, OPTION_THREADS };

static const struct option long_options[] = {
    { "shape", required_argument, NULL, OPTION_SHAPE },
    { "type", required_argument, NULL, OPTION_TYPE },
    { "seed", required_argument, NULL, OPTION_SEED },
    { "vocab", required_argument, NULL, OPTION_VOCAB },
    { "threads", required_argument, NULL, OPTION_THREADS },
    { "output", required_argument, NULL, 'o' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct words {
    const char *shape, *type, *vocab, *output;
    uint64_t seed;
    int threads;
};

/* -1: go on; otherwise the exit code. */
static int parse(struct words *w, int argc, char **argv) {
    int c;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while ((c = getopt_long(argc, argv, ":ho:", long_options, NULL)) != -1) {
        switch (c) {
        case OPTION_SHAPE:
            w->shape = optarg;
            break;
        case OPTION_TYPE:
            w->type = optarg;
            break;
        case OPTION_SEED:
            if (!env_parse_u64(optarg, &w->seed))
                return cmd_wrong("synth", "--seed wants a number, found", optarg);
            break;
        case OPTION_VOCAB:
            w->vocab = optarg;
            break;
        case OPTION_THREADS:
            if (!cmd_parse_count(optarg, 256, &w->threads))
                return cmd_wrong("synth", "--threads wants 1 to 256, found", optarg);
            break;
        case 'o':
            w->output = optarg;
            break;
        case 'h':
            printf(help, quant_mix_names());
            return EXIT_CLEAN;
        case ':':
            return cmd_wrong("synth", "option without its value", argv[optind - 1]);
        default:
            return cmd_wrong("synth", "unknown option", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return cmd_wrong("synth", "the output is named with -o, found also", argv[optind]);
    if (!w->output)
        return cmd_wrong("synth", "name the output with -o FILE", NULL);
    return -1;
}

static enum rc take_vocab(const struct words *w, bool vocab_given, struct synth_options *o,
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
    struct words w = { .shape = "tiny", .type = "Q4_0", .seed = 1 };
    int code = parse(&w, argc, argv);
    if (code >= 0)
        return code;
    struct err e = { 0 };
    struct synth_options o = { .seed = w.seed, .threads = w.threads };
    struct progress bar = progress_begin("writing");
    gguf *vocab = NULL;
    bool vocab_given;
    o.progress = progress_show;
    o.progress_user = &bar;
    o.cancel = progress_catch_signals();
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
        return cmd_failed("synth", &e);
    gguf *made = NULL;
    if (gguf_open(&made, w.output, &e))
        return cmd_failed("synth", &e);
    char size[24];
    cmd_format_bytes(gguf_file_bytes(made), size);
    printf("%s: %" PRIu64 " tensors, %s, in %.1f s\n", w.output, gguf_tensor_count(made), size,
           seconds);
    gguf_close(&made);
    return EXIT_CLEAN;
}
