/* greta_audit report - judges a recording again and writes one report about it. */
#include <stdio.h>

#include "symbol/lines.h"
#include "tools/audit/cmd.h"
#include "tools/audit/judge.h"
#include "tools/audit/kind.h"

/* --text, --json, …: the last one wins. */
#define FORMAT(name, format)                                                                       \
    static enum rc read_##name(void *to, const char *text, void *all, struct err *e) {             \
        (void)text, (void)all, (void)e;                                                            \
        *(enum judge_format *)to = format;                                                         \
        return RC_OK;                                                                              \
    }                                                                                              \
    static const struct option_kind option_format_##name = { .read = read_##name, .bare = true };
FORMAT(text, JUDGE_TEXT)
FORMAT(json, JUDGE_JSON)
FORMAT(md, JUDGE_MD)
FORMAT(html, JUDGE_HTML)
FORMAT(perfetto, JUDGE_PERFETTO)
typedef enum judge_format option_format_text_type;

struct options {
#define OPTION OPTION_FIELD
#define ALSO(...)
#include "tools/audit/report.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#define ALSO   OPTION_ROW
#include "tools/audit/report.def"
};

const struct option_table cmd_report_options = {
    .name = "greta_audit report",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_audit report [options] RECORDING\n"
              "\n"
              "Says what went wrong in a recorded run, on what evidence, and what is ruled out.\n"
              "RECORDING is a file, or the folder in which `greta_audit run` put it.\n"
              "\n",
    .after =
        "\n"
        "Exit status: 0 the report was written (with --exit-code: and is clean), 1 see there,\n"
        "2 wrong usage, 3 refused: no recording, or not the expected binary or model, or (with\n"
        "--exit-code) no HIP call in it.\n",
};

static int complain(const struct err *e) {
    option_say(&cmd_report_options, "%s", e->msg);
    return EXIT_REFUSED;
}

static int report(const struct options *o, const char *recording) {
    struct judge_options judge = {
        .verdict = { .recording = recording,
                     .expect_commit = o->expect_commit,
                     .expect_build_id = o->expect_build_id,
                     .expect_model_hash = o->expect_model_hash,
                     .expect_failure = o->expect_failure },
        .lang = o->lang,
        .verbose = o->verbose,
        .stacks = o->stacks,
    };
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    int code;
    if (reader_open(&r, recording, &e) != RC_OK)
        return complain(&e);
    lines_attach(r);
    enum rc rc = verdict_open(&v, r, &judge.verdict, &e);
    if (rc == RC_OK)
        rc = o->out ? judge_write_file(o->out, o->format, v, r, &judge, &e)
                    : judge_write(stdout, o->format, v, r, &judge, &e);
    if (rc != RC_OK) {
        code = complain(&e);
    } else {
        code = verdict_exit_code(v);
        if (!o->exit_code && !(code == EXIT_REFUSED && judge_expects(&judge)))
            code = EXIT_CLEAN;
    }
    verdict_close(&v);
    reader_close(&r);
    return code;
}

int cmd_report(int argc, char **argv) {
    struct options o = { .lang = LANG_EN };
    struct option_operands files;
    int code = option_begin(&cmd_report_options, &o, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count != 1)
        return option_wrong(&cmd_report_options,
                            files.count ? "more than one recording" : "a recording is missing",
                            NULL);
    return report(&o, files.words[0]);
}
