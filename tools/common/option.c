#include "tools/common/option.h"

#include <stdarg.h>
#include <string.h>

#include "tools/common/completion.h"
#include "tools/common/program.h"

/* ---- saying ---------------------------------------------------------------------------------- */

void option_say(const struct option_table *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s: ", t->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

int option_wrong(const struct option_table *t, const char *what, const char *value) {
    option_say(t, "%s%s%s; `%s --help` shows the usage", what, value ? ": " : "",
               value ? value : "", t->name);
    return EXIT_WRONG;
}

bool option_flush(const struct option_table *t) {
    return program_finish_output(t->name) == EXIT_CLEAN;
}

/* Errors in the arguments. A command adds how to get its help. */

enum { FLAG_MAX = 40 };

/* The edit distance of two words; FLAG_MAX if one of them is too long. */
static size_t count_slips(const char *a, size_t length, const char *b) {
    size_t costs[FLAG_MAX + 1], width = strlen(b);
    if (length > FLAG_MAX || width > FLAG_MAX)
        return FLAG_MAX;
    for (size_t j = 0; j <= width; j++)
        costs[j] = j;
    for (size_t i = 1; i <= length; i++) {
        size_t corner = costs[0];
        costs[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t changed = corner + (a[i - 1] != b[j - 1]);
            size_t shorter = (costs[j] < costs[j - 1] ? costs[j] : costs[j - 1]) + 1;
            corner = costs[j];
            costs[j] = changed < shorter ? changed : shorter;
        }
    }
    return costs[width];
}

/* The flag that a misspelt one may have meant; NULL if none is near. */
static const char *guess_flag(const struct option_table *t, const char *word) {
    enum { SLIPS = 2 };
    const struct option_row *row;
    const char *nearest = NULL;
    size_t least = SLIPS + 1, length = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0 || length < 5)
        return NULL;
    for (size_t i = 0; (row = option_row(t, i)) != NULL; i++) {
        size_t slips = count_slips(word, length, option_long_flag(row));
        if (slips < least) {
            least = slips;
            nearest = option_long_flag(row);
        }
    }
    return nearest;
}

/* "m.gguf" where "-m m.gguf" is wanted. */
static bool is_model(const struct option_table *t, const char *word) {
    const char *end = strrchr(word, '.');
    const struct option_row *row;
    for (size_t i = 0; end && !strcmp(end, ".gguf") && (row = option_row(t, i)) != NULL; i++)
        if (!strcmp(option_long_flag(row), "--model"))
            return true;
    return false;
}

