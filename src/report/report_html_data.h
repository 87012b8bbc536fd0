/* report_html_data.h - a recording as data for the scripts of the HTML report.
 *
 * One JSON object. The numbers of events are packed by column: differences to the row before, as
 * zigzag LEB128 of 64-bit values that wrap around, in base64. A hundred thousand events are about
 * three megabytes. The names of the members are explained where html/data.js reads them. */
#ifndef VERDICT_REPORT_HTML_DATA_H
#define VERDICT_REPORT_HTML_DATA_H

#include <stdio.h>

#include "report/report_html.h"

/* JSON in which every '<' is escaped, so that it can stand in a script element. *text is the
 * caller's to free; on failure it is untouched. */
NODISCARD enum rc report_html_data(char **text, const verdict *v, const reader *r,
                                   const struct report_html_options *o, struct err *e);

#endif
