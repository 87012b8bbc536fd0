#include "tools/audit/judge.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/output.h"
#include "report/report.h"
#include "report/report_html.h"
#include "report/report_md.h"
#include "report/report_perfetto.h"
#include "tools/audit/cmd.h"

/* ---- what is expected ------------------------------------------------------------------------ */

bool judge_expects(const struct judge_options *o) {
    return o->verdict.expect_commit || o->verdict.expect_build_id || o->verdict.expect_model_hash;
}

/* ---- the reports ----------------------------------------------------------------------------- */

struct job {
    const verdict *v;
    const reader *r;
    const struct judge_options *o;
};

static enum rc write_text(FILE *out, const struct job *j, struct err *e) {
    struct report_text_options text = { .colour = isatty(fileno(out)) && !env_text(ENV_NO_COLOR),
                                        .verbose = j->o->verbose,
                                        .stacks = j->o->stacks,

                                        .lang = j->o->lang };
    return report_text(out, j->v, &text, e);
}

static enum rc write_json(FILE *out, const struct job *j, struct err *e) {
    return report_json(out, j->v, e);
}

static enum rc write_md(FILE *out, const struct job *j, struct err *e) {
    struct report_md_options md = { .lang = j->o->lang };
    return report_md(out, j->v, j->r, &md, e);
}

static enum rc write_html(FILE *out, const struct job *j, struct err *e) {
    struct report_html_options html = { .lang = j->o->lang };
    return report_html(out, j->v, j->r, &html, e);
}

static enum rc write_perfetto(FILE *out, const struct job *j, struct err *e) {
    return report_perfetto(out, j->v, j->r, e);
}

static const struct {
    const char *file;
    enum rc (*write)(FILE *out, const struct job *j, struct err *e);
} reports[JUDGE_FORMATS] = {
    [JUDGE_TEXT] = { "report.txt", write_text },
    [JUDGE_JSON] = { "report.json", write_json },
    [JUDGE_MD] = { "report.md", write_md },
    [JUDGE_HTML] = { "report.html", write_html },
    [JUDGE_PERFETTO] = { "trace.perfetto.json", write_perfetto },
};

enum rc judge_write(FILE *out, enum judge_format format, const verdict *v, const reader *r,
                    const struct judge_options *o, struct err *e) {
    return reports[format].write(out, &(struct job){ v, r, o }, e);
}

enum rc judge_write_file(const char *path, enum judge_format format, const verdict *v,
                         const reader *r, const struct judge_options *o, struct err *e) {
    struct output out;
    enum rc rc = output_open(&out, path, e);
    if (rc == RC_OK)
        rc = output_close(&out, judge_write(out.file, format, v, r, o, e), e);
    return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

int judge_recording(const reader *r, const char *folder, const struct judge_options *o, FILE *say,
                    bool *whole) {
    struct err e = { 0 };
    verdict *v = NULL;
    *whole = false;
    if (verdict_open(&v, r, &o->verdict, &e) != RC_OK) {
        fprintf(stderr, "greta_audit: %s: %s\n", o->verdict.recording, e.msg);
        return EXIT_REFUSED;
    }
    bool written = true;
    for (int format = 0; format < JUDGE_FORMATS; format++) {
        char path[PATH_MAX];
        if (format == JUDGE_PERFETTO && !o->perfetto)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, reports[format].file);
        if (judge_write_file(path, (enum judge_format)format, v, r, o, &e) != RC_OK) {
            fprintf(stderr, "greta_audit: %s\n", e.msg);
            written = false;
        }
    }
    if (say)
        fprintf(say, "greta_audit: %s\ngreta_audit: reports in %s\n",
                lang_said(o->lang, v->answer_said, v->answer), folder);
    int code = verdict_exit_code(v);
    *whole = written && !v->coverage.lost;
    verdict_close(&v);
    return written ? code : EXIT_FOUND;
}
