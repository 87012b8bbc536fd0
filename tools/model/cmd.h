/* cmd.h - the subcommands of greta_model, and what they share. Each gets its own name as argv[0]
 * and returns an exit code; it prints its own errors to stderr. */
#ifndef MODEL_CMD_H
#define MODEL_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/command.h"
#include "tools/common/program.h"

/* COMMAND(name, "arguments", "what it does"): cmd_NAME() runs it, cmd_NAME_options are its options.
 */
#define COMMAND(name, arguments, does)                                                             \
    int cmd_##name(int argc, char **argv);                                                         \
    extern const struct option_table cmd_##name##_options;
#include "tools/model/command.def"

/* option_begin() of a command that takes one file. */
int cmd_begin(const struct option_table *t, void *values, int argc, char **argv, const char **path);

/* Prints e's message and returns the exit code that goes with its rc. */
int cmd_failed(const struct option_table *t, const struct err *e);

/* ---- long work: a progress bar on a terminal (progress.c) ---- */

struct progress {
    const char *doing;     /* "quantizing" */
    bool shown;            /* standard error is a terminal */
    uint64_t start, drawn; /* clock_now_ns() */
};

struct progress progress_begin(const char *doing);
/* The callback of gguf_fill and quant_scan; user is a struct progress. */
void progress_show(void *user, uint64_t done, uint64_t total);
/* Clears the bar; returns the seconds since progress_begin(). */
double progress_end(struct progress *p);

#endif
