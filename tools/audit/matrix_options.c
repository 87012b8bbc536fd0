/* matrix_options.c - the command line of `greta_audit matrix`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"

/* ---- kinds of values; `all` is the struct matrix ---- */

static enum rc no_memory(struct err *e) {
    return err_set(e, RC_MEMORY, "out of memory");
}

static enum rc read_word(void *to, const char *text, void *all, struct err *e) {
    return option_word.read(to, text, all, e);
}

static enum rc read_plain_name(void *to, const char *text, void *all, struct err *e) {
    enum rc rc = option_name.read(to, text, all, e);
    return !rc && text[0] == '.' ? err_set(e, RC_USAGE, "a file name") : rc;
}

static enum rc read_prompt(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return matrix_list_add(to, text) ? RC_OK : no_memory(e);
}

/* One prompt per line. */
static enum rc read_prompt_file(void *to, const char *path, void *all, struct err *e) {
    struct matrix *m = all;
    struct matrix_list *prompts = to;
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0, before = prompts->count;
    enum rc rc = RC_OK;
    if (!f)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    while (!rc && getline(&line, &room, f) >= 0) {
        size_t len = strcspn(line, "\r\n");
        char *copy = len ? arena_copy_text(&m->arena, line, len) : NULL;
        if (len && (!copy || !matrix_list_add(prompts, copy)))
            rc = no_memory(e);
    }
    free(line);
    fclose(f);
    if (!rc && prompts->count == before)
        rc = err_set(e, RC_FORMAT, "%s: expected one prompt per line, found none", path);
    return rc;
}

/* A part of text for each comma; the parts are the arena's. */
static enum rc read_parts(void *to, const char *text, void *all, struct err *e) {
    struct matrix *m = all;
    for (;; text++) {
        size_t n = strcspn(text, ",");
        char *part = arena_copy_text(&m->arena, text, n);
        if (!part || !matrix_list_add(to, part))
            return no_memory(e);
        text += n;
        if (!*text)
            return RC_OK;
    }
}

static enum rc read_schedules(void *to, const char *text, void *all, struct err *e) {
    static const char *const words[] = { "fast", "eager", "lazy", "random" };
    struct matrix_list *schedules = to;
    enum rc rc = read_parts(to, text, all, e);
    for (size_t i = 0; !rc && i < schedules->count; i++) {
        const char *s = schedules->items[i];
        uint64_t seed;
        bool known = !strncmp(s, "random:", 7) && env_parse_u64(s + 7, &seed);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            known |= !strcmp(s, words[k]);
        if (!known)
            rc = err_set(e, RC_USAGE, "fast, eager, lazy, random or random:SEED");
    }
    return rc;
}

/* "7" or "1-20" */
static bool parse_range(const char *text, uint64_t *from, uint64_t *to) {
    char *end;
    *from = *to = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9')
        return false;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *to = strtoull(end + 1, &end, 10);
    return !*end && *to >= *from;
}

/* "1-20,33" */
static enum rc read_seeds(void *to, const char *text, void *all, struct err *e) {
    struct matrix *m = all;
    struct matrix_list parts = { 0 };
    uint64_t *seeds = arena_alloc_array(&m->arena, MATRIX_RUNS_MAX, sizeof *seeds), first, last;
    size_t count = 0;
    enum rc rc = seeds ? read_parts(&parts, text, all, e) : no_memory(e);
    for (size_t i = 0; !rc && i < parts.count; i++) {
        if (!parse_range(parts.items[i], &first, &last) || last - first >= MATRIX_RUNS_MAX - count)
            rc = err_set(e, RC_USAGE, "numbers or ranges like 1-20");
        for (uint64_t k = 0; !rc && k <= last - first; k++)
            seeds[count++] = first + k;
    }
    free(parts.items);
    *(struct matrix_seeds *)to = (struct matrix_seeds){ seeds, count };
    return rc;
}

static enum rc read_tokens(void *to, const char *text, void *all, struct err *e) {
    enum { MOST = 1000000 };
    struct option_count count;
    enum rc rc = option_count.read(&count, text, all, e);
    if (rc || count.value < 1 || count.value > MOST)
        return err_set(e, RC_USAGE, "a number from 1 to %d", MOST);
    *(unsigned *)to = (unsigned)count.value;
    return RC_OK;
}

static enum rc read_keep(void *to, const char *text, void *all, struct err *e) {
    bool *keep_failed = to;
    (void)all;
    *keep_failed = !strcmp(text, "failed");
    return *keep_failed || !strcmp(text, "all") ? RC_OK : err_set(e, RC_USAGE, "all or failed");
}

#define MATRIX_PROFILE(id, name, ticket, lock, does) name " " ticket " "
static const char profiles[] =
#include "tools/audit/matrix.def"
    ;

static const struct option_kind option_profile = { .read = read_word, .choices = profiles };
static const struct option_kind option_plain_name = { .read = read_plain_name };
static const struct option_kind option_prompt = { .read = read_prompt, .several = true };
static const struct option_kind option_prompt_file = { .read = read_prompt_file, .several = true };
static const struct option_kind option_parts = { .read = read_parts, .several = true };
static const struct option_kind option_schedules = { .read = read_schedules, .several = true };
static const struct option_kind option_seeds = { .read = read_seeds };
static const struct option_kind option_tokens = { .read = read_tokens };
static const struct option_kind option_keep = { .read = read_keep, .choices = "all failed" };

