/* greta_audit lint - finds direct HIP copies in sources: those that bypass the wrappers of
 * <gcore/d2h.h>. */
#include <stdio.h>

#include "lint/lint.h"
#include "tools/audit/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/audit/lint.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/audit/lint.def"
};

const struct option_table cmd_lint_options = {
    .name = "greta_audit lint",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_audit lint [options] SOURCE…\n"
              "\n"
              "Finds calls of hipMemcpy and its relatives in C, C++ and HIP sources: copies that "
              "bypass the\n"
              "checked ones of <gcore/d2h.h>. A SOURCE is a file, or a folder with sources at any "
              "depth.\n"
              "\n"
              "A copy that is meant to be direct is allowed by a comment on its line or on the "
              "line before:\n"
              "    // gcore-lint: allow REASON\n"
              "\n",
    .after =
        "\n"
        "Exit status: 0 none found, 1 found some or a source could not be read, 2 wrong usage.\n",
};

static void print_problem(const char *text) {
    option_say(&cmd_lint_options, "%s", text);
}

static int print_all(const lint *l, bool json, bool all) {
    struct err e;
    if (!json) {
        lint_text(stdout, l, all);
    } else if (lint_json(stdout, l, &e) != RC_OK) {
        print_problem(e.msg);
        return EXIT_FOUND;
    }
    if (!option_flush(&cmd_lint_options))
        return EXIT_FOUND;
    struct lint_totals t = lint_totals(l);
    return t.found > t.allowed || t.unreadable ? EXIT_FOUND : EXIT_CLEAN;
}

int cmd_lint(int argc, char **argv) {
    struct options o = { 0 };
    struct option_operands sources;
    struct err e;
    lint *l = NULL;
    int code = option_begin(&cmd_lint_options, &o, argc, argv, &sources);
    if (code >= 0)
        return code;
    if (!sources.count)
        return option_wrong(&cmd_lint_options, "name the sources to read", NULL);
    if (lint_open(&l, &e) != RC_OK) {
        print_problem(e.msg);
        return EXIT_FOUND;
    }
    for (int i = 0; i < sources.count; i++)
        if (lint_add(l, sources.words[i], print_problem, &e) == RC_MEMORY)
            break; /* said, and counted */
    code = print_all(l, o.json, o.all);
    lint_close(&l);
    return code;
}
