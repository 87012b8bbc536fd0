/* report_html.h - a verdict and its recording as one HTML file that needs nothing else.
 *
 * The verdict, the actors, the findings and the hypotheses are plain HTML, to be read without
 * scripts. Timeline, allocation map and event list are drawn by scripts from the recording, which
 * is in the file as packed columns (report_html_data.h). The page asks for nothing from a network,
 * and its content security policy forbids it; strings of the recording are only ever text.
 *
 * The stream stays the caller's; nothing is changed. Any number of threads, each with its own
 * stream. */
#ifndef VERDICT_REPORT_HTML_H
#define VERDICT_REPORT_HTML_H

#include <stdio.h>

#include "report/lang.h"
#include "verdict/verdict.h"

struct report_html_options {
    enum lang lang;
    size_t events_max; /* events in the file, those around the actors first; 0: 200000 */
    size_t blocks_max; /* allocations and tensors in the map; 0: 50000 */
};

/* r is the recording that was judged. o may be NULL. RC_MEMORY; RC_IO if the stream has failed. */
NODISCARD enum rc report_html(FILE *out, const verdict *v, const reader *r,
                              const struct report_html_options *o, struct err *e);

#endif