/* ---- the table ---- */

static const struct option_row rows[] = {
#define OPTION(field, flag, kind, value, does)                                                     \
    OPTION_ROW_IN(struct matrix, o.field, flag, kind, value, does)
#define ALSO    OPTION
#define HEADING OPTION_HEADING
#include "tools/audit/matrix_options.def"
};

static void print_profiles(FILE *out) {
    const struct matrix_profile *p;
    for (size_t i = 0; (p = matrix_profile(i)) != NULL; i++) {
        fprintf(out, "  %s (%s): %s\n        ", p->plain, p->name, p->does);
        for (size_t k = 0; k < p->mode_count; k++)
            fprintf(out, "%s%s %u", k ? ", " : " ", p->modes[k].name, p->modes[k].iterations);
        fputs(p->exclusive ? "; the lock is exclusive\n" : "\n", out);
    }
}

const struct option_table cmd_matrix_options = {
    .name = "greta_audit matrix",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .first_ends = true,
    .before =
        "Usage: greta_audit matrix --profile P [options] [-- COMMAND [ARGUMENT…]]\n"
        "\n"
        "Runs a program many times in the modes of a profile, judges every run, and writes one\n"
        "report about all of them. Without COMMAND it is greta_infer, with its demo model.\n"
        "\n"
        "Profiles:\n",
    .more = print_profiles,
    .after =
        "\n"
        "Exit status: 0 clean, 1 errors or bugs were found, 2 wrong usage, 3 refused: program,\n"
        "model or device missing, device taken, or another matrix in the folder; 130 Ctrl-C.\n",
};

/* ---- all together ---- */

static int choose_profile(struct matrix *m) {
    const struct matrix_profile *p;
    if (!m->o.profile)
        return option_wrong(&cmd_matrix_options, "--profile is missing: trace, race or serialised",
                            NULL);
    for (size_t i = 0; (p = matrix_profile(i)) != NULL; i++)
        if (!strcmp(m->o.profile, p->name) || !strcmp(m->o.profile, p->plain)) {
            m->profile = *p;
            return -1;
        }
    return option_wrong(&cmd_matrix_options,
                        "no such profile (there are trace, race and serialised)", m->o.profile);
}

/* "20" or "audit=20". */
static int apply_iterations(struct matrix *m, const char *text) {
    const char *equals = strchr(text, '='), *number = equals ? equals + 1 : text;
    char *end;
    unsigned long n = strtoul(number, &end, 10);
    bool found = false;
    if (*number < '0' || *number > '9' || *end || n > MATRIX_RUNS_MAX / MATRIX_MODES_MAX)
        return option_wrong(&cmd_matrix_options,
                            "--iterations: expected a number or MODE=NUMBER, found", text);
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        struct matrix_mode *mode = &m->profile.modes[i];
        if (equals && (strlen(mode->name) != (size_t)(equals - text) ||
                       strncmp(mode->name, text, (size_t)(equals - text)) != 0))
            continue;
        mode->iterations = (unsigned)n;
        found = true;
    }
    return found ? -1
                 : option_wrong(&cmd_matrix_options, "--iterations: the profile has no such mode",
                                text);
}

static int check(struct matrix *m) {
    struct matrix_options *o = &m->o;
    unsigned total = 0;
    int code = choose_profile(m);
    for (size_t i = 0; code < 0 && i < o->iterations.count; i++)
        code = apply_iterations(m, o->iterations.items[i]);
    if (code >= 0)
        return code;
    for (size_t i = 0; i < m->profile.mode_count; i++)
        total += m->profile.modes[i].iterations;
    if (total == 0)
        return option_wrong(&cmd_matrix_options, "--iterations leaves nothing to run", NULL);
    if (m->profile.exclusive && o->jobs > 1)
        return option_wrong(&cmd_matrix_options, "--jobs: this profile does one run at a time",
                            NULL);
    if (o->command && (o->model || o->prompts.count || o->inject.count))
        return option_wrong(
            &cmd_matrix_options,
            "--model, --prompt, --prompts and --inject are greta_infer's; pass what your "
            "program takes after its name",
            NULL);
    if (o->command || o->prompts.count || matrix_list_add(&o->prompts, "Hi"))
        return -1;
    matrix_say("out of memory");
    return EXIT_REFUSED;
}

int matrix_options_parse(struct matrix *m, int argc, char **argv) {
    struct option_operands program;
    m->o.max_tokens = 5;
    m->o.jobs = 1;
    m->o.timeout = 600;
    m->o.wait = 10;
    int code = option_begin(&cmd_matrix_options, m, argc, argv, &program);
    if (code >= 0)
        return code;
    if (program.count && !program.separated)
        return option_wrong(&cmd_matrix_options, "expected -- before the program, found",
                            program.words[0]);
    if (program.separated && !program.count)
        return option_wrong(&cmd_matrix_options, "expected a program after --", NULL);
    m->o.command = program.count ? program.words : NULL;
    return check(m);
}
