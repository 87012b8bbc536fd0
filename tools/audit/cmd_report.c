/* greta_audit report - judges a recording again and writes one report about it. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "audit/cmd.h"
#include "audit/judge.h"

struct options {
    const char *recording, *out;
    enum judge_format format;
    bool exit_code;
    struct judge_options judge;
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
    "  --expect-build-id B    the same for another build of the program (7 digits or more)\n"
    "  --expect-model-hash H  refuse to judge the run of another model\n"
    "  --expect-failure       this run is known to fail: say NOT_REPRODUCED if it did not\n"
    "  --exit-code            exit with 1 if the run failed or bugs were found\n"
    "  --help                 this text\n"
    "\n"
    "Exit status: 0 the report was written (with --exit-code: and is clean), 1 see there,\n"
    "2 wrong usage, 3 refused: no recording, or not the expected binary or model, or (with\n"
    "--exit-code) no HIP call in it.\n";

enum {
    OPTION_LANG = 256,
    OPTION_OUT,
    OPTION_VERBOSE,
    OPTION_COMMIT,
    OPTION_BUILD,
    OPTION_MODEL,
    OPTION_FAILURE,
    OPTION_EXIT,
    OPTION_FORMAT, /* + enum judge_format */
};

static const struct option long_options[] = {
    { "text", no_argument, NULL, OPTION_FORMAT + JUDGE_TEXT },
    { "json", no_argument, NULL, OPTION_FORMAT + JUDGE_JSON },
    { "md", no_argument, NULL, OPTION_FORMAT + JUDGE_MD },
    { "html", no_argument, NULL, OPTION_FORMAT + JUDGE_HTML },
    { "perfetto", no_argument, NULL, OPTION_FORMAT + JUDGE_PERFETTO },
    { "lang", required_argument, NULL, OPTION_LANG },
    { "out", required_argument, NULL, OPTION_OUT },
    { "verbose", no_argument, NULL, OPTION_VERBOSE },
    { "expect-commit", required_argument, NULL, OPTION_COMMIT },
    { "expect-build-id", required_argument, NULL, OPTION_BUILD },
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

/* -1: fine. */
static int expect(struct options *o, enum judge_expectation what, const char *value) {
    const char *wanted = judge_expect(&o->judge, what, value);
    char text[80];
    snprintf(text, sizeof text, "expected %s, found", wanted ? wanted : "");
    return wanted ? wrong(text, value) : -1;
}

/* -1: go on; otherwise the exit code. */
static int parse(struct options *o, int argc, char **argv) {
    int c, code = -1;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while (code < 0 && (c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case OPTION_LANG:
            if (!lang_parse(optarg, &o->judge.lang))
                return wrong("expected en or es after --lang, found", optarg);
            break;
        case OPTION_OUT:
            o->out = optarg;
            break;
        case OPTION_VERBOSE:
            o->judge.verbose = true;
            break;
        case OPTION_COMMIT:
            code = expect(o, JUDGE_COMMIT, optarg);
            break;
        case OPTION_BUILD:
            code = expect(o, JUDGE_BUILD_ID, optarg);
            break;
        case OPTION_MODEL:
            code = expect(o, JUDGE_MODEL_HASH, optarg);
            break;
        case OPTION_FAILURE:
            o->judge.verdict.expect_failure = true;
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
            o->format = (enum judge_format)(c - OPTION_FORMAT);
        }
    }
    if (code >= 0)
        return code;
    if (argc - optind != 1)
        return wrong(argc == optind ? "a recording is missing" : "more than one recording", NULL);
    o->recording = o->judge.verdict.recording = argv[optind];
    return -1;
}

static int complain(const struct err *e) {
    fprintf(stderr, "greta_audit report: %s\n", e->msg);
    return EXIT_REFUSED;
}

int cmd_report(int argc, char **argv) {
    struct options o = { .judge.lang = LANG_EN };
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    int code = parse(&o, argc, argv);
    if (code >= 0)
        return code;
    if (reader_open(&r, o.recording, &e) != RC_OK)
        return complain(&e);
    enum rc rc = verdict_open(&v, r, &o.judge.verdict, &e);
    if (rc == RC_OK)
        rc = o.out ? judge_write_file(o.out, o.format, v, r, &o.judge, &e)
                   : judge_write(stdout, o.format, v, r, &o.judge, &e);
    if (rc != RC_OK) {
        code = complain(&e);
    } else {
        code = verdict_exit_code(v);
        if (!o.exit_code && !(code == EXIT_REFUSED && judge_expects(&o.judge)))
            code = EXIT_CLEAN;
    }
    verdict_close(&v);
    reader_close(&r);
    return code;
}
