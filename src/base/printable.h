/* printable.h - makes texts from files safe to print on a terminal.
 *
 * A name in a model or a recording may hold anything: sequences that move the cursor, clear the
 * screen or rename the window, bidirectional control characters, bytes that are not text.
 * Thread-safe: no state. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/* Replaces by '?' every byte of text[0..n) that is a control character (C0 except newline and tab,
 * DEL, C1), part of a bidirectional control character, or not UTF-8. The length stays. */
void printable_scrub(char *text, size_t n);

/* The same beyond ASCII only, for texts whose ASCII control characters are escaped when they are
 * written. */
void printable_scrub_wide(char *text, size_t n);

#endif
