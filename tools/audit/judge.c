#include "audit/judge.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "audit/cmd.h"
#include "verdict/lang.h"
#include "verdict/report.h"
#include "verdict/report_html.h"
#include "verdict/report_md.h"
#include "verdict/report_perfetto.h"

struct job {
    const verdict *v;
    const reader *r;
    enum lang lang;
};

static enum rc write_json(FILE *out, const struct job *j, struct err *e) {
    return report_json(out, j->v, e);
}

static enum rc write_text(FILE *out, const struct job *j, struct err *e) {
    struct report_text_options text = { .verbose = true };
    return report_text(out, j->v, &text, e);
}

static enum rc write_md(FILE *out, const struct job *j, struct err *e) {
    struct report_md_options md = { .lang = j->lang };
    return report_md(out, j->v, j->r, &md, e);
}

static enum rc write_html(FILE *out, const struct job *j, struct err *e) {
    return report_html(out, j->v, j->r, NULL, e);
}

static enum rc write_perfetto(FILE *out, const struct job *j, struct err *e) {
    return report_perfetto(out, j->v, j->r, e);
}

static const struct {
    const char *file;
    enum rc (*write)(FILE *out, const struct job *j, struct err *e);
} reports[] = {
    { "report.json", write_json },
    { "report.txt", write_text },
    { "report.md", write_md },
    { "report.html", write_html },
    { "trace.perfetto.json", write_perfetto },
};

static bool write_report(size_t which, const char *folder, const struct job *j) {
    char path[PATH_MAX];
    struct err e = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, reports[which].file);
    FILE *out = fopen(path, "w");
    enum rc rc = out ? reports[which].write(out, j, &e) : err_set(&e, RC_IO, "%s", strerror(errno));
    if (out && fclose(out) != 0 && rc == RC_OK)
        rc = err_set(&e, RC_IO, "%s", strerror(errno));
    if (rc != RC_OK)
        fprintf(stderr, "greta_audit: %s: %s\n", path, e.msg);
    return rc == RC_OK;
}

int judge_recording(const reader *r, const char *recording, const char *folder,
                    const struct judge_options *o, FILE *say) {
    struct verdict_options options = { .recording = recording,
                                       .expect_commit = o->expect_commit,
                                       .expect_model_hash = o->expect_model_hash };
    struct err e = { 0 };
    verdict *v = NULL;
    if (verdict_open(&v, r, &options, &e) != RC_OK) {
        fprintf(stderr, "greta_audit: %s: %s\n", recording, e.msg);
        return EXIT_REFUSED;
    }
    struct job job = { v, r, LANG_EN };
    if (o->language)
        (void)lang_parse(o->language, &job.lang); /* was checked with the options */
    bool written = true;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        written &= write_report(i, folder, &job);
    if (say)
        fprintf(say, "greta_audit: %s\ngreta_audit: reports in %s\n", v->answer, folder);
    int code = verdict_exit_code(v);
    verdict_close(&v);
    return written ? code : EXIT_FOUND;
}
