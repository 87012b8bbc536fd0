/* matrix_options.c - the command line of `greta_audit matrix`. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "audit/cmd.h"
#include "audit/matrix.h"
#include "base/env.h"

static const char help_head[] =
    "Usage: greta_audit matrix --profile P [options] [-- COMMAND [ARGUMENT…]]\n"
    "\n"
    "Runs a program many times in the modes of a profile, judges every run, and writes one\n"
    "report about all of them. Without COMMAND it is greta_infer, with its demo model.\n"
    "\n"
    "Profiles:\n";

static const char help_options[] =
    "\n"
    "What is run:\n"
    "  --model FILE      model for greta_infer\n"
    "  --prompt TEXT     prompt for greta_infer (Hi); several are taken in turn\n"
    "  --prompts FILE    the same, a prompt a line\n"
    "  --max-tokens N    tokens that greta_infer generates (5)\n"
    "  --inject FAULT    a fault that greta_infer makes itself; may be given several times\n"
    "  --iterations N | MODE=N,…\n"
    "                    runs of every mode, or of some\n"
    "  --schedules S,…   of the software device, in turn: fast, eager, lazy, random, random:SEED\n"
    "  --seeds A-B | A,B,…\n"
    "                    for greta_infer and for random schedules (1, 2, 3, …)\n"
    "  --device D        hip: a GPU; soft: the software device; auto: a GPU if there is one\n"
    "  --watch-host      catch the host's accesses to memory of unfinished copies\n"
    "  --timeout S       time limit of a run in seconds (600)\n"
    "  --jobs N          runs at a time (1)\n"
    "\n"
    "What comes of it:\n"
    "  --out DIR         where everything goes (artifacts/DATE/NAME)\n"
    "  --name NAME       that name, instead of the profile's\n"
    "  --resume          go on with what was interrupted; so does the same --out\n"
    "  --keep all|failed recordings of all runs (the default), or only of those with errors\n"
    "  --lang en|es      language of FINAL_REPORT.md\n"
    "  --expect-failure  the program is known to fail: say NOT_REPRODUCED if it does not\n"
    "  --expect-commit C, --expect-model-hash H\n"
    "                    refuse to judge runs of anything else\n"
    "  --wait S          wait so long for the device, if another matrix has it (10)\n"
    "  --lock FILE       lock file, instead of the device's own\n"
    "  --dry-run         print the runs and end\n"
    "  --quiet           no progress line\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 clean, 1 errors or bugs were found, or it was interrupted, 2 wrong usage,\n"
    "3 refused: program, model or device missing, device taken, or another matrix in the folder.\n";

enum {
    OPTION_PROFILE = 256,
    OPTION_MODEL,
    OPTION_PROMPT,
    OPTION_PROMPTS,
    OPTION_TOKENS,
    OPTION_INJECT,
    OPTION_ITERATIONS,
    OPTION_SCHEDULES,
    OPTION_SEEDS,
    OPTION_DEVICE,
    OPTION_WATCH,
    OPTION_TIMEOUT,
    OPTION_JOBS,
    OPTION_OUT,
    OPTION_NAME,
    OPTION_RESUME,
    OPTION_KEEP,
    OPTION_LANG,
    OPTION_FAILURE,
    OPTION_COMMIT,
    OPTION_HASH,
    OPTION_WAIT,
    OPTION_LOCK,
    OPTION_DRY,
    OPTION_QUIET,
};

static const struct option long_options[] = {
    { "profile", required_argument, NULL, OPTION_PROFILE },
    { "model", required_argument, NULL, OPTION_MODEL },
    { "prompt", required_argument, NULL, OPTION_PROMPT },
    { "prompts", required_argument, NULL, OPTION_PROMPTS },
    { "max-tokens", required_argument, NULL, OPTION_TOKENS },
    { "inject", required_argument, NULL, OPTION_INJECT },
    { "iterations", required_argument, NULL, OPTION_ITERATIONS },
    { "schedules", required_argument, NULL, OPTION_SCHEDULES },
    { "seeds", required_argument, NULL, OPTION_SEEDS },
    { "device", required_argument, NULL, OPTION_DEVICE },
    { "watch-host", no_argument, NULL, OPTION_WATCH },
    { "timeout", required_argument, NULL, OPTION_TIMEOUT },
    { "jobs", required_argument, NULL, OPTION_JOBS },
    { "out", required_argument, NULL, OPTION_OUT },
    { "name", required_argument, NULL, OPTION_NAME },
    { "resume", no_argument, NULL, OPTION_RESUME },
    { "keep", required_argument, NULL, OPTION_KEEP },
    { "lang", required_argument, NULL, OPTION_LANG },
    { "expect-failure", no_argument, NULL, OPTION_FAILURE },
    { "expect-commit", required_argument, NULL, OPTION_COMMIT },
    { "expect-model-hash", required_argument, NULL, OPTION_HASH },
    { "wait", required_argument, NULL, OPTION_WAIT },
    { "lock", required_argument, NULL, OPTION_LOCK },
    { "dry-run", no_argument, NULL, OPTION_DRY },
    { "quiet", no_argument, NULL, OPTION_QUIET },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

void matrix_say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("greta_audit matrix: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int wrong(const char *what, const char *value) {
    matrix_say("%s%s%s; `greta_audit matrix --help` shows the usage", what, value ? ": " : "",
               value ? value : "");
    return EXIT_WRONG;
}

static int no_memory(void) {
    matrix_say("out of memory");
    return EXIT_REFUSED;
}

static void print_help(void) {
    const struct matrix_profile *p;
    fputs(help_head, stdout);
    for (size_t i = 0; (p = matrix_profile(i)) != NULL; i++) {
        printf("  %-6s %s\n        ", p->name, p->does);
        for (size_t k = 0; k < p->mode_count; k++)
            printf("%s%s %u", k ? ", " : " ", p->modes[k].name, p->modes[k].iterations);
        puts(p->exclusive ? "; the lock is exclusive" : "");
    }
    fputs(help_options, stdout);
}

/* ---- lists ---- */

