/* cmd.h - the subcommands of greta_model, and what they share. Each gets its own name as argv[0]
 * and returns an exit code; it prints its own errors to stderr. */
#ifndef MODEL_CMD_H
#define MODEL_CMD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
    EXIT_CLEAN = 0,   /* done, nothing wrong */
    EXIT_FOUND = 1,   /* the run failed, or problems were found */
    EXIT_WRONG = 2,   /* wrong usage */
    EXIT_REFUSED = 3, /* will not, and says why */
};

int cmd_info(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);

/* Prints "greta_model COMMAND: what[: value]; …" with the way to the help, and returns EXIT_WRONG.
 */
int cmd_wrong(const char *command, const char *what, const char *value);

/* Prints e's message and returns the exit code that goes with its rc. */
int cmd_failed(const char *command, const struct err *e);

/* A number from 1 to max; false if text is anything else. */
bool cmd_parse_count(const char *text, int max, int *out);

/* 1234567890 -> "1.15 GiB". */
void cmd_format_bytes(uint64_t bytes, char out[24]);

/* ---- long work: a progress bar on a terminal, and a clean end on Ctrl-C (progress.c) ---- */

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

/* From now on SIGINT and SIGTERM set the flag it returns; a second one ends the process. */
const atomic_bool *progress_catch_signals(void);

#endif
