/* command.h - programs with subcommands: greta_audit run, greta_audit report, … */
#ifndef TOOLS_COMMON_COMMAND_H
#define TOOLS_COMMON_COMMAND_H

#include <stddef.h>

#include "tools/common/option.h"

struct command {
    const char *name, *arguments, *does;
    int (*run)(int argc, char **argv); /* argv[0] is its name; returns the exit code */
    const struct option_table *options;
};

struct command_set {
    const char *program;
    const struct command *commands;
    size_t count;
    const char *exit_status; /* what the help says of it */
};

/* The main() of such a program: handles --help, --version and --completion, or finds the command
 * and runs it. */
int command_main(const struct command_set *set, int argc, char **argv);

#endif
