#include "infer/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "model/chat_template.h"

enum kind { TEXT, LIST, COUNT, NUMBER, SWITCH };

static const struct option {
    const char *flag, *value, *does;
    enum kind kind;
    size_t offset;
} table[] = {
#define OPTION(field, flag, kind, value, does)                                                     \
    { flag, value, does, kind, offsetof(struct options, field) },
#include "infer/options.def"
#undef OPTION
};
enum { OPTION_COUNT = sizeof table / sizeof *table };

static const struct option *find(const char *flag, size_t len) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(table[i].flag) == len && !memcmp(table[i].flag, flag, len))
            return &table[i];
    return NULL;
}

static enum rc store_count(struct options_count *to, const struct option *o, const char *text,
                           struct err *e) {
    char *end;
    errno = 0;
    to->value = strtoull(text, &end, 10);
    to->given = true;
    if (errno || end == text || *end || *text < '0' || *text > '9')
        return err_set(e, RC_USAGE, "%s: expected a whole number, found '%s'", o->flag, text);
    return RC_OK;
}

static enum rc store_number(struct options_number *to, const struct option *o, const char *text,
                            struct err *e) {
    char *end;
    to->value = strtod(text, &end);
    to->given = true;
    if (end == text || *end)
        return err_set(e, RC_USAGE, "%s: expected a number, found '%s'", o->flag, text);
    return RC_OK;
}

static enum rc store(struct options *all, const struct option *o, const char *text, struct err *e) {
    void *to = (char *)all + o->offset;
    switch (o->kind) {
    case TEXT:
        *(const char **)to = text;
        return RC_OK;
    case COUNT:
        return store_count(to, o, text, e);
    case NUMBER:
        return store_number(to, o, text, e);
    case LIST: {
        struct options_list *list = to;
        if (list->count == OPTIONS_LIST_MAX || !*text)
            return err_set(e, RC_USAGE, "%s: expected at most %d texts, none empty", o->flag,
                           OPTIONS_LIST_MAX);
        list->items[list->count++] = text;
        return RC_OK;
    }
    case SWITCH:
        *(bool *)to = true;
        return RC_OK;
    }
    return RC_OK;
}

/* ---- what options mean together -------------------------------------------------------------- */

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
    const struct {
        const char *flag;
        struct options_count value;
        uint64_t min, max;
    } counts[] = {
        { "--max-tokens", o->max_tokens, 0, 1 << 30 },   { "--ctx", o->ctx, 1, 1 << 24 },
        { "--top-k", o->top_k, 0, UINT32_MAX },          { "--chunk", o->chunk, 1, 1 << 16 },
        { "--repeat-last", o->repeat_last, 0, 1 << 30 }, { "--threads", o->threads, 1, 256 },
        { "--batch-size", o->batch_size, 1, 256 },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value.given &&
            (counts[i].value.value < counts[i].min || counts[i].value.value > counts[i].max))
            return err_set(e, RC_USAGE, "%s: expected %llu to %llu, found %llu", counts[i].flag,
                           (unsigned long long)counts[i].min, (unsigned long long)counts[i].max,
                           (unsigned long long)counts[i].value.value);
    return RC_OK;
}

/* Options that would do nothing are refused: who gives one means something by it. */
static enum rc check_company(const struct options *o, struct err *e) {
    bool trace = o->trace || env_get_str("GRETA_TRACE", NULL);
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        { o->prompt && o->prompt_file, "--prompt and --prompt-file: give one of them" },
        { o->model && !o->prompt && !o->prompt_file && !o->chat,
          "no prompt: give --prompt TEXT or --prompt-file FILE" },
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

static enum rc check(const struct options *o, struct err *e) {
    enum chat_template any;
    struct sampler_options sampling = options_sampling(o, 0);
    enum rc rc = check_counts(o, e);
    rc = rc ? rc : check_company(o, e);
    rc = rc ? rc : sampler_check(&sampling, e);
    if (!rc && o->chat_template)
        rc = chat_template_find(&any, o->chat_template, NULL, e);
    return rc;
}

enum rc options_parse(struct options *all, int argc, char **argv, struct err *e) {
    *all = (struct options){ 0 };
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            all->help = true;
            continue;
        }
        if (!strcmp(word, "--version")) {
            all->version = true;
            continue;
        }
        size_t len = strcspn(word, "=");
        const struct option *o = find(word, len);
        if (!o)
            return err_set(e, RC_USAGE, "unknown %s '%s'; greta_infer --help lists the options",
                           word[0] == '-' ? "option" : "argument", word);
        const char *value = word[len] ? word + len + 1 : NULL;
        if (o->kind == SWITCH && value)
            return err_set(e, RC_USAGE, "%s takes no value", o->flag);
        if (o->kind != SWITCH && !value && ++i == argc)
            return err_set(e, RC_USAGE, "%s: a value is missing (%s)", o->flag, o->value);
        enum rc rc = store(all, o, value ? value : argv[i], e);
        if (rc)
            return rc;
    }
    return all->help || all->version ? RC_OK : check(all, e);
}

void options_print_help(FILE *out) {
    fputs(
        "Usage: greta_infer [OPTION…]\n\n"
        "Continues a text with a GGUF model of the Llama family, on an AMD GPU or on the software\n"
        "device. Without --model it runs the demo model that is built in.\n\nOptions:\n",
        out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        char left[40];
        snprintf(left, sizeof left, "%s %s", table[i].flag, table[i].value);
        fprintf(out, "  %-24s %s\n", left, table[i].does);
    }
    fputs("  --help                   this text\n"
          "  --version                version and commit\n"
          "\nExit status: 0 done, 1 the run failed, 2 wrong usage, 3 refused (guard rail, no such\n"
          "device). GRETA_DISABLE_GUARD_RAIL=1 goes on in spite of the guard rail.\n",
          out);
}
