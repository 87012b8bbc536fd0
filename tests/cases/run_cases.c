/* run_cases.c - runs every program of this folder under greta_audit, with its bug and without it,
 * under every schedule of the software device, and compares the verdict with what the first comment
 * of the program expects (case.h says how).
 *
 * Prints TAP: one test for each program and each fixed twin. Arguments are names, or beginnings of
 * names, of programs to run; without any, all are run. CASES_SEEDS (1): how many random schedules.
 * CASES_JOBS: programs at a time (the number of processors). BUILD_DIR and SOURCE_DIR come from
 * tests/run. In a sanitizer build only the fixed twins are run, under one schedule: the bugs are
 * what a sanitizer stops too. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "record/reader.h"
#include "support/torn.h"
#include "symbol/lines.h"
#include "verdict/verdict.h"

enum { CASES_MAX = 1000, WORDS_MAX = 16, NAME_LENGTH = 64, SCHEDULES_FIXED = 3, ACTORS_MAX = 3 };

struct wanted_actor {
    bool none;
    char api[NAME_LENGTH], kernel[NAME_LENGTH], argument[NAME_LENGTH], tensor[NAME_LENGTH],
        site[NAME_LENGTH];
    unsigned line; /* 0: any */
};

/* Any of them will do. */
struct wanted_actors {
    struct wanted_actor of[ACTORS_MAX];
    unsigned count;
};

struct expectation {
    char verdict[NAME_LENGTH];    /* one word, or several with | between them */
    uint32_t confirmed, possible; /* bits 1 << id: must be confirmed, may be */
    uint32_t undecided;           /* must be INCONCLUSIVE */
    int hypothesis;               /* -1: none */
    unsigned findings;
    struct wanted_actors culprit, messenger;
    char run[WORDS_MAX][NAME_LENGTH]; /* options and variables */
    unsigned run_count;
};

struct program {
    char name[NAME_LENGTH];
    struct expectation expect;
    char wrong[200]; /* what is wrong with its first comment; empty: nothing */
};

struct job {
    pid_t pid;
    unsigned program, schedule;
    bool bug;
};

static struct program programs[CASES_MAX];
static unsigned program_count, schedule_count;
static const char *build, *source, *scratch;
static char audit[PATH_MAX]; /* the program, or a script that runs it with a sanitizer */
static bool sanitized;

/* ---- expectations ---------------------------------------------------------------------------- */

static void set_name(char out[static NAME_LENGTH], const char *text) {
    size_t n = strnlen(text, NAME_LENGTH - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

static int find_hypothesis(const char *name) {
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (!strcmp(name, hypothesis_name((enum verdict_hypothesis_id)id)))
            return id;
    return -1;
}

/* hipMemcpy argument=A tensor=T site=S line=L, or kernel=K …, or none; several with `or` between
 * them */
static bool parse_actors(struct wanted_actors *all, char *words, char *wrong, size_t room) {
    char *rest = NULL;
    struct wanted_actor *a = &all->of[all->count++];
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(w, '=');
        if (value)
            *value++ = '\0';
        if (!value && !strcmp(w, "or") && all->count < ACTORS_MAX)
            a = &all->of[all->count++];
        else if (!value && !strcmp(w, "none"))
            a->none = true;
        else if (!value)
            set_name(a->api, w);
        else if (!strcmp(w, "kernel"))
            set_name(a->kernel, value);
        else if (!strcmp(w, "argument"))
            set_name(a->argument, value);
        else if (!strcmp(w, "tensor"))
            set_name(a->tensor, value);
        else if (!strcmp(w, "site"))
            set_name(a->site, value);
        else if (!strcmp(w, "line"))
            a->line = (unsigned)strtoul(value, NULL, 10);
        else
            return snprintf(wrong, room, "what is %s= of a call?", w), false;
    }
    return true;
}

static bool parse_hypotheses(struct expectation *x, char *words, bool also, char *wrong,
                             size_t room) {
    char *rest = NULL;
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        char *maybe = strchr(w, '?');
        if (maybe)
            *maybe = '\0';
        int id = find_hypothesis(w);
        if (id < 0)
            return snprintf(wrong, room, "no such hypothesis: %s", w), false;
        *(maybe ? &x->possible : &x->confirmed) |= 1u << id;
        if (!also)
            x->hypothesis = id;
    }
    return true;
}

