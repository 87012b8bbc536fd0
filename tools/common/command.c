#include "tools/common/command.h"

#include <stdbool.h>
#include <string.h>

#include "tools/common/completion.h"
#include "tools/common/program.h"

static void print_help(const struct command_set *set, FILE *out) {
    int name = 0, arguments = 0;
    for (const struct command *c = set->commands; c < set->commands + set->count; c++) {
        int columns = option_columns(c->arguments);
        name = (int)strlen(c->name) > name ? (int)strlen(c->name) : name;
        arguments = columns > arguments ? columns : arguments;
    }
    fprintf(out, "Usage: %s COMMAND [ARGUMENT…]\n\nCommands:\n", set->program);
    for (const struct command *c = set->commands; c < set->commands + set->count; c++)
        fprintf(out, "  %-*s  %s%*s  %s\n", name, c->name, c->arguments,
                arguments - option_columns(c->arguments), "", c->does);
    fprintf(out,
            "\nOptions:\n"
            "  --help              this text; `%s COMMAND --help` for those of a command\n"
            "  --version           version and commit\n"
            "  --completion SHELL  completions for bash, zsh or fish\n"
            "\nExit status: %s\n",
            set->program, set->exit_status);
}

/* Whether a word is an option, or the beginning of one: no two begin alike. */
static bool is_option(const char *word, const char *option) {
    size_t len = strlen(word);
    return len > 2 && strncmp(word, option, len) == 0;
}

int command_main(const struct command_set *set, int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        print_help(set, stderr);
        return EXIT_WRONG;
    }
    if (is_option(word, "--help") || !strcmp(word, "-h")) {
        print_help(set, stdout);
        return program_finish_output(set->program);
    }
    if (is_option(word, "--version")) {
        program_print_version(set->program);
        return program_finish_output(set->program);
    }
    if (is_option(word, "--completion")) {
        struct completion_words all = { set->program, NULL, set->commands, set->count };
        return completion_main(&all, argv[2]);
    }
    for (const struct command *c = set->commands; c < set->commands + set->count; c++) {
        if (strcmp(word, c->name) != 0)
            continue;
        int code = c->run(argc - 1, argv + 1);
        return code == EXIT_CLEAN ? program_finish_output(set->program) : code;
    }
    fprintf(stderr, "%s: unknown %s '%s'; `%s --help` lists what there is\n", set->program,
            word[0] == '-' ? "option" : "command", word, set->program);
    return EXIT_WRONG;
}