/* A list of texts with a part of text for each comma; the parts are the arena's. */
static int take_list(struct matrix *m, struct matrix_list *l, const char *text) {
    for (;; text++) {
        size_t n = strcspn(text, ",");
        char *part = arena_copy_text(&m->arena, text, n);
        if (!part || !matrix_list_add(l, part))
            return no_memory();
        text += n;
        if (!*text)
            return -1;
    }
}

static int take_schedules(struct matrix *m, const char *value) {
    static const char *const words[] = { "fast", "eager", "lazy", "random" };
    int code = take_list(m, &m->o.schedules, value);
    for (size_t i = 0; code < 0 && i < m->o.schedules.count; i++) {
        const char *s = m->o.schedules.items[i];
        uint64_t seed;
        bool known = !strncmp(s, "random:", 7) && env_parse_u64(s + 7, &seed);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            known |= !strcmp(s, words[k]);
        if (!known)
            return wrong("--schedules wants fast, eager, lazy, random or random:SEED, found", s);
    }
    return code;
}

/* "1-20,33" */
static int take_seeds(struct matrix *m, const char *value) {
    struct matrix_list parts = { 0 };
    int code = take_list(m, &parts, value);
    uint64_t *seeds = arena_alloc_array(&m->arena, MATRIX_RUNS_MAX, sizeof *seeds);
    size_t count = 0;
    if (code < 0 && !seeds)
        code = no_memory();
    for (size_t i = 0; code < 0 && i < parts.count; i++) {
        char *end;
        const char *s = parts.items[i];
        uint64_t from = strtoull(s, &end, 10), to = from;
        bool good = *s >= '0' && *s <= '9';
        if (good && *end == '-' && end[1] >= '0' && end[1] <= '9')
            to = strtoull(end + 1, &end, 10);
        if (!good || *end || to < from || to - from >= MATRIX_RUNS_MAX - count)
            code = wrong("--seeds wants numbers or ranges like 1-20, found", s);
        for (uint64_t seed = from; code < 0; seed++) {
            seeds[count++] = seed;
            if (seed == to)
                break;
        }
    }
    free(parts.items);
    m->o.seeds = seeds;
    m->o.seed_count = count;
    return code;
}

