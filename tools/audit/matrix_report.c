/* matrix_report.c - FINAL_REPORT.md: the report about one representative run, with the verdict and
 * the hypotheses of all runs, the test matrix, and a table of the schedules. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/output.h"
#include "record/reader.h"
#include "report/md.h"
#include "report/report_md.h"
#include "symbol/lines.h"
#include "tools/audit/matrix.h"

enum { ROWS_SHOWN = 20 };

enum text_id {
#define MATRIX_TEXT(id, en, es) TEXT_##id,
#include "tools/audit/matrix_text.def"
    TEXT_COUNT
};

static const char *const texts[TEXT_COUNT][LANG_COUNT] = {
#define MATRIX_TEXT(id, en, es) { en, es },
#include "tools/audit/matrix_text.def"
};

struct job {
    struct matrix *m;
    const struct matrix_total *t;
};

static const char *text(const struct job *j, enum text_id id) {
    return texts[id][j->m->o.lang];
}

static void table_head(FILE *out, const struct job *j, enum text_id title, const enum text_id *ids,
                       size_t count) {
    fprintf(out, "\n### %s\n\n|", text(j, title));
    for (size_t i = 0; i < count; i++)
        fprintf(out, " %s |", text(j, ids[i]));
    fputs("\n|", out);
    for (size_t i = 0; i < count; i++)
        fputs("---|", out);
    putc('\n', out);
}

static void put_list(FILE *out, const struct matrix_list *l) {
    for (size_t i = 0; i < l->count; i++) {
        fputs(i ? ", " : "", out);
        md_code_cell(out, l->items[i]);
    }
    if (!l->count)
        putc('-', out);
}

static void put_schedules(FILE *out, const struct job *j) {
    static const enum text_id head[] = { TEXT_SCHEDULE, TEXT_RUNS, TEXT_ERRORS, TEXT_CONFIRMED,
                                         TEXT_SHOWN_BY };
    const struct matrix_total *t = j->t;
    if (!t->schedule_count)
        return;
    table_head(out, j, TEXT_SCHEDULES, head, sizeof head / sizeof *head);
    for (size_t i = 0; i < t->schedule_count; i++) {
        const struct matrix_by_schedule *s = &t->schedules[i];
        fprintf(out, "| %s | %zu | %zu | ", s->name, s->runs, s->errors);
        for (int id = 0; id < HYPOTHESIS_COUNT; id++)
            if (s->confirmed >> id & 1)
                fprintf(out, "%s ", hypothesis_name((enum verdict_hypothesis_id)id));
        fputs(s->confirmed ? "| " : "- | ", out);
        put_list(out, &s->shown_by);
        fputs(" |\n", out);
    }
}

static void put_findings(FILE *out, const struct job *j) {
    static const enum text_id head[] = { TEXT_HYPOTHESIS, TEXT_CULPRIT, TEXT_SITE,
                                         TEXT_RUNS,       TEXT_FIRST,   TEXT_SCHEDULE };
    const struct matrix_total *t = j->t;
    if (!t->finding_count)
        return;
    table_head(out, j, TEXT_FINDINGS, head, sizeof head / sizeof *head);
    for (size_t i = 0; i < t->finding_count && i < ROWS_SHOWN; i++) {
        const struct matrix_finding *f = &t->findings[i];
        fprintf(out, "| %s | ", hypothesis_name(f->hypothesis));
        md_code_cell(out, f->culprit);
        fputs(" | ", out);
        md_code_cell(out, f->site);
        fprintf(out, " | %zu | `%s` | ", f->runs, f->first->id);
        put_list(out, &f->schedules);
        fputs(" |\n", out);
    }
    if (t->finding_count > ROWS_SHOWN) {
        putc('\n', out);
        fprintf(out, text(j, TEXT_MORE), t->finding_count - ROWS_SHOWN);
        putc('\n', out);
    }
}

static void put_error(FILE *out, const struct job *j, const struct matrix_run *r) {
    fprintf(out, "| `%s` | ", r->id);
    md_code_cell(out, r->schedule ? r->schedule : "");
    fprintf(out, " | %s", matrix_end_text(r->end, j->m->o.lang));
    if (r->signal)
        fprintf(out, " (%d)", r->signal);
    else if (r->exit_status)
        fprintf(out, " (%d)", r->exit_status);
    fputs(" | ", out);
    md_code_cell(out, r->last_line);
    fputs(" |\n", out);
}

static void put_errors(FILE *out, const struct job *j) {
    static const enum text_id head[] = { TEXT_RUN, TEXT_SCHEDULE, TEXT_END, TEXT_LAST_LINE };
    size_t shown = 0;
    if (!j->t->errors)
        return;
    table_head(out, j, TEXT_WRONG_RUNS, head, sizeof head / sizeof *head);
    for (size_t i = 0; i < j->m->run_count && shown < ROWS_SHOWN; i++) {
        const struct matrix_run *r = &j->m->runs[i];
        if (!r->done || !matrix_end_is_error(r->end))
            continue;
        put_error(out, j, r);
        shown++;
    }
    if (j->t->errors > shown) {
        putc('\n', out);
        fprintf(out, text(j, TEXT_MORE), j->t->errors - shown);
        putc('\n', out);
    }
}

/* After the test matrix. */
static void put_runs(FILE *out, void *user) {
    const struct job *j = user;
    const struct matrix_total *t = j->t;
    if (!t->complete) {
        fputs("\n**", out);
        fprintf(out, text(j, TEXT_INCOMPLETE), t->done, j->m->run_count);
        fputs("**\n", out);
    }
    putc('\n', out);
    if (t->example)
        fprintf(out, text(j, TEXT_EXAMPLE), t->example->id, t->example->id);
    else
        fputs(text(j, TEXT_NO_EXAMPLE), out);
    putc('\n', out);
    put_findings(out, j);
    put_schedules(out, j);
    put_errors(out, j);
    if (t->example && t->errors) {
        fprintf(out, "\n### %s\n\n```\n", text(j, TEXT_REPEAT));
        matrix_print_command(j->m, t->example, out);
        fputs("\n```\n", out);
    }
}

