/* matrix_plan.c - which runs there are, and how each is started. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/grow.h"
#include "tools/audit/matrix.h"

enum { LOCK_OF_SHARED, LOCK_OF_EXCLUSIVE, HOW_BARE, HOW_RECORDED };

static const struct matrix_profile profiles[] = {
#define MATRIX_PROFILE(id, name, ticket, lock, does)                                               \
    { ticket, name, does, LOCK_OF_##lock == LOCK_OF_EXCLUSIVE, { { 0 } }, 0 },
#include "tools/audit/matrix.def"
};

enum profile_id {
#define MATRIX_PROFILE(id, name, ticket, lock, does) PROFILE_##id,
#include "tools/audit/matrix.def"
};

static const struct {
    enum profile_id profile;
    struct matrix_mode mode;
} modes[] = {
#define MATRIX_MODE(profile, name, iterations, how, schedules, environment, arguments)             \
    { PROFILE_##profile,                                                                           \
      { name, iterations, HOW_##how == HOW_RECORDED, schedules, environment, arguments } },
#include "tools/audit/matrix.def"
};

static const struct {
    const char *word;
    bool error;
    const char *text[LANG_COUNT];
} ends[] = {
#define MATRIX_END(id, word, error, en, es) { word, error, { en, es } },
#include "tools/audit/matrix.def"
};

const struct matrix_profile *matrix_profile(size_t index) {
    static struct matrix_profile p;
    if (index >= sizeof profiles / sizeof *profiles)
        return NULL;
    p = profiles[index];
    for (size_t i = 0; i < sizeof modes / sizeof *modes && p.mode_count < MATRIX_MODES_MAX; i++)
        if (modes[i].profile == (enum profile_id)index)
            p.modes[p.mode_count++] = modes[i].mode;
    return &p;
}

const char *matrix_end_word(enum matrix_end end) {
    return ends[end].word;
}

bool matrix_end_is_error(enum matrix_end end) {
    return ends[end].error;
}

const char *matrix_end_text(enum matrix_end end, enum lang lang) {
    return ends[end].text[lang];
}

bool matrix_list_add(struct matrix_list *l, const char *text) {
    const char **more = grow_array(l->items, &l->room, l->count, sizeof *more);
    if (!more)
        return false;
    l->items = more;
    l->items[l->count++] = text;
    return true;
}

/* ---- runs ---- */

static char *format(struct matrix *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static char *format(struct matrix *m, const char *fmt, ...) {
    char text[2 * PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : arena_copy_text(&m->arena, text, strlen(text));
}

/* The index-th word of a list with commas, which is taken in turn. */
static char *word_in_turn(struct matrix *m, const char *list, size_t index) {
    size_t count = 1;
    for (const char *p = list; *p; p++)
        count += *p == ',';
    for (index %= count; index > 0; index--)
        list += strcspn(list, ",") + 1;
    return arena_copy_text(&m->arena, list, strcspn(list, ","));
}

/* Every random schedule of a matrix has a seed of its own, unless there are fewer seeds. */
static const char *choose_schedule(struct matrix *m, const struct matrix_mode *mode, size_t index,
                                   size_t *randoms) {
    const struct matrix_list *given = &m->o.schedules;
    if (!m->device.soft || !*mode->schedules)
        return NULL;
    const char *word =
        given->count ? given->items[index % given->count] : word_in_turn(m, mode->schedules, index);
    if (!word || strcmp(word, "random") != 0)
        return word;
    size_t n = (*randoms)++;
    return format(
        m, "random:%llu",
        (unsigned long long)(m->o.seeds.count ? m->o.seeds.items[n % m->o.seeds.count] : n + 1));
}

enum rc matrix_plan(struct matrix *m, struct err *e) {
    size_t total = 0, randoms = 0;
    for (size_t i = 0; i < m->profile.mode_count; i++)
        total += m->profile.modes[i].iterations;
    m->runs = arena_alloc_array(&m->arena, total, sizeof *m->runs);
    if (!m->runs)
        return err_set(e, RC_MEMORY, "out of memory");
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        const struct matrix_mode *mode = &m->profile.modes[i];
        for (size_t k = 0; k < mode->iterations; k++) {
            struct matrix_run *r = &m->runs[m->run_count++];
            r->number = (unsigned)m->run_count;
            r->mode = mode;
            r->last_line = "";
            r->id = format(m, "%04u-%s", r->number, mode->name);
            r->schedule = choose_schedule(m, mode, k, &randoms);
            r->seed = m->o.seeds.count ? m->o.seeds.items[k % m->o.seeds.count] : k + 1;
            r->prompt = m->o.prompts.count ? m->o.prompts.items[k % m->o.prompts.count] : NULL;
            if (!r->id || (m->device.soft && *mode->schedules && !r->schedule))
                return err_set(e, RC_MEMORY, "out of memory");
        }
    }
    return RC_OK;
}

void matrix_run_path(const struct matrix *m, const struct matrix_run *r, const char *file,
                     char out[static PATH_MAX]) {
    snprintf(out, PATH_MAX, "%s/runs/%s%s%s", m->folder, r->id, *file ? "/" : "", file);
}

/* ---- one run ---- */

struct words {
    struct matrix *m;
    char **at;
    size_t count, room;
    bool failed;
};

static void add(struct words *w, const char *text) {
    char *copy =
        text && w->count + 1 < w->room ? arena_copy_text(&w->m->arena, text, strlen(text)) : NULL;
    w->failed |= !copy;
    if (copy)
        w->at[w->count++] = copy;
}

static void add_pair(struct words *w, const char *flag, const char *value) {
    if (!value)
        return;
    add(w, flag);
    add(w, value);
}

/* The mode's own arguments of greta_infer; %r is the folder of the run. */
static void add_arguments(struct words *w, const struct matrix_run *r) {
    for (const char *p = r->mode->arguments; *p; p += strspn(p, " ")) {
        char folder[PATH_MAX];
        size_t n = strcspn(p, " ");
        const char *mark = memmem(p, n, "%r", 2), *word;
        matrix_run_path(w->m, r, "", folder);
        if (mark)
            word = format(w->m, "%.*s%s%.*s", (int)(mark - p), p, folder, (int)(p + n - mark - 2),
                          mark + 2);
        else
            word = format(w->m, "%.*s", (int)n, p);
        add(w, word);
        p += n;
    }
}

static void add_program(struct words *w, const struct matrix_run *r) {
    const struct matrix_options *o = &w->m->o;
    if (o->command) {
        for (char **word = o->command; *word; word++)
            add(w, *word);
        return;
    }
    char number[24];
    add(w, w->m->program);
    add_pair(w, "--model", o->model);
    add_pair(w, "--prompt", r->prompt);
    snprintf(number, sizeof number, "%u", o->max_tokens);
    add_pair(w, "--max-tokens", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)r->seed);
    add_pair(w, "--seed", number);
    for (size_t i = 0; i < o->inject.count; i++)
        add_pair(w, "--inject", o->inject.items[i]);
    add_arguments(w, r);
}