static int take_prompts(struct matrix *m, const char *path) {
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0, before = m->o.prompts.count;
    int code = -1;
    if (!f) {
        matrix_say("%s: %s", path, strerror(errno));
        return EXIT_REFUSED;
    }
    while (code < 0 && getline(&line, &room, f) >= 0) {
        size_t len = strcspn(line, "\r\n");
        char *copy = len ? arena_copy_text(&m->arena, line, len) : NULL;
        if (len && (!copy || !matrix_list_add(&m->o.prompts, copy)))
            code = no_memory();
    }
    free(line);
    fclose(f);
    if (code < 0 && m->o.prompts.count == before) {
        matrix_say("%s: expected a prompt a line, found none", path);
        return EXIT_REFUSED;
    }
    return code;
}

/* ---- numbers ---- */

static int take_count(const char *flag, const char *value, unsigned max, unsigned *out) {
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || n < 1 || n > max) {
        matrix_say("%s wants a number from 1 to %u, found: %s", flag, max, value);
        return EXIT_WRONG;
    }
    *out = (unsigned)n;
    return -1;
}

static int take_seconds(const char *flag, const char *value, double least, double *out) {
    char *end;
    double n = strtod(value, &end);
    if (!*value || *end || !(n >= least) || !(n < 1e9)) {
        matrix_say("%s wants seconds, found: %s", flag, value);
        return EXIT_WRONG;
    }
    *out = n;
    return -1;
}

/* ---- one option ---- */

static int take_text(struct matrix *m, int c, const char *value) {
    struct matrix_options *o = &m->o;
    const char *flag = NULL;
    for (size_t i = 0; long_options[i].name; i++)
        if (long_options[i].val == c)
            flag = long_options[i].name;
    const char **const to = c == OPTION_PROFILE  ? &o->profile
                            : c == OPTION_MODEL  ? &o->model
                            : c == OPTION_OUT    ? &o->out
                            : c == OPTION_NAME   ? &o->name
                            : c == OPTION_LOCK   ? &o->lock
                            : c == OPTION_COMMIT ? &o->expect_commit
                                                 : &o->expect_model_hash;
    *to = value;
    if (!*value) {
        matrix_say("--%s wants a value; `greta_audit matrix --help` shows the usage", flag);
        return EXIT_WRONG;
    }
    if (c == OPTION_NAME && (strchr(value, '/') || value[0] == '.'))
        return wrong("--name wants a file name, found", value);
    if (c == OPTION_COMMIT && strlen(value) < 7)
        return wrong("--expect-commit wants 7 digits or more, found", value);
    return -1;
}

static int take_word(struct matrix *m, int c, const char *value) {
    struct matrix_options *o = &m->o;
    if (c == OPTION_DEVICE) {
        o->device = value;
        bool known = !strcmp(value, "auto") || !strcmp(value, "hip") || !strcmp(value, "soft");
        return known ? -1 : wrong("--device wants auto, hip or soft, found", value);
    }
    if (c == OPTION_LANG)
        return lang_parse(value, &o->lang) ? -1 : wrong("--lang wants en or es, found", value);
    o->keep_failed = !strcmp(value, "failed");
    return o->keep_failed || !strcmp(value, "all")
               ? -1
               : wrong("--keep wants all or failed, found", value);
}

static int take_switch(struct matrix *m, int c) {
    struct matrix_options *o = &m->o;
    bool *const to = c == OPTION_WATCH     ? &o->watch_host
                     : c == OPTION_RESUME  ? &o->resume
                     : c == OPTION_FAILURE ? &o->expect_failure
                     : c == OPTION_DRY     ? &o->dry_run
                                           : &o->quiet;
    *to = true;
    return -1;
}