static bool parse_clause(struct expectation *x, char *clause, char *wrong, size_t room) {
    while (*clause == ' ')
        clause++;
    char *words = clause + strcspn(clause, " ");
    if (*words)
        *words++ = '\0';
    if (!strcmp(clause, "verdict")) {
        words[strcspn(words, " ")] = '\0';
        set_name(x->verdict, words);
        return true;
    }
    if (!strcmp(clause, "hypothesis"))
        return parse_hypotheses(x, words, false, wrong, room);
    if (!strcmp(clause, "also"))
        return parse_hypotheses(x, words, true, wrong, room);
    if (!strcmp(clause, "undecided")) {
        words[strcspn(words, " ")] = '\0';
        int id = find_hypothesis(words);
        if (id < 0)
            return snprintf(wrong, room, "no such hypothesis: %s", words), false;
        x->undecided |= 1u << id;
        return true;
    }
    if (!strcmp(clause, "culprit"))
        return parse_actors(&x->culprit, words, wrong, room);
    if (!strcmp(clause, "messenger"))
        return parse_actors(&x->messenger, words, wrong, room);
    if (!strcmp(clause, "findings")) {
        x->findings = (unsigned)strtoul(words, NULL, 10);
        return true;
    }
    return snprintf(wrong, room, "unknown word in Expect: '%s'", clause), false;
}

static void parse_run(struct expectation *x, char *words) {
    char *rest = NULL;
    for (char *w = strtok_r(words, " ", &rest); w && x->run_count < WORDS_MAX;
         w = strtok_r(NULL, " ", &rest))
        set_name(x->run[x->run_count++], w);
}

/* The text after `key` in the comment, up to the next key or the end; lines and stars are blanks.
 */
static bool take_section(const char *comment, const char *key, char *out, size_t room) {
    const char *at = strstr(comment, key);
    size_t n = 0;
    if (!at)
        return false;
    at += strlen(key);
    const char *end = strstr(at, "Run:");
    size_t length = end ? (size_t)(end - at) : strlen(at);
    for (size_t i = 0; i < length && n + 1 < room; i++)
        out[n++] = isspace((unsigned char)at[i]) || at[i] == '*' ? ' ' : at[i];
    out[n] = '\0';
    return true;
}

static void parse_comment(struct program *p, const char *comment) {
    struct expectation *x = &p->expect;
    char text[2000], *rest = NULL;
    x->hypothesis = -1;
    x->findings = 1;
    if (!take_section(comment, "Expect:", text, sizeof text)) {
        snprintf(p->wrong, sizeof p->wrong, "the first comment has no Expect:");
        return;
    }
    for (char *clause = strtok_r(text, ";", &rest); clause; clause = strtok_r(NULL, ";", &rest))
        if (!parse_clause(x, clause, p->wrong, sizeof p->wrong))
            return;
    if (!*x->verdict || x->hypothesis < 0 || !x->culprit.count || !x->messenger.count)
        snprintf(p->wrong, sizeof p->wrong,
                 "Expect: wants verdict, hypothesis, culprit and messenger");
    if (take_section(comment, "Run:", text, sizeof text))
        parse_run(x, text);
}

static void read_program(struct program *p) {
    char path[PATH_MAX], text[4096];
    snprintf(path, sizeof path, "%s/tests/cases/%s.c", source, p->name);
    FILE *in = fopen(path, "r");
    size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
    if (in)
        (void)fclose(in);
    text[n] = '\0';
    char *end = strstr(text, "*/");
    if (end)
        *end = '\0';
    parse_comment(p, text);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct program *)a)->name, ((const struct program *)b)->name);
}

