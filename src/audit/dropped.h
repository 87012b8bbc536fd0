/* dropped.h - does a caller drop the answer of a call?
 * Thread-safe. */
#ifndef AUDIT_DROPPED_H
#define AUDIT_DROPPED_H

#include <stdbool.h>

/* after: the return address of a call that answers in the first register for results. True only if
 * the code from there on is sure to overwrite that register before anything reads it. */
bool dropped_answer(const void *after);

#endif
