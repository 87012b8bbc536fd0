/* program.h - what all programs have in common: exit codes, --version, Ctrl-C, folders. */
#ifndef TOOLS_COMMON_PROGRAM_H
#define TOOLS_COMMON_PROGRAM_H

#include <stdbool.h>

#include "base/err.h"

enum {
    EXIT_CLEAN = 0,   /* done, nothing wrong */
    EXIT_FOUND = 1,   /* the run failed, or problems were found */
    EXIT_WRONG = 2,   /* wrong usage */
    EXIT_REFUSED = 3, /* will not, and says why */
};

/* A run that was refused never began; a launch or a copy that was is how a run failed. */
int program_exit_code(enum rc rc, bool began);

/* "greta_infer 0.1.0 (commit)" */
void program_print_version(const char *name);

/* From now on the first SIGINT or SIGTERM is remembered; the second ends the process. */
void program_catch_interrupts(void);
bool program_interrupted(void);

/* Makes a folder and those above it, where they are not there; false with errno. */
bool program_make_folder(const char *path);

#endif
