/* report_excerpt.h - the events that a verdict rests on, one line each, with their neighbours.
 * Errors of the stream stay in it. Any number of threads, each with its own stream. */
#ifndef VERDICT_REPORT_EXCERPT_H
#define VERDICT_REPORT_EXCERPT_H

#include <stdio.h>

#include "verdict/verdict.h"

/* Lines as `greta_audit dump` prints them, after a mark: C the culprit, M the messenger, * other
 * evidence; "..." where events are left out. The last events where there is neither. The excerpt is
 * shorter if memory runs out. */
void report_excerpt(FILE *out, const reader *r, const verdict *v);

#endif