static bool is_chosen(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strncmp(name, argv[i], strlen(argv[i])))
            return true;
    return argc < 2;
}

/* The build says which programs there are. */
static void find_programs(int argc, char **argv) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cases", build);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder)) && program_count < CASES_MAX;) {
        char *dot = strstr(e->d_name, ".fixed");
        if (!dot || dot[6] || dot - e->d_name >= NAME_LENGTH)
            continue;
        *dot = '\0';
        snprintf(path, sizeof path, "%s/tests/cases/%s.c", source, e->d_name);
        if (is_chosen(e->d_name, argc, argv) && access(path, R_OK) == 0)
            set_name(programs[program_count++].name, e->d_name);
    }
    if (folder)
        closedir(folder);
    qsort(programs, program_count, sizeof *programs, by_name);
    for (unsigned i = 0; i < program_count; i++)
        read_program(&programs[i]);
}

/* ---- comparing: in the job's process; what is wrong goes to standard output ------------------ */

static bool complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool complain(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    return false;
}

static bool same(const char *what, const char *wanted, const char *found) {
    if (!*wanted || (found && !strcmp(wanted, found)))
        return true;
    return complain("%s: expected %s, found %s", what, wanted, found ? found : "none");
}

static bool same_site(const char *what, const struct wanted_actor *wanted,
                      const struct verdict_actor *a) {
    bool good = !*wanted->site;
    /* The function that makes the call may be a wrapper; then its caller is where. */
    for (size_t i = 0; !good && i < a->stack.count && i <= a->stack.where; i++)
        good = a->stack.frame[i].function && !strcmp(a->stack.frame[i].function, wanted->site);
    if (!good)
        complain("%s: expected a call in %s, found %s", what, wanted->site, a->site);
    if (wanted->line && (!a->stack.count || a->stack.frame[a->stack.where].line != wanted->line))
        good = complain("%s: expected line %u, found %s", what, wanted->line, a->site);
    return good;
}

static bool same_actor(const char *what, const struct wanted_actor *w,
                       const struct verdict_actor *a) {
    bool good = true;
    if (!a)
        return w->none || complain("%s: found none", what);
    if (w->none)
        return complain("%s: expected none, found %s", what, a->kernel ? a->kernel : a->api);
    good &= same(what, w->kernel, a->kernel);
    good &= same(what, w->api, a->api);
    good &= same(what, w->argument, a->argument);
    good &= same(what, w->tensor, a->tensor);
    good &= same_site(what, w, a);
    return good;
}

static bool same_actors(const char *what, const struct wanted_actors *w,
                        const struct verdict_actor *a) {
    unsigned i = 0;
    while (i < w->count && !same_actor(what, &w->of[i], a))
        i++;
    return i < w->count;
}

static uint32_t confirmed_in(const verdict *v) {
    uint32_t confirmed = 0;
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (v->hypothesis[id].status == VERDICT_STATUS_CONFIRMED)
            confirmed |= 1u << id;
    return confirmed;
}

static bool same_verdict(const char *wanted, const char *found) {
    char words[NAME_LENGTH], *rest = NULL;
    set_name(words, wanted);
    for (char *w = strtok_r(words, "|", &rest); w; w = strtok_r(NULL, "|", &rest))
        if (!strcmp(w, found))
            return true;
    return complain("verdict: expected %s, found %s", wanted, found);
}

