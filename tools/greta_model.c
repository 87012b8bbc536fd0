/* greta_model - looks at model files and makes them. This file is the table of subcommands; each is
 * in tools/model/cmd_NAME.c. */
#include <stdio.h>
#include <string.h>

#include "greta_build.h"
#include "model/cmd.h"

static const struct cmd {
    const char *name, *arguments, *does;
    int (*run)(int argc, char **argv);
} cmds[] = {
    { "info", "[options] FILE", "print a model's metadata and tensors", cmd_info },
    { "verify", "[options] FILE", "check names, shapes and numbers of a model", cmd_verify },
    { "quantize", "[options] IN OUT TYPE", "rewrite a model with other tensor types",
      cmd_quantize },
    { "synth", "[options] -o FILE", "write a model with random weights", cmd_synth },
    { "tokenize", "[options] FILE", "turn text on standard input into token ids", cmd_tokenize },
};

static void print_help(FILE *out) {
    fputs("Usage: greta_model COMMAND [ARGUMENT…]\n\nCommands:\n", out);
    for (size_t i = 0; i < sizeof cmds / sizeof *cmds; i++)
        fprintf(out, "  %-9s %-22s %s\n", cmds[i].name, cmds[i].arguments, cmds[i].does);
    fputs(
        "\nOptions:\n"
        "  --help     this text; `greta_model COMMAND --help` for those of a command\n"
        "  --version  version and commit\n"
        "\nExit status: 0 done and clean, 1 the run failed or problems were found, 2 wrong usage,\n"
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
        printf("greta_model %s (%s%s)\n", GRETA_VERSION, GRETA_BUILD_COMMIT,
               GRETA_BUILD_DIRTY ? ", changed" : "");
        return EXIT_CLEAN;
    }
    for (size_t i = 0; i < sizeof cmds / sizeof *cmds; i++)
        if (!strcmp(word, cmds[i].name))
            return cmds[i].run(argc - 1, argv + 1);
    fprintf(stderr, "greta_model: unknown %s '%s'; `greta_model --help` lists what there is\n",
            word[0] == '-' ? "option" : "command", word);
    return EXIT_WRONG;
}
