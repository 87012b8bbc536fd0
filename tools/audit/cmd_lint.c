/* greta_audit lint - finds direct HIP copies in sources: those that bypass the wrappers of
 * <gcore/d2h.h>. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "audit/cmd.h"
#include "verdict/lint.h"

static const char help[] =
    "Usage: greta_audit lint [options] SOURCE…\n"
    "\n"
    "Finds calls of hipMemcpy and its relatives in C, C++ and HIP sources: copies that bypass the\n"
    "checked ones of <gcore/d2h.h>. A SOURCE is a file, or a folder with sources at any depth.\n"
    "\n"
    "A copy that is meant to be direct is allowed by a comment on its line or on the line before:\n"
    "    // gcore-lint: allow REASON\n"
    "\n"
    "  --all    show the allowed ones too\n"
    "  --json   one JSON document\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 none found, 1 found some or a source could not be read, 2 wrong usage.\n";

static const struct option long_options[] = {
    { "all", no_argument, NULL, 'a' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int wrong(const char *what, const char *value) {
    fprintf(stderr, "greta_audit lint: %s%s%s; `greta_audit lint --help` shows the usage\n", what,
            value ? ": " : "", value ? value : "");
    return EXIT_WRONG;
}

static void print_problem(const char *text) {
    fprintf(stderr, "greta_audit lint: %s\n", text);
}

static int print_all(const lint *l, bool json, bool all) {
    struct err e;
    if (!json) {
        lint_text(stdout, l, all);
    } else if (lint_json(stdout, l, &e) != RC_OK) {
        print_problem(e.msg);
        return EXIT_FOUND;
    }
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "greta_audit lint: cannot write the output: %s\n", strerror(errno));
        return EXIT_FOUND;
    }
    struct lint_totals t = lint_totals(l);
    return t.found > t.allowed || t.unreadable ? EXIT_FOUND : EXIT_CLEAN;
}

int cmd_lint(int argc, char **argv) {
    bool json = false, all = false;
    struct err e;
    lint *l = NULL;
    int c;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'a':
            all = true;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_CLEAN;
        default:
            return wrong("unknown option", argv[optind - 1]);
        }
    }
    if (optind >= argc)
        return wrong("name the sources to read", NULL);
    if (lint_open(&l, &e) != RC_OK) {
        print_problem(e.msg);
        return EXIT_FOUND;
    }
    for (int i = optind; i < argc; i++)
        if (lint_add(l, argv[i], print_problem, &e) == RC_MEMORY)
            break; /* said, and counted */
    int code = print_all(l, json, all);
    lint_close(&l);
    return code;
}
