/* dropped.h - does a caller ignore the result of a call?
 * Thread-safe. */
#ifndef AUDIT_DROPPED_H
#define AUDIT_DROPPED_H

#include <stdbool.h>

/* after: the return address of a call whose result is in rax. True only if the code from there on
 * certainly overwrites rax before anything reads it. */
bool dropped_answer(const void *after);

#endif
