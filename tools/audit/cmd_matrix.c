/* greta_audit matrix - runs a program many times in the modes of a profile and judges all of it.
 *
 * Results come from runs only: anything missing is found before the first run, and nothing is
 * written then. matrix.h says which file does what. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"

static void print_result(const struct matrix *m, const struct matrix_total *t) {
    printf("%s\n", t->answer);
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        const struct matrix_mode *mode = &m->profile.modes[i];
        const struct matrix_by_mode *b = &t->modes[i];
        printf("  %-10s %5zu of %5u runs  %5zu error%s %s\n", mode->name, b->done, mode->iterations,
               b->errors, b->errors == 1 ? "  " : "s ", matrix_mode_result(b, mode));
    }
    if (!t->complete)
        printf("Not complete: the same command with --out %s continues it\n", m->folder);
    printf("Report: %s/FINAL_REPORT.md\nSummary: %s/summary.json\n", m->folder, m->folder);
}

static int conclude(struct matrix *m) {
    struct matrix_total t;
    struct err e = { 0 };
    enum rc rc = matrix_total(&t, m, &e);
    if (rc == RC_OK)
        rc = matrix_write_summary(m, &t, &e);
    if (rc == RC_OK)
        rc = matrix_write_report(m, &t, &e);
    if (rc == RC_OK)
        print_result(m, &t);
    else
        matrix_say("%s", e.msg);
    bool clean = rc == RC_OK && t.complete && !t.errors &&
                 (t.overall == VERDICT_CLEAN || t.overall == VERDICT_NOT_REPRODUCED);
    matrix_total_close(&t);
    return clean ? EXIT_CLEAN : EXIT_FOUND;
}

static int run_matrix(struct matrix *m) {
    struct err e = { 0 };
    int code, interrupted = 0;
    if ((code = matrix_find_program(m)) >= 0 || (code = matrix_find_device(m)) >= 0)
        return code;
    if (matrix_plan(m, &e) != RC_OK) {
        matrix_say("%s", e.msg);
        return EXIT_REFUSED;
    }
    if ((code = matrix_store_open(m)) >= 0)
        return code;
    if (m->o.dry_run) {
        matrix_print_plan(m, stdout);
        return EXIT_CLEAN;
    }
    if ((code = matrix_lock_device(m)) >= 0)
        return code;
    if ((code = matrix_store_begin(m)) < 0)
        code = matrix_run_all(m, &interrupted);
    if (code < 0) {
        code = conclude(m);
        return interrupted ? 128 + interrupted : code;
    }
    matrix_store_undo(m);
    return code;
}

int cmd_matrix(int argc, char **argv) {
    struct matrix m = { .begin_ns = clock_now_ns() };
    int code = matrix_options_parse(&m, argc, argv);
    if (code < 0)
        code = run_matrix(&m);
    matrix_unlock(&m);
    free(m.o.schedules.items);
    free(m.o.prompts.items);
    free(m.o.inject.items);
    free(m.o.iterations.items);
    arena_clear(&m.arena);
    return code;
}
