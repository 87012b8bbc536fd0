#include "bench/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "bench/measure.h"

enum kind { TEXT, OPTIONAL, COUNTS, COUNT, SIZE, NUMBER, SWITCH };

static const struct option {
    const char *flag, *value, *does;
    enum kind kind;
    size_t offset;
} table[] = {
#define OPTION(field, flag, kind, value, does)                                                     \
    { flag, value, does, kind, offsetof(struct options, field) },
#include "bench/options.def"
#undef OPTION
};
enum { OPTION_COUNT = sizeof table / sizeof *table };

static const struct option *find(const char *flag, size_t len) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(table[i].flag) == len && !memcmp(table[i].flag, flag, len))
            return &table[i];
    return NULL;
}

/* ---- values --------------------------------------------------------------------------------- */

/* A whole number up to a comma or the end; returns where it ends, or NULL. */
static const char *read_count(const char *text, uint32_t *out) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *text < '0' || *text > '9' || value > UINT32_MAX)
        return NULL;
    *out = (uint32_t)value;
    return *end == 0 || *end == ',' ? end : NULL;
}

static enum rc store_count(uint32_t *to, const struct option *o, const char *text, struct err *e) {
    const char *end = read_count(text, to);
    if (!end || *end)
        return err_set(e, RC_USAGE, "%s: expected a whole number, found '%s'", o->flag, text);
    return RC_OK;
}

static enum rc store_counts(struct options_counts *to, const struct option *o, const char *text,
                            struct err *e) {
    const char *at = text;
    to->count = 0;
    for (;;) {
        if (to->count == OPTIONS_COUNTS_MAX)
            return err_set(e, RC_USAGE, "%s: expected at most %d numbers", o->flag,
                           OPTIONS_COUNTS_MAX);
        at = read_count(at, &to->items[to->count++]);
        if (!at)
            return err_set(e, RC_USAGE,
                           "%s: expected whole numbers with commas between them, found '%s'",
                           o->flag, text);
        if (!*at)
            return RC_OK;
        at++;
    }
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
    case OPTIONAL:
        *(const char **)to = text;
        return RC_OK;
    case COUNTS:
        return store_counts(to, o, text, e);
    case COUNT:
        return store_count(to, o, text, e);
    case SIZE:
        if (!env_parse_u64(text, to))
            return err_set(e, RC_USAGE, "%s: expected bytes such as 512M, found '%s'", o->flag,
                           text);
        return RC_OK;
    case NUMBER:
        return store_number(to, o, text, e);
    case SWITCH:
        *(bool *)to = true;
        return RC_OK;
    }
    return RC_OK;
}

/* ---- what options mean together -------------------------------------------------------------- */

static enum rc check_range(const char *flag, uint32_t value, uint32_t min, uint32_t max,
                           struct err *e) {
    if (value < min || value > max)
        return err_set(e, RC_USAGE, "%s: expected %u to %u, found %u", flag, min, max, value);
    return RC_OK;
}

static enum rc check_list(const char *flag, const struct options_counts *list, uint32_t min,
                          uint32_t max, struct err *e) {
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < list->count; i++)
        rc = check_range(flag, list->items[i], min, max, e);
    return rc;
}

static bool any(const struct options_counts *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            return true;
    return false;
}

static enum rc check(const struct options *o, struct err *e) {
    enum { POSITIONS_MAX = 1 << 24 };
    enum rc rc = check_list("--prompt", &o->prompt, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--decode", &o->decode, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--depth", &o->depth, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--batch-size", &o->batch_size, 1, 256, e);
    rc = rc ? rc : check_list("--threads", &o->threads, 1, 256, e);
    rc = rc ? rc : check_range("--repeat", o->repeat, 1, MEASURE_SAMPLES_MAX, e);
    rc = rc ? rc : check_range("--chunk", o->chunk, 0, 1 << 16, e);
    if (rc)
        return rc;
    if (!any(&o->prompt) && !any(&o->decode))
        return err_set(e, RC_USAGE, "nothing to measure: --prompt and --decode are both 0");
    if (o->buffer && o->buffer < 1 << 20)
        return err_set(e, RC_USAGE, "--buffer: expected at least 1M, found %llu bytes",
                       (unsigned long long)o->buffer);
    if (o->tolerance.given && !o->baseline)
        return err_set(e, RC_USAGE, "--tolerance goes with --baseline FILE");
    if (!(o->tolerance.value >= 0 && o->tolerance.value < 100))
        return err_set(e, RC_USAGE, "--tolerance: expected a percentage from 0 to below 100");
    return RC_OK;
}

static void set_defaults(struct options *o) {
    *o = (struct options){ .prompt = { { 128 }, 1 },
                           .decode = { { 64 }, 1 },
                           .depth = { { 0 }, 1 },
                           .batch_size = { { 1 }, 1 },
                           .repeat = 3,
                           .tolerance = { 5, false } };
}

enum rc options_parse(struct options *all, int argc, char **argv, struct err *e) {
    set_defaults(all);
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
            return err_set(e, RC_USAGE, "unknown %s '%s'; greta_bench --help lists the options",
                           word[0] == '-' ? "option" : "argument", word);
        const char *value = word[len] ? word + len + 1 : NULL;
        if (o->kind == SWITCH && value)
            return err_set(e, RC_USAGE, "%s takes no value", o->flag);
        if (o->kind == OPTIONAL && !value)
            value = i + 1 < argc && strncmp(argv[i + 1], "--", 2) ? argv[++i] : "-";
        if (o->kind != SWITCH && !value && ++i == argc)
            return err_set(e, RC_USAGE, "%s: a value is missing (%s)", o->flag, o->value);
        enum rc rc = store(all, o, value ? value : argv[i], e);
        if (rc)
            return rc;
    }
    return all->help || all->version ? RC_OK : check(all, e);
}

void options_print_help(FILE *out) {
    fputs("Usage: greta_bench [OPTION…]\n\n"
          "Measures how fast a model reads prompts and generates, how fast this machine reads\n"
          "memory and multiplies, and what part of that the model gets.\n\nOptions:\n",
          out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        char left[40];
        snprintf(left, sizeof left, "%s %s", table[i].flag, table[i].value);
        int columns = 0; /* "…" is three bytes */
        for (const char *c = left; *c; c++)
            columns += (*c & 0xc0) != 0x80;
        fprintf(out, "  %s%*s %s\n", left, 22 - columns, "", table[i].does);
    }
    fputs("  --help                 this text\n"
          "  --version              version and commit\n"
          "\nEvery combination of decode, depth, batch size and threads is measured. Ctrl-C ends\n"
          "with what has been measured so far.\n"
          "\nExit status: 0 done, 1 the run failed or is slower than the baseline, 2 wrong usage,\n"
          "3 refused (guard rail, no such device).\n",
          out);
}