/* The one that is expected must be what the first finding is about, or follow from it. */
static bool same_hypotheses(const struct expectation *x, const verdict *v) {
    const struct verdict_finding *first = &v->findings[0];
    bool good = (1u << first->hypothesis | first->also) & 1u << x->hypothesis;
    uint32_t confirmed = confirmed_in(v), wrong = (confirmed ^ x->confirmed) & ~x->possible;
    if (!good)
        complain("hypothesis: expected %s, found %s",
                 hypothesis_name((enum verdict_hypothesis_id)x->hypothesis),
                 hypothesis_name(first->hypothesis));
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (wrong & 1u << id)
            good = complain("%s is %sconfirmed", hypothesis_name((enum verdict_hypothesis_id)id),
                            confirmed & 1u << id ? "" : "not ");
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (x->undecided & 1u << id && v->hypothesis[id].status != VERDICT_STATUS_INCONCLUSIVE)
            good = complain("%s is %s", hypothesis_name((enum verdict_hypothesis_id)id),
                            verdict_status_name(v->hypothesis[id].status));
    return good;
}

/* Nothing was found; that is right if the verdict may be INCONCLUSIVE and says that of the
 * hypothesis. */
static bool compare_undecided(const struct expectation *x, const verdict *v) {
    if (!strstr(x->verdict, "INCONCLUSIVE"))
        return complain("nothing was found");
    enum verdict_status status = v->hypothesis[x->hypothesis].status;
    bool good = same_verdict("INCONCLUSIVE", verdict_overall_name(v->overall));
    if (status != VERDICT_STATUS_INCONCLUSIVE)
        good = complain("the hypothesis is %s", verdict_status_name(status));
    return good;
}

static bool compare_bug(const struct expectation *x, const verdict *v) {
    if (!v->finding_count)
        return compare_undecided(x, v);
    bool good = same_verdict(x->verdict, verdict_overall_name(v->overall));
    good &= same_hypotheses(x, v);
    good &= same_actors("culprit", &x->culprit, v->culprit);
    good &= same_actors("messenger", &x->messenger, v->messenger);
    if (v->finding_count != x->findings)
        good = complain("expected %u findings, found %zu", x->findings, v->finding_count);
    return good;
}

static bool compare_fixed(const verdict *v, int status) {
    bool good = same_verdict("CLEAN", verdict_overall_name(v->overall));
    if (v->finding_count)
        good = complain("it has %zu findings", v->finding_count);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        good = complain("it ended with wait status 0x%x instead of 0", (unsigned)status);
    return good;
}

/* The value of an option that the program is run with, NULL if it is not. */
static const char *option_value(const struct expectation *x, const char *option) {
    size_t n = strlen(option);
    for (unsigned i = 0; i < x->run_count; i++)
        if (!strncmp(x->run[i], option, n) && x->run[i][n] == '=')
            return x->run[i] + n + 1;
    return NULL;
}

/* Whatever is missing from the recording of a correct program, nothing may be found in it. */
static bool judge_torn(const char *path, const struct verdict_options *options, unsigned seed) {
    enum { VARIANTS = 28 };
    struct torn t;
    bool good = true;
    if (!torn_open(&t, path))
        return complain("%s cannot be taken apart", path);
    for (uint64_t i = 0; good && i < VARIANTS; i++) {
        struct err e = { 0 };
        reader *r = NULL;
        verdict *v = NULL;
        torn_take(&t, seed * VARIANTS + i);
        if (reader_open(&r, path, &e) != RC_OK || verdict_open(&v, r, options, &e) != RC_OK)
            good = complain("%s", e.msg);
        else if (v->finding_count)
            good = complain("with slots missing (variant %llu): %s",
                            (unsigned long long)(seed * VARIANTS + i), v->answer);
        verdict_close(&v);
        reader_close(&r);
        torn_restore(&t);
    }
    torn_close(&t);
    return good;
}

