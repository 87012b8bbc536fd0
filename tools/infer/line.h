/* line.h - lines that a user types: with editing and history at a terminal where greta was built
 * with libedit, plainly elsewhere. One at a time in a process; one thread. */
#ifndef TOOLS_INFER_LINE_H
#define TOOLS_INFER_LINE_H

#include <stddef.h>

#include "base/err.h"

enum line_end {
    LINE_READ,        /* there is one */
    LINE_CLOSED,      /* no more will come: Ctrl-D, or SIGTERM */
    LINE_INTERRUPTED, /* Ctrl-C: the line is to be forgotten */
};

typedef struct line_reader line_reader;

/* The prompt is shown if standard output is a terminal. On failure *out is untouched. */
NODISCARD enum rc line_open(line_reader **out, const char *prompt, struct err *e);
/* *text, without its newline and terminated, lives until the next call. */
enum line_end line_read(line_reader *r, const char **text, size_t *len);
/* Leaves the terminal as it was. Sets *r to NULL; *r may be NULL. */
void line_close(line_reader **r);

#endif
