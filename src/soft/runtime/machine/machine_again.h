/* machine_again.h - does it matter in which order the accesses of a race happen?
 * docs/adr/0068-races-that-do-not-matter.md has the rule and its reasons. Thread-safe. */
#ifndef SOFT_RUNTIME_MACHINE_AGAIN_H
#define SOFT_RUNTIME_MACHINE_AGAIN_H

#include "soft/runtime/machine/machine.h"

enum machine_again_answer {
    MACHINE_AGAIN_MATTERS,  /* or it could not be found out */
    MACHINE_AGAIN_HARMLESS, /* in other orders the launch leaves the same bytes */
    MACHINE_AGAIN_UNTRIED,  /* it was harmless before, and the budget for finding out is used up */
};

/* The answer about the suspects of a launch that has ended and whose isa_race is still open. */
enum machine_again_answer machine_again_judge(struct machine_launch *l);

#endif
