/* output.h - files that appear under their names when they are whole.
 *
 * A file is written under another name in the same folder and renamed when all of it is on the
 * disk: a full disk, a signal or a loss of power leaves the old file, or none, but never a part of
 * the new one. What exists under the name and is not a plain file (/dev/stdout, a pipe, a link) is
 * written to directly. Not thread-safe. */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <limits.h>
#include <stdio.h>

#include "base/err.h"

struct output {
    FILE *file; /* NULL: closed */
    char path[PATH_MAX];
    char fresh[PATH_MAX]; /* where it is written; empty: path itself */
};

/* Makes the folders that the path needs. After a failure there is nothing to close. */
NODISCARD enum rc output_open(struct output *o, const char *path, struct err *e);

/* Gives the file its name. With rc, which is what went wrong before, it is removed instead, and rc
 * is returned. Closes in any case; a zeroed struct is fine. */
NODISCARD enum rc output_close(struct output *o, enum rc rc, struct err *e);

/* RC_IO if not everything has gone out; the message begins with what could not be written. */
NODISCARD enum rc output_flush(FILE *file, const char *what, struct err *e);

#endif
