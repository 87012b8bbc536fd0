/* greta_audit diff - compares two recordings and says where they first differ. */
#include <stdio.h>

#include "diff/diff.h"
#include "tools/audit/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/audit/diff.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/audit/diff.def"
};

const struct option_table cmd_diff_options = {
    .name = "greta_audit diff",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_audit diff [--json] A B\n"
              "\n"
              "Compares two recordings thread by thread: calls, kernels, tensors, sizes, results, "
              "and which\n"
              "memory and stream an operation used, but not addresses, handles and times. Says "
              "where they\n"
              "first differ, and how much of each the other does not have.\n"
              "\n",
    .after = "\n"
             "Exit status: 0 the same, 1 different or not readable, 2 wrong usage.\n",
};

static int compare(const char *name_a, const char *name_b, bool json) {
    struct err e;
    reader *a = NULL, *b = NULL;
    diff *d = NULL;
    int code = EXIT_FOUND;
    if (reader_open(&a, name_a, &e) != RC_OK || reader_open(&b, name_b, &e) != RC_OK ||
        diff_open(&d, a, b, &e) != RC_OK)
        goto fail;
    if (!json)
        diff_text(stdout, d, name_a, name_b);
    else if (diff_json(stdout, d, name_a, name_b, &e) != RC_OK)
        goto fail;
    code = d->same ? EXIT_CLEAN : EXIT_FOUND;
    if (!option_flush(&cmd_diff_options))
        code = EXIT_FOUND;
    goto done;
fail:
    option_say(&cmd_diff_options, "%s", e.msg);
done:
    diff_close(&d);
    reader_close(&a);
    reader_close(&b);
    return code;
}

int cmd_diff(int argc, char **argv) {
    struct options o = { 0 };
    struct option_operands files;
    int code = option_begin(&cmd_diff_options, &o, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count != 2)
        return option_wrong(&cmd_diff_options, "name two recordings", NULL);
    return compare(files.words[0], files.words[1], o.json);
}