static bool judge(const struct program *p, bool bug, const char *folder, int status) {
    char path[PATH_MAX + 16];
    const struct verdict_options options = {
        .expect_commit = option_value(&p->expect, "--expect-commit"),
        .expect_build_id = option_value(&p->expect, "--expect-build-id"),
        .expect_model_hash = option_value(&p->expect, "--expect-model-hash"),
    };
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    snprintf(path, sizeof path, "%s/record.gcr", folder);
    if (reader_open(&r, path, &e) == RC_OK)
        lines_attach(r);
    if (!r || verdict_open(&v, r, &options, &e) != RC_OK) {
        reader_close(&r);
        return complain("%s", e.msg);
    }
    bool good = bug ? compare_bug(&p->expect, v) : compare_fixed(v, status);
    if (!bug)
        good &= judge_torn(path, &options, (unsigned)(p - programs));
    if (!good) {
        complain("%s", v->answer);
        for (size_t i = 0; i < v->finding_count; i++)
            complain("  %s: %s", hypothesis_name(v->findings[i].hypothesis), v->findings[i].text);
    }
    verdict_close(&v);
    reader_close(&r);
    return good;
}

/* ---- running --------------------------------------------------------------------------------- */

static void schedule_name(unsigned i, char out[static NAME_LENGTH]) {
    static const char *const fixed[SCHEDULES_FIXED] = { "fast", "eager", "lazy" };
    if (i < SCHEDULES_FIXED)
        set_name(out, fixed[i]);
    else
        snprintf(out, NAME_LENGTH, "random:%u", i - SCHEDULES_FIXED + 1);
}

/* The command of a program, which replaces this process. */
static void start(const struct program *p, bool bug, const char *folder) {
    char command[PATH_MAX];
    char *argv[WORDS_MAX + 12] = { audit, "run", "--quiet", "--device", "soft", "--timeout", "60" };
    unsigned n = 7;
    snprintf(command, sizeof command, "%s/cases/%s.%s", build, p->name, bug ? "bug" : "fixed");
    for (unsigned i = 0; i < p->expect.run_count; i++) {
        char *word = strdup(p->expect.run[i]), *value = word ? strchr(word, '=') : NULL;
        if (value && word[0] != '-') {
            *value = '\0';
            setenv(word, value + 1, 1);
        } else if (word) {
            argv[n++] = word;
        }
    }
    argv[n++] = "--out";
    argv[n++] = (char *)(uintptr_t)folder;
    argv[n++] = "--";
    argv[n++] = command;
    execv(audit, argv);
    fprintf(stderr, "%s: %s\n", audit, strerror(errno));
    _exit(127);
}

static void job_file(const struct job *j, const char *suffix, char out[static PATH_MAX]) {
    char schedule[NAME_LENGTH];
    schedule_name(j->schedule, schedule);
    snprintf(out, PATH_MAX, "%s/%s.%s.%s%s", scratch, programs[j->program].name,
             j->bug ? "bug" : "fixed", schedule, suffix);
}

static void remove_folder(const char *folder) {
    static const char *const files[] = { "record.gcr", "report.json", "report.txt",
                                         "report.md",  "report.html", "trace.perfetto.json" };
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* One program under one schedule, in a process of its own: 0 if all is as it should be. */
static int run_job(const struct job *j) {
    char folder[PATH_MAX], log[PATH_MAX], schedule[NAME_LENGTH];
    int status = 0;
    job_file(j, "", folder);
    job_file(j, ".log", log);
    int fd = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        return 1;
    schedule_name(j->schedule, schedule);
    setenv("GRETA_SOFT_SCHEDULE", schedule, 1);
    pid_t child = fork();
    if (child == 0)
        start(&programs[j->program], j->bug, folder);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    bool good = judge(&programs[j->program], j->bug, folder, status);
    if (good)
        remove_folder(folder);
    else
        complain("the recording is in %s", folder);
    fflush(NULL);
    return good ? 0 : 1;
}

static void show_log(const struct job *j) {
    char path[PATH_MAX], line[2000], schedule[NAME_LENGTH];
    job_file(j, ".log", path);
    schedule_name(j->schedule, schedule);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in))
        printf("# %s: %s", schedule, line);
    if (in)
        (void)fclose(in);
}

