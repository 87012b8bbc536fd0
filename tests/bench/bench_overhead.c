/* bench_overhead - what recording costs the engine: tokens/s of the demo model without it, with the
 * recorder, and with the full audit (recorder, and the log of all copies to a file).
 *
 * Measured twice. Inside: one engine switches between the modes every few tokens, so that other
 * load on the machine affects all alike; the limits apply to this, because it can tell 1 % from
 * noise. Outside: the program itself, interleaved run by run, also under `greta_audit run`; two
 * runs of one program differ by more than the limits, so only the figures and their spread are
 * printed. `bench_overhead inside` does only the first part, `bench_overhead inside MODEL` with
 * another model and so many tokens that one of a billion parameters takes half a minute; each of
 * its tokens takes a hundred times as long and has five times as many events. Exit status 1 if a
 * limit is exceeded.
 *
 * Also counted, with the demo model: the tokens during which a thread of the software device slept,
 * or woke another, while work was queued. With idle processors there are hardly any. */
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gcore/audit.h>
#include <greta/greta.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "support/promise.h"

enum {
    BLOCK = 4, /* tokens in one mode; of a slow model, one */
    TOKENS = 480,
    SERIES = 24,
    MODEL_SERIES = 2,
    SAMPLES = TOKENS * SERIES,
    PROGRAM_RUNS = 7,
    PROGRAM_TOKENS = 480
};
#define RARE 0.02 /* the share of tokens that other load on the machine may have disturbed */

/* MODE_AGAIN is MODE_OFF under another name: their difference shows how far the figures can be
 * trusted.
 */
enum mode { MODE_OFF, MODE_AGAIN, MODE_RECORDER, MODE_FULL, MODES };
static const struct {
    const char *text;
    const char *promise, *model_promise;
    double limit, model_limit; /* how much it may cost, in percent of tokens/s */
} modes[MODES] = {
    { "recorder off", NULL, NULL, 0, 0 },
    { "… once more", NULL, NULL, 0, 0 },
    { "recorder", "overhead.recorder_percent", "overhead.model_recorder_percent", 2, 0.5 },
    { "full audit", "overhead.audit_percent", "overhead.model_audit_percent", 5, 1 },
};

static const char *model; /* NULL: the demo model */
static char build[PATH_MAX], folder[] = "/tmp/bench_overhead.XXXXXX", record[64], d2h_log[64];

/* ---- inside ---------------------------------------------------------------------------------- */

static struct {
    writer *writer;
    struct audit_config config;
    bool verbose;
    double *ns[MODES];
    size_t count[MODES];
    enum mode now;
    unsigned turn;
    uint64_t since;          /* 0: the token that runs is not measured */
    double cpu[MODES], from; /* processor time of this thread, of all tokens */
    uint64_t (*futex_calls)(void);
    uint64_t futex_before;
    size_t disturbed; /* tokens that a futex call fell into */
} run;

static void enter(enum mode mode) {
    run.now = mode;
    audit.writer = mode <= MODE_AGAIN ? NULL : run.writer;
    audit.verbose = mode == MODE_FULL && run.verbose;
    audit.config.d2h_audit = mode == MODE_FULL && run.config.d2h_audit;
}

static double thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Between two tokens: every mode has one block in four, in changing order. */
static int between_tokens(void *user) {
    static const uint8_t orders[4][4] = {
        { 0, 1, 2, 3 }, { 2, 0, 3, 1 }, { 1, 3, 0, 2 }, { 3, 2, 1, 0 }
    };
    uint64_t now = clock_now_ns();
    if (run.since && run.count[run.now] < SAMPLES) {
        run.ns[run.now][run.count[run.now]++] = (double)(now - run.since);
        run.cpu[run.now] += thread_ns() - run.from;
        run.disturbed += run.futex_calls() != run.futex_before;
    }
    (void)user;
    unsigned block = run.turn++ / (model ? 1 : BLOCK);
    enter((enum mode)orders[block / 4 % 4][block % 4]);
    run.futex_before = run.futex_calls();
    run.from = thread_ns();
    run.since = clock_now_ns();
    return 0;
}

static bool find_futex_calls(void) {
    void *symbol = gcore_runtime_symbol("greta_soft_futex_calls");
    if (symbol)
        memcpy(&run.futex_calls, &symbol, sizeof symbol);
    return symbol;
}

static int report_futex_calls(void) {
    size_t tokens = 0;
    for (int m = 0; m < MODES; m++)
        tokens += run.count[m];
    return promise_at_most("overhead.tokens_with_futex_percent",
                           100 * (double)run.disturbed / (double)tokens, 5);
}

static bool generate(greta_engine *engine) {
    struct greta_request r;
    struct greta_error why;
    greta_request_init(&r);
    r.prompt = "Once upon a time";
    r.max_tokens = TOKENS;
    r.temperature = 0;
    r.ignore_end = 1;
    r.interrupted = between_tokens;
    run.since = 0;
    if (greta_generate(engine, &r, NULL, &why) == GRETA_OK)
        return true;
    printf("the engine: %s\n", why.message);
    return false;
}

