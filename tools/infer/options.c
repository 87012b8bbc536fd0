#include "tools/infer/options.h"

#include <unistd.h>

#include "base/env.h"
#include "model/tokenizer/chat_template.h"

struct sampler_options options_sampling(const struct options *o, uint64_t seed) {
    struct sampler_options s = sampler_defaults;
    if (o->temperature.given)
        s.temperature = (float)o->temperature.value;
    if (o->greedy)
        s.temperature = 0;
    if (o->top_k.given)
        s.top_k = (uint32_t)o->top_k.value;
    if (o->top_p.given)
        s.top_p = (float)o->top_p.value;
    if (o->min_p.given)
        s.min_p = (float)o->min_p.value;
    if (o->repeat_penalty.given)
        s.repeat_penalty = (float)o->repeat_penalty.value;
    if (o->repeat_last.given)
        s.repeat_last = (uint32_t)o->repeat_last.value;
    s.seed = seed;
    return s;
}

bool options_are_interactive(const struct options *o) {
    return o->chat && !o->prompt_file && isatty(STDIN_FILENO);
}

static enum rc check_counts(const struct options *o, struct err *e) {
    enum rc rc = option_check_range("--max-tokens", o->max_tokens, 0, 1 << 30, e);
    rc = rc ? rc : option_check_range("--ctx", o->ctx, 1, 1 << 24, e);
    rc = rc ? rc : option_check_range("--top-k", o->top_k, 0, UINT32_MAX, e);
    rc = rc ? rc : option_check_range("--chunk", o->chunk, 1, 1 << 16, e);
    rc = rc ? rc : option_check_range("--repeat-last", o->repeat_last, 0, 1 << 30, e);
    rc = rc ? rc : option_check_range("--threads", o->threads, 1, 256, e);
    return rc ? rc : option_check_range("--batch-size", o->batch_size, 1, 256, e);
}

/* Options that would do nothing are refused: a user who gives one expects an effect. */
static enum rc check_company(const struct options *o, struct err *e) {
    bool trace = o->trace || env_text(ENV_GRETA_TRACE);
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        { o->prompt && o->prompt_file, "--prompt and --prompt-file: give one of them" },
        { o->prompts && (o->prompt || o->prompt_file || o->chat),
          "--prompts goes neither with another prompt nor with --chat" },
        { o->prompts && o->batch_size.given, "--prompts: each prompt is continued once" },
        { o->prompts && o->dump_logits, "--dump-logits: give one prompt, not --prompts" },
        { o->packed_cache && o->no_repack, "--packed-cache does not go with --no-repack" },
        { o->system && !o->chat, "--system goes with --chat" },
        { o->chat_template && !o->chat, "--chat-template goes with --chat" },
        { o->special && o->chat,
          "--special does not go with --chat, which writes the markup itself" },
        { o->batch_size.value > 1 && o->chat, "--batch-size: a conversation has one sequence" },
        { o->dump_prompt && !o->dump_logits, "--dump-logits-prompt goes with --dump-logits DIR" },
        { o->trace_file && !trace, "--trace-file goes with --trace POINTS" },
        { o->trace_dump && !trace, "--trace-dump goes with --trace POINTS" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return err_set(e, RC_USAGE, "%s", rules[i].why);
    return RC_OK;
}

/* The sampler names its fields as the options are called. */
static enum rc check_sampling(const struct sampler_options *sampling, struct err *e) {
    enum rc rc = sampler_check(sampling, e);
    struct err why = *e;
    return rc ? err_set(e, rc, "--%s", why.msg) : RC_OK;
}

static enum rc check(const void *values, struct err *e) {
    const struct options *o = values;
    enum chat_template any;
    struct sampler_options sampling = options_sampling(o, 0);
    enum rc rc = check_counts(o, e);
    rc = rc ? rc : check_company(o, e);
    rc = rc ? rc : check_sampling(&sampling, e);
    if (!rc && o->chat_template)
        rc = chat_template_find(&any, o->chat_template, NULL, e);
    return rc;
}

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/infer/options.def"
};

const struct option_table options_table = {
    .name = "greta_infer",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .check = check,
    .before = "Usage: greta_infer [OPTION…]\n\n"
              "Continues a text with a GGUF model (Llama, Mistral, Qwen, Gemma, Phi-3, StarCoder "
              "2) on an\n"
              "AMD GPU or on the software device. Without --model it runs the demo model that is "
              "built in.\n"
              "\nOptions:\n",
    .after =
        "\nWithout --prompt the prompt comes from standard input, unless that is a terminal.\n"
        "Exit status: 0 done, 1 the run failed, 2 wrong usage, 3 refused (guard rail, no such\n"
        "device), 130 ended by Ctrl-C. GRETA_DISABLE_GUARD_RAIL=1 runs a model that the guard "
        "rail\n"
        "would refuse.\n",
};
