/* recording.h - a one-line summary of the recording of this run. */
#ifndef TOOLS_INFER_RECORDING_H
#define TOOLS_INFER_RECORDING_H

#include <stdio.h>

#include "base/err.h"

/* Reads the file from its beginning and prints one line: events and how many are missing, copies
 * and whether each was checked first, calls that failed, faults. RC_IO or RC_FORMAT if it cannot be
 * read; nothing is printed then. */
NODISCARD enum rc recording_print(const char *path, FILE *out, struct err *e);

/* From now on a process that dies of a signal says which command explains it. */
void recording_expect_crash(const char *path);

#endif