static int report(void) {
    double mean[MODES], median[MODES];
    int failed = 0;
    for (int m = 0; m < MODES; m++) {
        measure_sort(run.ns[m], run.count[m]);
        mean[m] = measure_mean_below(run.ns[m], run.count[m], RARE);
        median[m] = measure_median(run.ns[m], run.count[m]);
    }
    /* A token of a slow model takes so long that most are disturbed: there the median says more. */
    const double *typical = model ? median : mean;
    for (int m = 0; m < MODES; m++) {
        double taken = 1 - typical[MODE_OFF] / typical[m];
        printf("%-14s %7.*f tokens/s", modes[m].text, model ? 2 : 0, 1e9 / typical[m]);
        if (m != MODE_OFF) {
            printf("  %+5.2f %%, %+5.1f us a token (median %+5.1f; of this thread %+5.1f)",
                   taken * 100, (mean[m] - mean[MODE_OFF]) / 1e3,
                   (median[m] - median[MODE_OFF]) / 1e3,
                   (run.cpu[m] / (double)run.count[m] -
                    run.cpu[MODE_OFF] / (double)run.count[MODE_OFF]) /
                       1e3);
        }
        putchar('\n');
        if (modes[m].promise)
            failed |= promise_at_most(model ? modes[m].model_promise : modes[m].promise,
                                      taken * 100, model ? modes[m].model_limit : modes[m].limit);
    }
    return failed;
}

static int measure_inside(void) {
    struct greta_options o;
    struct greta_error why;
    greta_engine *engine = NULL;
    setenv("GCORE_RECORD", record, 1);
    setenv("GCORE_D2H_AUDIT", "1", 1);
    setenv("GCORE_D2H_AUDIT_LOG", d2h_log, 1);
    greta_options_init(&o);
    o.model = model;
    if (greta_open(&engine, &o, &why) != GRETA_OK) {
        printf("the engine: %s\n", why.message);
        return 1;
    }
    run.writer = audit.writer;
    run.config = audit.config;
    run.verbose = audit.verbose;
    bool ok = find_futex_calls();
    for (int m = 0; m < MODES; m++)
        ok &= (run.ns[m] = malloc(SAMPLES * sizeof(double))) != NULL;
    uint64_t events = record_count(run.writer);
    for (int i = 0; ok && i < (model ? MODEL_SERIES : SERIES); i++)
        ok = generate(engine);
    int failed = ok ? report() : 1;
    if (ok)
        printf("               %.0f slots of events a recorded token\n",
               (double)(record_count(run.writer) - events) /
                   (double)(run.count[MODE_RECORDER] + run.count[MODE_FULL]));
    if (ok && !model)
        failed |= report_futex_calls();
    enter(MODE_FULL);
    greta_close(&engine, NULL);
    for (int m = 0; m < MODES; m++)
        free(run.ns[m]);
    return failed;
}

/* ---- outside --------------------------------------------------------------------------------- */

enum { PROGRAM_OFF, PROGRAM_RECORDER, PROGRAM_FULL, PROGRAM_AUDIT, PROGRAMS };

/* Tokens/s of one run; negative if it failed. */
static double run_program(int which) {
    static const char *const text[PROGRAMS] = { "recorder off", "recorder", "full audit",
                                                "greta_audit run" };
    char command[4 * PATH_MAX], line[256];
    bool recorded = which == PROGRAM_RECORDER || which == PROGRAM_FULL;
    snprintf(command, sizeof command,
             "unset GCORE_RECORD GCORE_D2H_AUDIT GCORE_D2H_AUDIT_LOG; %s%s%s%s%s%s%s%s%s%s"
             "%s/bin/greta_infer --prompt 'Once upon a time' --max-tokens %d --greedy --ignore-eos "
             "--quiet 2>&1",
             recorded ? "GCORE_RECORD=" : "", recorded ? folder : "", recorded ? "/run.gcr " : "",
             which >= PROGRAM_FULL ? "GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=" : "",
             which >= PROGRAM_FULL ? d2h_log : "", which >= PROGRAM_FULL ? " " : "",
             which == PROGRAM_AUDIT ? build : "",
             which == PROGRAM_AUDIT ? "/bin/greta_audit run --out " : "",
             which == PROGRAM_AUDIT ? folder : "", which == PROGRAM_AUDIT ? "/out -- " : "", build,
             PROGRAM_TOKENS);
    FILE *f = popen(command, "r");
    double found = -1;
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "Tokens/second: ");
        if (at)
            found = strtod(at + strlen("Tokens/second: "), NULL);
    }
    if (f && pclose(f) != 0)
        found = -1;
    if (found < 0)
        printf("greta_infer failed with %s\n", text[which]);
    return found;
}

static int measure_outside(void) {
    static const char *const text[PROGRAMS] = { "greta_infer", "… recorder", "… full audit",
                                                "… greta_audit" };
    double v[PROGRAMS][PROGRAM_RUNS];
    for (int i = 0; i < PROGRAM_RUNS; i++)
        for (int p = 0; p < PROGRAMS; p++)
            if ((v[p][i] = run_program(p)) < 0)
                return 1;
    for (int p = 0; p < PROGRAMS; p++) {
        measure_sort(v[p], PROGRAM_RUNS);
        double median = measure_median(v[p], PROGRAM_RUNS);
        printf("%-14s %7.0f tokens/s, %.0f to %.0f in %d runs", text[p], median, v[p][0],
               v[p][PROGRAM_RUNS - 1], PROGRAM_RUNS);
        if (p != PROGRAM_OFF)
            printf(";  %+5.2f %%", (1 - median / measure_median(v[0], PROGRAM_RUNS)) * 100);
        putchar('\n');
    }
    return 0;
}

int main(int argc, char **argv) {
    bool inside_only = argc > 1 && strcmp(argv[1], "inside") == 0;
    model = inside_only && argc > 2 ? argv[2] : NULL;
    setlinebuf(stdout);
    char self[PATH_MAX] = "", command[sizeof folder + 32];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !mkdtemp(folder))
        return 1;
    snprintf(build, sizeof build, "%s", dirname(dirname(self)));
    snprintf(record, sizeof record, "%s/record.gcr", folder);
    snprintf(d2h_log, sizeof d2h_log, "%s/d2h.log", folder);
    int failed = measure_inside();
    if (!inside_only)
        failed |= measure_outside();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : failed;
}