/* ---- the verdict of all runs ---- */

/* Nothing was recorded, or cannot be read again. */
static void empty_verdict(struct verdict *v) {
    *v = (struct verdict){ .recording = "" };
    v->coverage.gaps = "";
    v->coverage.last_event = EVENT_NO_SEQ;
    v->provenance.commit = v->provenance.build_id = "";
    v->provenance.model_hash = v->provenance.command = "";
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        v->hypothesis[id].id = (enum verdict_hypothesis_id)id;
}

/* one: the verdict on the run that is shown; NULL: none. */
static void total_verdict(struct verdict *v, const struct job *j, const verdict *one) {
    const struct matrix_total *t = j->t;
    v->overall = t->overall;
    v->answer = t->answer;
    v->answer_said = matrix_answer(t, j->m, one ? one->answer_said : NULL);
    v->provenance.start_wall_us = j->m->start_wall_us;
    for (int id = 0; id < HYPOTHESIS_COUNT; id++) {
        const struct matrix_by_hypothesis *b = &t->hypotheses[id];
        struct verdict_hypothesis *h = &v->hypothesis[id];
        char words[256];
        snprintf(words, sizeof words, text(j, TEXT_IN_RUNS), b->runs[VERDICT_STATUS_CONFIRMED],
                 b->runs[VERDICT_STATUS_RULED_OUT], b->runs[VERDICT_STATUS_INCONCLUSIVE],
                 b->runs[VERDICT_STATUS_NOT_APPLICABLE], t->judged);
        const char *kept = arena_copy_text(&j->m->arena, words, strlen(words));
        h->status = matrix_status(t, (enum verdict_hypothesis_id)id);
        h->checked = b->checked;
        h->findings = b->findings;
        h->text = kept ? kept : "";
        h->evidence_count = 0; /* of one run's events */
    }
}

static void fill_rows(struct report_matrix_row *rows, char names[][32], const struct job *j) {
    static const char *const letters[MATRIX_MODES_MAX] = { "A", "B", "C", "D" };
    for (size_t i = 0; i < j->m->profile.mode_count; i++) {
        const struct matrix_mode *mode = &j->m->profile.modes[i];
        const struct matrix_by_mode *b = &j->t->modes[i];
        snprintf(names[i], 32, "%s", mode->name);
        names[i][0] = (char)toupper((unsigned char)names[i][0]);
        rows[i] = (struct report_matrix_row){ .test = letters[i],
                                              .mode = names[i],
                                              .settings = mode->environment,
                                              .iterations = b->done,
                                              .errors = b->errors,
                                              .result = matrix_mode_result(b, mode) };
    }
}

static enum rc write_report(FILE *out, const struct job *j, const verdict *one, const reader *r,
                            struct err *e) {
    struct report_matrix_row rows[MATRIX_MODES_MAX];
    char names[MATRIX_MODES_MAX][32];
    struct job copy = *j;
    struct report_md_options o = { .lang = j->m->o.lang,
                                   .matrix = rows,
                                   .matrix_rows = j->m->profile.mode_count,
                                   .after_matrix = put_runs,
                                   .user = &copy };
    struct verdict all;
    if (one)
        all = *one;
    else
        empty_verdict(&all);
    total_verdict(&all, j, one);
    fill_rows(rows, names, j);
    return report_md(out, &all, r, &o, e);
}

enum rc matrix_write_report(struct matrix *m, const struct matrix_total *t, struct err *e) {
    const struct job j = { m, t };
    struct output f;
    char path[PATH_MAX], recording[PATH_MAX] = "", shown[PATH_MAX];
    struct verdict_options o = { .expect_commit = m->o.expect_commit,
                                 .expect_model_hash = m->o.expect_model_hash };
    reader *r = NULL;
    verdict *v = NULL;
    if (t->example) {
        matrix_run_path(m, t->example, "record.gcr", recording);
        snprintf(shown, sizeof shown, "runs/%s/record.gcr", t->example->id);
        o.recording = shown;
        if (reader_open(&r, recording, NULL) == RC_OK) {
            lines_attach(r);
            if (verdict_open(&v, r, &o, NULL) != RC_OK)
                v = NULL;
        }
    }
    snprintf(path, sizeof path, "%s/FINAL_REPORT.md", m->folder);
    enum rc rc = output_open(&f, path, e);
    if (rc == RC_OK)
        rc = output_close(&f, write_report(f.file, &j, v, v ? r : NULL, e), e);
    verdict_close(&v);
    reader_close(&r);
    return rc;
}
