/* report_md.h - a verdict as Markdown, in English or Spanish, in the layout of an audit report:
 * summary, setup, test matrix, evidence, hypotheses, verdict, next steps.
 *
 * The heading is the answer. Date and author come from the recording's provenance and are left out
 * where it does not have them. Whatever a recording holds, its strings stay text: table cells and
 * code spans are escaped.
 *
 * The stream stays the caller's; nothing is changed. Any number of threads, each with its own
 * stream. */
#ifndef VERDICT_REPORT_MD_H
#define VERDICT_REPORT_MD_H

#include <stdio.h>

#include "report/lang.h"
#include "verdict/verdict.h"

/* A row of the test matrix, for reports about several runs. */
struct report_matrix_row {
    const char *test, *mode; /* "A", "Baseline" */
    const char *settings;    /* "GCORE_D2H_AUDIT=1"; "" if none */
    uint64_t iterations, errors;
    const char *result; /* "PASS"; a verdict */
};

struct report_md_options {
    enum lang lang;
    const char *title;                      /* NULL: the answer */
    const struct report_matrix_row *matrix; /* NULL: no matrix */
    size_t matrix_rows;
    void (*after_matrix)(FILE *out, void *user); /* more about the runs; NULL: nothing */
    void *user;
};

/* r: the recording that was judged, for the events themselves; NULL: they are left out. o may be
 * NULL. RC_IO if the stream has failed. */
NODISCARD enum rc report_md(FILE *out, const verdict *v, const reader *r,
                            const struct report_md_options *o, struct err *e);

#endif
