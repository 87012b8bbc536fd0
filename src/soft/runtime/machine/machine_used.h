/* machine_used.h - how the instructions of a launch were executed: counts by instruction, told as
 * the column `exactness` of gfx9.def has them. Belongs to the launch; machine_used_take() and
 * machine_used_give() are called by its workers. */
#ifndef SOFT_RUNTIME_MACHINE_USED_H
#define SOFT_RUNTIME_MACHINE_USED_H

#include "soft/runtime/machine/machine.h"

/* Begins to count if an observer asked for it. Without memory nothing is counted. */
void machine_used_begin(struct machine_launch *l);
/* A worker begins its part, and gives in what it counted. */
void machine_used_take(struct machine_launch *l, struct machine_worker *w);
void machine_used_give(struct machine_launch *l, struct machine_worker *w);
/* Reports what was counted, and stops counting. */
void machine_used_end(struct machine_launch *l);

#endif
