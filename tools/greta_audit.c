/* greta_audit - records HIP programs and judges the recordings. This file is the table of
 * subcommands; each is in tools/audit/cmd_NAME.c. */
#include <stdio.h>
#include <string.h>

#include "audit/cmd.h"
#include "greta_build.h"

static const struct cmd {
    const char *name, *arguments, *does;
    int (*run)(int argc, char **argv);
} cmds[] = {
    { "run", "[options] -- CMD…", "record a HIP program and judge it", cmd_run },
    { "matrix", "--profile P [options]", "run a program many times and judge all of it",
      cmd_matrix },
    { "report", "[options] RECORDING", "judge a recording again", cmd_report },
    { "dump", "[options] RECORDING", "print a recording, one line an event", cmd_dump },
    { "diff", "[--json] A B", "say where two recordings first differ", cmd_diff },
    { "lint", "[options] SOURCE…", "find direct HIP copies in sources", cmd_lint },
};

static void print_help(FILE *out) {
    fputs("Usage: greta_audit COMMAND [ARGUMENT…]\n\nCommands:\n", out);
    for (size_t i = 0; i < sizeof cmds / sizeof *cmds; i++)
        fprintf(out, "  %-8s %-22s %s\n", cmds[i].name, cmds[i].arguments, cmds[i].does);
    fputs("\nOptions:\n"
          "  --help     this text; `greta_audit COMMAND --help` for those of a command\n"
          "  --version  version and commit\n"
          "\nExit status: 0 done and clean, 1 the run failed or bugs were found, 2 wrong usage,\n"
          "3 refused.\n",
          out);
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        print_help(stderr);
        return EXIT_WRONG;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        print_help(stdout);
        return EXIT_CLEAN;
    }
    if (!strcmp(word, "--version")) {
        printf("greta_audit %s (%s%s)\n", GRETA_VERSION, GRETA_BUILD_COMMIT,
               GRETA_BUILD_DIRTY ? ", changed" : "");
        return EXIT_CLEAN;
    }
    for (size_t i = 0; i < sizeof cmds / sizeof *cmds; i++)
        if (!strcmp(word, cmds[i].name))
            return cmds[i].run(argc - 1, argv + 1);
    fprintf(stderr, "greta_audit: unknown %s '%s'; `greta_audit --help` lists what there is\n",
            word[0] == '-' ? "option" : "command", word);
    return EXIT_WRONG;
}
