#include "infer/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    return RC_OK;
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
