/* greta_audit diff - compares two recordings and says where they first differ. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "audit/cmd.h"
#include "verdict/diff.h"

static const char help[] =
    "Usage: greta_audit diff [--json] A B\n"
    "\n"
    "Compares two recordings thread by thread: calls, kernels, tensors, sizes, results, and which\n"
    "memory and stream an operation used, but not addresses, handles and times. Says where they\n"
    "first differ, and how much each has that the other has not.\n"
    "\n"
    "  --json   one JSON document\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 the same, 1 different or not readable, 2 wrong usage.\n";

static const struct option long_options[] = {
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int wrong(const char *what, const char *value) {
    fprintf(stderr, "greta_audit diff: %s%s%s; `greta_audit diff --help` shows the usage\n", what,
            value ? ": " : "", value ? value : "");
    return EXIT_WRONG;
}

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
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "greta_audit diff: cannot write the output: %s\n", strerror(errno));
        code = EXIT_FOUND;
    }
    goto done;
fail:
    fprintf(stderr, "greta_audit diff: %s\n", e.msg);
done:
    diff_close(&d);
    reader_close(&a);
    reader_close(&b);
    return code;
}

int cmd_diff(int argc, char **argv) {
    bool json = false;
    int c;
    opterr = 0;
    optind = 0; /* makes glibc start over */
    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
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
    if (argc - optind != 2)
        return wrong("name two recordings", NULL);
    return compare(argv[optind], argv[optind + 1], json);
}
