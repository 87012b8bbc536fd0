/* md.h - escapes text for Markdown: what a recording holds must not become markup.
 * Errors of the stream stay in it. Any number of threads, each with its own stream. */
#ifndef VERDICT_MD_H
#define VERDICT_MD_H

#include <stdio.h>

/* As running text or in a table cell: markup characters escaped, line breaks and control
 * characters as blanks, bytes that are no UTF-8 as U+FFFD. */
void md_text(FILE *out, const char *text);

/* As a code span; "-" for an empty text. In a table cell bars need an escape that would be seen
 * elsewhere. */
void md_code(FILE *out, const char *text);
void md_code_cell(FILE *out, const char *text);

#endif
