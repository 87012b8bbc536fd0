/* program.h - what all programs have in common: exit codes, --version, Ctrl-C. */
#ifndef TOOLS_COMMON_PROGRAM_H
#define TOOLS_COMMON_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

enum {
    EXIT_CLEAN = 0,   /* done, nothing wrong */
    EXIT_FOUND = 1,   /* the run failed, or problems were found */
    EXIT_WRONG = 2,   /* wrong usage */
    EXIT_REFUSED = 3, /* refused, with the reason */
    /* 128 + N: ended by signal N; 130 is Ctrl-C */
};

/* A run that was refused never began; a launch or a copy that was is how a run failed. After a
 * signal that was caught the code says which, whatever rc is. */
int program_exit_code(enum rc rc, bool began);

/* EXIT_CLEAN if all of standard output could be written, else EXIT_FOUND after saying why. */
int program_finish_output(const char *name);

/* A file that grows past the limit on its size (ulimit -f) is an error from now on, as on a full
 * disk, and not the end of the program. Programs that it starts inherit that. */
void program_survive_file_limit(void);

/* "greta_infer 0.1.0 (commit)" */
void program_print_version(const char *name);

/* From now on the first SIGINT or SIGTERM sets the flag it returns; the second ends the process. */
const atomic_bool *program_catch_interrupts(void);
bool program_interrupted(void);

/* For conversations: Ctrl-C may come any number of times, and ends nothing by itself. */
void program_expect_ctrl_c(void);
/* Whether it came since the last call; program_interrupted() is false then, unless by SIGTERM. */
bool program_take_ctrl_c(void);

#endif
