/* greta_audit report - judges a recording again and writes one report about it. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/cmd.h"
#include "verdict/lang.h"
#include "verdict/report.h"
#include "verdict/report_html.h"
#include "verdict/report_md.h"
#include "verdict/report_perfetto.h"

struct options {
    const char *recording, *out;
    enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MD, FORMAT_HTML, FORMAT_PERFETTO } format;
    enum lang lang;
    bool exit_code, verbose;
    struct verdict_options judge;
};

static const char help[] =
    "Usage: greta_audit report [options] RECORDING\n"
    "\n"
    "Says what went wrong in a recorded run, on what evidence, and what is ruled out.\n"
    "\n"
    "  --text                 for a terminal (the default); the first line is the answer\n"
    "  --json                 one JSON document (docs/report.schema.json)\n"
    "  --md                   Markdown; --lang en|es chooses the language\n"
    "  --html                 one HTML file with a timeline\n"
    "  --perfetto             a trace for ui.perfetto.dev\n"
    "  --out FILE             write to FILE instead of standard output\n"
    "  --verbose              in text: every finding and all evidence\n"
    "  --expect-commit C      refuse to judge the run of another commit (7 digits or more)\n"
    "  --expect-model-hash H  refuse to judge the run of another model\n"
    "  --expect-failure       this run is known to fail: say NOT_REPRODUCED if it did not\n"
    "  --exit-code            exit with 1 if the run failed or bugs were found\n"
    "  --help                 this text\n"
    "\n"
    "Exit status: 0 the report was written (with --exit-code: and is clean), 1 see there,\n"
    "2 wrong usage, 3 refused: no recording, or not the expected binary or model.\n";

enum {
    OPTION_LANG = 256,
    OPTION_OUT,
    OPTION_VERBOSE,
    OPTION_COMMIT,
    OPTION_MODEL,
    OPTION_FAILURE,
    OPTION_EXIT,
    OPTION_FORMAT, /* + enum format */
};

static const struct option long_options[] = {
    { "text", no_argument, NULL, OPTION_FORMAT + FORMAT_TEXT },
    { "json", no_argument, NULL, OPTION_FORMAT + FORMAT_JSON },
    { "md", no_argument, NULL, OPTION_FORMAT + FORMAT_MD },
    { "html", no_argument, NULL, OPTION_FORMAT + FORMAT_HTML },
    { "perfetto", no_argument, NULL, OPTION_FORMAT + FORMAT_PERFETTO },
    { "lang", required_argument, NULL, OPTION_LANG },
    { "out", required_argument, NULL, OPTION_OUT },
    { "verbose", no_argument, NULL, OPTION_VERBOSE },
    { "expect-commit", required_argument, NULL, OPTION_COMMIT },
    { "expect-model-hash", required_argument, NULL, OPTION_MODEL },
    { "expect-failure", no_argument, NULL, OPTION_FAILURE },
    { "exit-code", no_argument, NULL, OPTION_EXIT },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int wrong(const char *what, const char *value) {
    fprintf(stderr, "greta_audit report: %s%s%s; `greta_audit report --help` shows the usage\n",
            what, value ? ": " : "", value ? value : "");
    return EXIT_WRONG;
}

/* -1: go on; otherwise the exit code. */
static int parse(struct options *o, int argc, char **argv) {
    int c;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case OPTION_LANG:
            if (!lang_parse(optarg, &o->lang))
                return wrong("expected en or es after --lang, found", optarg);
            break;
        case OPTION_OUT:
            o->out = optarg;
            break;
        case OPTION_VERBOSE:
            o->verbose = true;
            break;
        case OPTION_COMMIT:
            if (strlen(optarg) < 7)
                return wrong("expected 7 digits or more after --expect-commit, found", optarg);
            o->judge.expect_commit = optarg;
            break;
        case OPTION_MODEL:
            o->judge.expect_model_hash = optarg;
            break;
        case OPTION_FAILURE:
            o->judge.expect_failure = true;
            break;
        case OPTION_EXIT:
            o->exit_code = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_CLEAN;
        case ':':
            return wrong("a value is missing after", argv[optind - 1]);
        case '?':
            return wrong("unknown option", argv[optind - 1]);
        default:
            o->format = (enum format)(c - OPTION_FORMAT);
        }
    }
    if (argc - optind != 1)
        return wrong(argc == optind ? "a recording is missing" : "more than one recording", NULL);
    o->recording = o->judge.recording = argv[optind];
    return -1;
}

static enum rc write_report(FILE *out, const verdict *v, const reader *r, const struct options *o,
                            struct err *e) {
    struct report_text_options text = { .colour = isatty(fileno(out)) && !getenv("NO_COLOR"),
                                        .verbose = o->verbose };
    struct report_md_options md = { .lang = o->lang };
    switch (o->format) {
    case FORMAT_JSON:
        return report_json(out, v, e);
    case FORMAT_MD:
        return report_md(out, v, r, &md, e);
    case FORMAT_HTML:
        return report_html(out, v, r, NULL, e);
    case FORMAT_PERFETTO:
        return report_perfetto(out, v, r, e);
    default:
        return report_text(out, v, &text, e);
    }
}

/* Writes to a new file and renames it, so that a report is there as a whole or not at all. */
static enum rc write_file(const verdict *v, const reader *r, const struct options *o,
                          struct err *e) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s.new.%d", o->out, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(e, RC_USAGE, "%s: too long a name", o->out);
    FILE *out = fopen(path, "w");
    if (!out)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    enum rc rc = write_report(out, v, r, o, e);
    if (fclose(out) != 0 && rc == RC_OK)
        rc = err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    if (rc == RC_OK && rename(path, o->out) != 0)
        rc = err_set(e, RC_IO, "%s: %s", o->out, strerror(errno));
    if (rc != RC_OK)
        unlink(path);
    return rc;
}

static int complain(const struct err *e) {
    fprintf(stderr, "greta_audit report: %s\n", e->msg);
    return EXIT_REFUSED;
}

int cmd_report(int argc, char **argv) {
    struct options o = { .lang = LANG_EN };
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    int code = parse(&o, argc, argv);
    if (code >= 0)
        return code;
    if (reader_open(&r, o.recording, &e) != RC_OK)
        return complain(&e);
    enum rc rc = verdict_open(&v, r, &o.judge, &e);
    if (rc == RC_OK)
        rc = o.out ? write_file(v, r, &o, &e) : write_report(stdout, v, r, &o, &e);
    if (rc != RC_OK) {
        code = complain(&e);
    } else {
        code = verdict_exit_code(v);
        if (!o.exit_code && code != EXIT_REFUSED)
            code = EXIT_CLEAN;
    }
    verdict_close(&v);
    reader_close(&r);
    return code;
}