static enum rc unknown_word(const struct option_table *t, const char *word, struct err *e) {
    const char *guess = guess_flag(t, word);
    if (t->command)
        return err_set(e, RC_USAGE, "unknown option: %s%s%s%s", word,
                       guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
    if (is_model(t, word))
        return err_set(e, RC_USAGE, "unknown argument '%s': a model is given with -m FILE", word);
    return err_set(e, RC_USAGE, "unknown %s '%s'%s%s%s; %s --help lists the options",
                   word[0] == '-' ? "option" : "argument", word, guess ? " (did you mean " : "",
                   guess ? guess : "", guess ? "?)" : "", t->name);
}

static enum rc value_is_missing(const struct option_table *t, const char *word,
                                const struct option_row *row, struct err *e) {
    if (t->command)
        return err_set(e, RC_USAGE, "option without its value: %s", word);
    return err_set(e, RC_USAGE, "%s: a value is missing (%s)", option_long_flag(row), row->value);
}

static enum rc takes_no_value(const struct option_table *t, const char *word,
                              const struct option_row *row, struct err *e) {
    return t->command ? unknown_word(t, word, e)
                      : err_set(e, RC_USAGE, "%s takes no value", option_long_flag(row));
}

/* e holds what was expected. */
static enum rc value_is_wrong(const struct option_table *t, const struct option_row *row,
                              const char *text, struct err *e) {
    struct err expected = *e;
    if (!t->command)
        return err_set(e, RC_USAGE, "%s: expected %s, found '%s'", option_long_flag(row),
                       expected.msg, text);
    return err_set(e, RC_USAGE, "%s wants %s%s%s", option_long_flag(row), expected.msg,
                   *text ? ", found: " : "", text);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct option_kind wish = { .bare = true };
static const struct option_kind shell = { .choices = OPTION_SHELLS };
static const struct option_row common_rows[] = {
    { "--help", "", "this text", &wish, 0 },
    { "--version", "", "version and commit", &wish, 0 },
    { "--completion", "SHELL", "completions for bash, zsh or fish", &shell, 0 },
};

/* All of them, headings too. */
static const struct option_row *any_row(const struct option_table *t, size_t index) {
    size_t common = t->command ? 1 : OPTION_COUNT_OF(common_rows);
    return index < t->count            ? &t->rows[index]
           : index - t->count < common ? &common_rows[index - t->count]
                                       : NULL;
}

const struct option_row *option_row(const struct option_table *t, size_t index) {
    const struct option_row *row = NULL;
    for (size_t i = 0; (row = any_row(t, i)) != NULL; i++)
        if (row->flag && !index--)
            break;
    return row;
}

/* ---- parsing --------------------------------------------------------------------------------- */

const char *option_long_flag(const struct option_row *row) {
    return strstr(row->flag, "--");
}

char option_short_flag(const struct option_row *row) {
    return (char)(row->flag[1] == '-' ? 0 : row->flag[1]);
}

/* Whether a row's long flag begins with these letters; exact: whether it is these letters. */
static bool begins(const struct option_row *row, const char *word, size_t len, bool exact) {
    const char *flag = row->flag ? option_long_flag(row) : "";
    return strncmp(flag, word, len) == 0 && (!exact || !flag[len]);
}

/* The only row whose flag is `word` or, if there is none, begins with it. NULL with *several set to
 * the number of rows that do. */
static const struct option_row *find_long(const struct option_table *t, const char *word,
                                          size_t len, int *several) {
    const struct option_row *found = NULL, *row;
    *several = 0;
    for (size_t i = 0; (row = any_row(t, i)) != NULL; i++) {
        if (begins(row, word, len, true))
            return row;
        if (begins(row, word, len, false)) {
            found = row;
            ++*several;
        }
    }
    return len > 2 && *several == 1 ? found : NULL;
}

static enum rc ambiguous_word(const struct option_table *t, const char *word, size_t len,
                              struct err *e) {
    char names[400] = "";
    size_t used = 0;
    const struct option_row *row;
    for (size_t i = 0; (row = any_row(t, i)) != NULL; i++)
        if (begins(row, word, len, false) && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     option_long_flag(row));
    return err_set(e, RC_USAGE, "option '%.*s' is ambiguous: it could be %s", (int)len, word,
                   names);
}

static const struct option_row *find_short(const struct option_table *t, char letter) {
    for (const struct option_row *row = t->rows; row < t->rows + t->count; row++)
        if (row->flag && option_short_flag(row) == letter)
            return row;
    return NULL;
}

struct words {
    int argc, at; /* at: the next one */
    char **argv;
};

/* A dash by itself is a file. */
static bool is_an_option(const char *word) {
    return word[0] == '-' && word[1];
}

/* One option, with its value after an equals sign, in the same word (-oFILE) or in the next. */
static enum rc take_option(const struct option_table *t, void *values, struct words *w,
                           struct err *e) {
    const char *word = w->argv[w->at++];
    bool brief = word[0] == '-' && word[1] && word[1] != '-';
    size_t len = brief ? 2 : strcspn(word, "=");
    int several = 0;
    const struct option_row *row =
        brief ? find_short(t, word[1]) : find_long(t, word, len, &several);
    if (!row)
        return several > 1 && len > 2 ? ambiguous_word(t, word, len, e) : unknown_word(t, word, e);
    const char *value = word[len] ? word + len + !brief : NULL;
    if (row->kind->bare && value)
        return takes_no_value(t, word, row, e);
    bool more = w->at < w->argc;
    if (row->kind->optional && !value)
        value = more && !is_an_option(w->argv[w->at]) ? w->argv[w->at++] : "-";
    if (!row->kind->bare && !value && !more)
        return value_is_missing(t, word, row, e);
    if (!row->kind->bare && !value)
        value = w->argv[w->at++];
    enum rc rc = row->kind->read((char *)values + row->offset, value, values, e);
    return rc == RC_USAGE ? value_is_wrong(t, row, value ? value : "", e) : rc;
}

enum wish { RUN, HELP, VERSION, COMPLETION };

/* What a word asks for if it is one of the rows that every table has. */
static enum wish wish_of(const struct option_table *t, const char *word) {
    static const enum wish wishes[] = { HELP, VERSION, COMPLETION };
    size_t len = strcspn(word, "=");
    int several;
    if (!strcmp(word, "-h"))
        return HELP;
    const struct option_row *row =
        strncmp(word, "--", 2) ? NULL : find_long(t, word, len, &several);
    for (size_t i = 0; i < OPTION_COUNT_OF(common_rows); i++)
        if (row == &common_rows[i] && !(word[len] && row->kind->bare))
            return wishes[i];
    return RUN;
}

/* Reads arguments up to the end, to one that asks for something else than a run (--help), or to the
 * words that belong to another program; operands between options move to the front. */
static enum rc parse(const struct option_table *t, void *values, struct words *w,
                     struct option_operands *left, enum wish *asked, struct err *e) {
    enum rc rc = RC_OK;
    *left = (struct option_operands){ .words = w->argv + 1 };
    while (!rc && w->at < w->argc) {
        char *word = w->argv[w->at];
        if ((*asked = wish_of(t, word)) != RUN)
            return RC_OK;
        bool operand = t->command && (word[0] != '-' || !word[1]);
        left->separated = t->command && !strcmp(word, "--");
        w->at += left->separated;
        if (left->separated || (operand && t->first_ends))
            break;
        if (operand)
            left->words[left->count++] = w->argv[w->at++];
        else
            rc = take_option(t, values, w, e);
    }
    while (!rc && w->at < w->argc)
        left->words[left->count++] = w->argv[w->at++];
    if (!rc && w->argc > 0)
        left->words[left->count] = NULL;
    return rc || !t->check ? rc : t->check(values, e);
}

enum rc option_check_range(const char *flag, struct option_count count, uint64_t min, uint64_t max,
                           struct err *e) {
    if (count.given && (count.value < min || count.value > max))
        return err_set(e, RC_USAGE, "%s: expected %llu to %llu, found %llu", flag,
                       (unsigned long long)min, (unsigned long long)max,
                       (unsigned long long)count.value);
    return RC_OK;
}

/* ---- the help -------------------------------------------------------------------------------- */

int option_columns(const char *text) {
    int columns = 0;
    for (; *text; text++)
        columns += (*text & 0xc0) != 0x80; /* not inside a character */
    return columns;
}

static int flag_columns(const struct option_row *row) {
    return row->flag ? option_columns(row->flag) + (*row->value != 0) + option_columns(row->value)
                     : 0;
}

/* "--flag VALUE" and, from a column on, what it does. */
static void print_row(FILE *out, const struct option_row *row, int width) {
    int used = flag_columns(row);
    fprintf(out, "  %s%s%s", row->flag, *row->value ? " " : "", row->value);
    if (used > width)
        fprintf(out, "\n%*s", width + 4, "");
    else
        fprintf(out, "%*s", width - used + 2, "");
    for (const char *c = row->does; *c; c++) {
        fputc(*c, out);
        if (*c == '\n')
            fprintf(out, "%*s", width + 4, "");
    }
    fputc('\n', out);
}

static void print_help(const struct option_table *t, FILE *out) {
    enum { WIDTH_MAX = 22 };
    const struct option_row *row;
    int width = 0;
    for (size_t i = 0; (row = any_row(t, i)) != NULL; i++)
        if (flag_columns(row) > width && flag_columns(row) <= WIDTH_MAX)
            width = flag_columns(row);
    fputs(t->before, out);
    if (t->more)
        t->more(out);
    for (size_t i = 0; (row = any_row(t, i)) != NULL; i++)
        if (row->flag)
            print_row(out, row, width);
        else
            fprintf(out, "\n%s\n", row->does);
    if (t->after)
        fputs(t->after, out);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int option_begin(const struct option_table *t, void *values, int argc, char **argv,
                 struct option_operands *operands) {
    struct words w = { argc, 1, argv };
    struct option_operands none;
    struct err e = { 0 };
    enum wish asked = RUN;
    enum rc rc = parse(t, values, &w, operands ? operands : &none, &asked, &e);
    if (rc == RC_USAGE && t->command)
        return option_wrong(t, e.msg, NULL);
    if (rc)
        option_say(t, "%s", e.msg);
    if (rc)
        return rc == RC_USAGE ? EXIT_WRONG : EXIT_REFUSED;
    struct completion_words all = { .program = t->name, .options = t };
    const char *value;
    switch (asked) {
    case HELP:
        print_help(t, stdout);
        return program_finish_output(t->name);
    case VERSION:
        program_print_version(t->name);
        return program_finish_output(t->name);
    case COMPLETION:
        value = strchr(w.argv[w.at], '=');
        return completion_main(&all, value ? value + 1 : w.argv[w.at + 1]);
    default:
        return -1;
    }
}
