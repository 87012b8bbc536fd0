/* report.h - writes a verdict for people and for programs. The stream stays the caller's; a verdict
 * is not changed. Write errors stay in the stream and come back as RC_IO. */
#ifndef VERDICT_REPORT_H
#define VERDICT_REPORT_H

#include <stdio.h>

#include "report/lang.h"
#include "verdict/verdict.h"

struct report_text_options {
    enum lang lang;
    bool colour;  /* escape sequences: only where a terminal shows them */
    bool verbose; /* every finding, every hypothesis with its evidence */
    bool stacks;  /* whole call stacks */
};

/* For a terminal. The first line is the answer. */
NODISCARD enum rc report_text(FILE *out, const verdict *v, const struct report_text_options *o,
                              struct err *e);

/* One JSON document; docs/report.schema.json describes it. */
NODISCARD enum rc report_json(FILE *out, const verdict *v, struct err *e);

#endif