/* Waits for one job and enters how it went; false if there was none. */
static bool reap(struct job *jobs, unsigned job_count, unsigned *failed) {
    int status;
    pid_t pid = wait(&status);
    for (unsigned i = 0; pid > 0 && i < job_count; i++) {
        if (jobs[i].pid != pid)
            continue;
        if (status != 0) {
            failed[2 * jobs[i].program + !jobs[i].bug]++;
            show_log(&jobs[i]);
        }
        jobs[i].pid = 0;
        return true;
    }
    return pid > 0;
}

static void run_all(unsigned job_count, unsigned *failed) {
    struct job *jobs = calloc(job_count, sizeof *jobs);
    unsigned running = 0;
    if (!jobs)
        abort();
    for (unsigned n = 0; n < 2 * program_count * schedule_count; n++) {
        struct job j = { .program = n / schedule_count / 2,
                         .bug = n / schedule_count % 2 == 0,
                         .schedule = n % schedule_count };
        if (*programs[j.program].wrong || (sanitized && j.bug))
            continue;
        while (running == job_count)
            running -= reap(jobs, job_count, failed);
        unsigned at = 0;
        while (jobs[at].pid)
            at++;
        fflush(stdout);
        jobs[at] = j;
        jobs[at].pid = fork();
        if (jobs[at].pid == 0)
            _exit(run_job(&j));
        running++;
    }
    while (running && reap(jobs, job_count, failed))
        running--;
    free(jobs);
}

static void report(const unsigned *failed) {
    for (unsigned i = 0; i < program_count; i++) {
        const struct program *p = &programs[i];
        if (*p->wrong)
            printf("# %s.c: %s\n", p->name, p->wrong);
        printf("%sok %u - %s is %s%s\n", failed[2 * i] || *p->wrong ? "not " : "", 2 * i + 1,
               p->name,
               p->expect.hypothesis < 0
                   ? "judged"
                   : hypothesis_name((enum verdict_hypothesis_id)p->expect.hypothesis),
               sanitized ? " # SKIP a sanitizer would stop it" : "");
        printf("%sok %u - %s without its bug is clean\n",
               failed[2 * i + 1] || *p->wrong ? "not " : "", 2 * i + 2, p->name);
    }
    printf("1..%u\n", 2 * program_count);
}

static const char *text_or(const char *variable, const char *fallback) {
    const char *text = getenv(variable);
    return text && *text ? text : fallback;
}

static uint64_t number_or(const char *variable, uint64_t fallback) {
    uint64_t number = fallback;
    return env_parse_u64(text_or(variable, ""), &number) ? number : fallback;
}

int main(int argc, char **argv) {
    char path[PATH_MAX];
    build = text_or("BUILD_DIR", "build");
    source = text_or("SOURCE_DIR", ".");
    scratch = text_or("TMPDIR", "/tmp");
    snprintf(path, sizeof path, "%s/lib/libgcore_preload.so", build);
    if (access(path, R_OK) != 0) {
        printf("ok 1 - cases # SKIP clang's sanitizer builds have no libgcore_preload.so\n1..1\n");
        return 0;
    }
    snprintf(audit, sizeof audit, "%s/tests/greta_audit", build);
    sanitized = access(audit, X_OK) == 0;
    if (!sanitized)
        snprintf(audit, sizeof audit, "%s/bin/greta_audit", build);
    schedule_count = sanitized ? 1 : SCHEDULES_FIXED + (unsigned)number_or("CASES_SEEDS", 1);
    find_programs(argc, argv);
    unsigned *failed = calloc(2 * (size_t)program_count + 1, sizeof *failed);
    if (!failed || !program_count) {
        printf("not ok 1 - there are programs in %s/cases\n1..1\n", build);
        free(failed);
        return 1;
    }
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    run_all((unsigned)number_or("CASES_JOBS", jobs > 0 ? (uint64_t)jobs : 2), failed);
    report(failed);
    free(failed);
    return 0;
}
