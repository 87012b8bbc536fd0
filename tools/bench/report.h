/* report.h - what was measured, for people and for programs. Plain data; not thread-safe. */
#ifndef TOOLS_BENCH_REPORT_H
#define TOOLS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "tools/bench/machine.h"
#include "tools/bench/measure.h"
#include "tools/bench/work.h"

enum { REPORT_MACHINES_MAX = 16 };

/* Texts of how it was measured, empty until an engine was open. Threads are each run's own. */
struct report_settings {
#define SETTING(name, what) char name[16];
#include "tools/bench/settings.def"
};

struct report {
    const char *model; /* path; NULL: the demo model */
    struct work work;
    struct report_settings settings;
    char description[256]; /* of model and device; empty until an engine was open */
    bool host; /* the model ran on this machine's processors: fractions mean something */
    struct machine machines[REPORT_MACHINES_MAX]; /* one per thread count given */
    size_t machine_count;
    struct measure_run *runs; /* in the order they were asked for */
    size_t run_count;
    bool interrupted;
};

/* What was measured with that many threads, or NULL. */
const struct machine *report_find_machine(const struct report *r, uint32_t threads);

/* "decode 64 after 1800" */
void report_name_run(const struct measure_run *run, char *text, size_t size);

void report_print(const struct report *r, FILE *out);
/* RC_IO if out failed. */
NODISCARD enum rc report_write_json(const struct report *r, FILE *out, struct err *e);

#endif
