/* baseline.h - compares a report with the JSON of an earlier one. Not thread-safe. */
#ifndef TOOLS_BENCH_BASELINE_H
#define TOOLS_BENCH_BASELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json_tree.h"
#include "tools/bench/report.h"

/* RC_FORMAT if the file is no result of greta_bench, RC_IO if it cannot be read. */
NODISCARD enum rc baseline_open(json_tree **out, const char *path, struct err *e);

/* Prints a table of what both measured: the same kind, tokens, depth, batch and threads. *slower
 * counts what is slower by more than `percent`, *compared what could be compared. */
void baseline_compare(const json_tree *baseline, const struct report *r, double percent, FILE *out,
                      unsigned *compared, unsigned *slower);

#endif