static size_t count_words(const struct matrix *m) {
    size_t n = 64 + 2 * m->o.inject.count;
    for (char **word = m->o.command; word && *word; word++)
        n++;
    return n;
}

char **matrix_command(struct matrix *m, const struct matrix_run *r) {
    const struct matrix_options *o = &m->o;
    struct words w = { .m = m, .room = count_words(m) };
    char folder[PATH_MAX];
    w.at = arena_alloc_array(&m->arena, w.room, sizeof *w.at);
    if (!w.at)
        return NULL;
    if (r->mode->recorded) {
        matrix_run_path(m, r, "", folder);
        add(&w, m->self);
        add(&w, "run");
        add(&w, "--quiet");
        add_pair(&w, "--device", m->device.soft ? "soft" : "hip");
        add_pair(&w, "--out", folder);
        add_pair(&w, "--lang", lang_code(o->lang));
        add_pair(&w, "--expect-commit", o->expect_commit);
        add_pair(&w, "--expect-model-hash", o->expect_model_hash);
        if (o->watch_host)
            add(&w, "--watch-host");
        add(&w, "--");
    }
    add_program(&w, r);
    return w.failed ? NULL : w.at;
}

void matrix_environment(struct matrix *m, const struct matrix_run *r,
                        void (*set)(void *user, const char *name, const char *value), void *user) {
    for (const char *p = r->mode->environment; *p; p += strspn(p, " ")) {
        size_t name = strcspn(p, "="), all = strcspn(p, " ");
        char text[256], *value = text + name + 1;
        snprintf(text, sizeof text, "%.*s", (int)all, p);
        text[name] = '\0';
        set(user, text, value);
        p += all;
    }
    if (r->schedule)
        set(user, "GRETA_SOFT_SCHEDULE", r->schedule);
    if (r->mode->recorded)
        return;
    /* For recorded runs `greta_audit run` does this. */
    set(user, "GCORE_RECORD", NULL);
    set(user, "GCORE_RECORD_JOIN", NULL);
    set(user, "GRETA_DEVICE", m->device.soft ? "soft" : "hip");
    if (m->device.soft) {
        const char *now = env_text(ENV_LD_LIBRARY_PATH);
        char *path = format(m, "%s%s%s", m->device.folder, now ? ":" : "", now ? now : "");
        if (path)
            set(user, env_name(ENV_LD_LIBRARY_PATH), path);
    }
}

/* ---- as text ---- */

static void print_quoted(FILE *out, const char *text) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+@%";
    if (*text && strspn(text, plain) == strlen(text)) {
        fputs(text, out);
        return;
    }
    putc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            putc(*text, out);
    putc('\'', out);
}

static void print_variable(void *user, const char *name, const char *value) {
    FILE *out = user;
    if (value) {
        fprintf(out, "%s=", name);
        print_quoted(out, value);
        putc(' ', out);
    }
}

void matrix_print_command(struct matrix *m, const struct matrix_run *r, FILE *out) {
    char **command = matrix_command(m, r);
    matrix_environment(m, r, print_variable, out);
    for (size_t i = 0; command && command[i]; i++) {
        if (r->mode->recorded && !strcmp(command[i], "--out") && i < 8) {
            i++; /* not the folder of the run that is repeated */
            continue;
        }
        if (r->mode->recorded && i == 2) /* --quiet */
            continue;
        fputs(i ? " " : "", out);
        print_quoted(out, command[i]);
    }
}

void matrix_print_plan(struct matrix *m, FILE *out) {
    fprintf(out, "Profile %s (%s) on %s (%s), %zu runs, at most %g s each, %u at a time\n",
            m->profile.plain, m->profile.name, m->device.name, m->device.soft ? "soft" : "hip",
            m->run_count, m->o.timeout, m->o.jobs);
    fprintf(out, "Folder %s\n", m->folder);
    for (size_t i = 0; i < m->run_count; i++) {
        const struct matrix_run *r = &m->runs[i];
        fprintf(out, "%s%s: ", r->id, r->done ? " (done)" : "");
        matrix_print_command(m, r, out);
        putc('\n', out);
    }
}