static int take(struct matrix *m, int c, const char *value) {
    struct matrix_options *o = &m->o;
    switch (c) {
    case OPTION_PROMPT:
        return matrix_list_add(&o->prompts, value) ? -1 : no_memory();
    case OPTION_INJECT:
        return matrix_list_add(&o->inject, value) ? -1 : no_memory();
    case OPTION_PROMPTS:
        return take_prompts(m, value);
    case OPTION_ITERATIONS:
        return take_list(m, &o->iterations, value);
    case OPTION_SCHEDULES:
        return take_schedules(m, value);
    case OPTION_SEEDS:
        return take_seeds(m, value);
    case OPTION_TOKENS:
        return take_count("--max-tokens", value, 1000000, &o->max_tokens);
    case OPTION_JOBS:
        return take_count("--jobs", value, 256, &o->jobs);
    case OPTION_TIMEOUT:
        return take_seconds("--timeout", value, 0.001, &o->timeout);
    case OPTION_WAIT:
        return take_seconds("--wait", value, 0, &o->wait);
    case OPTION_DEVICE:
    case OPTION_LANG:
    case OPTION_KEEP:
        return take_word(m, c, value);
    default:
        return value ? take_text(m, c, value) : take_switch(m, c);
    }
}

/* ---- all together ---- */

static int choose_profile(struct matrix *m) {
    const struct matrix_profile *p;
    if (!m->o.profile)
        return wrong("--profile is missing: b3.62, b3.63 or b3.64", NULL);
    for (size_t i = 0; (p = matrix_profile(i)) != NULL; i++)
        if (!strcmp(m->o.profile, p->name)) {
            m->profile = *p;
            return -1;
        }
    return wrong("no such profile (there are b3.62, b3.63 and b3.64)", m->o.profile);
}

/* "20" or "audit=20". */
static int apply_iterations(struct matrix *m, const char *text) {
    const char *equals = strchr(text, '='), *number = equals ? equals + 1 : text;
    char *end;
    unsigned long n = strtoul(number, &end, 10);
    bool found = false;
    if (*number < '0' || *number > '9' || *end || n > MATRIX_RUNS_MAX / MATRIX_MODES_MAX)
        return wrong("--iterations wants a number or MODE=NUMBER, found", text);
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        struct matrix_mode *mode = &m->profile.modes[i];
        if (equals && (strlen(mode->name) != (size_t)(equals - text) ||
                       strncmp(mode->name, text, (size_t)(equals - text)) != 0))
            continue;
        mode->iterations = (unsigned)n;
        found = true;
    }
    return found ? -1 : wrong("--iterations names a mode that the profile does not have", text);
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
        return wrong("--iterations leaves nothing to run", NULL);
    if (m->profile.exclusive && o->jobs > 1)
        return wrong("one run at a time is what this profile is for, so no --jobs", NULL);
    if (o->command && (o->model || o->prompts.count || o->inject.count))
        return wrong("--model, --prompt, --prompts and --inject are greta_infer's; put what your "
                     "program takes behind its name",
                     NULL);
    return !o->command && o->prompts.count == 0 && !matrix_list_add(&o->prompts, "Hi") ? no_memory()
                                                                                       : -1;
}

int matrix_options_parse(struct matrix *m, int argc, char **argv) {
    int c, code = -1;
    m->o.max_tokens = 5;
    m->o.jobs = 1;
    m->o.timeout = 600;
    m->o.wait = 10;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while (code < 0 && (c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        if (c == 'h') {
            print_help();
            return EXIT_CLEAN;
        }
        if (c == ':')
            return wrong("option without its value", argv[optind - 1]);
        if (c == '?')
            return wrong("unknown option", argv[optind - 1]);
        code = take(m, c, optarg);
    }
    if (code >= 0)
        return code;
    if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
        return wrong("a program stands behind --, found", argv[optind]);
    if (optind < argc)
        m->o.command = argv + optind;
    else if (!strcmp(argv[argc - 1], "--"))
        return wrong("name a program after --", NULL);
    return check(m);
}
