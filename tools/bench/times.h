/* times.h - for --explain: where the time of a run's last sample goes, per kernel and per thread.
 * Only the software device reports them. Not thread-safe. */
#ifndef TOOLS_BENCH_TIMES_H
#define TOOLS_BENCH_TIMES_H

#include <stdio.h>

/* Turns timing on; it is off otherwise. */
void times_wanted(void);

/* A sample begins: what was counted before is forgotten. */
void times_begin(void);

/* It has ended: what follows is not counted. */
void times_end(void);

/* Prints the times of the kernels between times_begin() and times_end(), under this name. */
void times_print(const char *run, FILE *out);

#endif
