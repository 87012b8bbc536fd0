/* completion.h - scripts that let a shell complete the words of a program, made from its tables. */
#ifndef TOOLS_COMMON_COMPLETION_H
#define TOOLS_COMMON_COMPLETION_H

#include "tools/common/command.h"

struct completion_words {
    const char *program;
    const struct option_table *options; /* of the program; NULL: it has commands */
    const struct command *commands;
    size_t command_count;
};

/* Prints the script for bash, zsh or fish; returns the exit code. shell may be NULL: it is missing.
 */
int completion_main(const struct completion_words *w, const char *shell);

#endif
