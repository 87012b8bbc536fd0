/* machine_touch.h - which bytes a launch read and wrote, block by block.
 * Marks may be set by several threads at once; the rest is for one. */
#ifndef SOFT_RUNTIME_MACHINE_TOUCH_H
#define SOFT_RUNTIME_MACHINE_TOUCH_H

#include <greta/soft.h>

#include "soft/runtime/machine/machine.h"

/* Ranges of one launch; those at equal distances count as one. */
enum { MACHINE_TOUCHES_MAX = 120 };

struct machine_touch;
struct machine_touches;

/* frame: the block that holds the launch's own arguments, which is not reported. NULL if there
 * is no memory. */
struct machine_touches *machine_touches_open(uint64_t frame);
void machine_touches_close(struct machine_touches **t);

/* The marks of a block; NULL if it is the runtime's own, or if there is no memory. Stays valid
 * until the close. */
struct machine_touch *machine_touch_of(struct machine_touches *t, const struct soft_block *b);

/* Bytes of that block. */
void machine_touch_mark(struct machine_touch *t, uint64_t address, uint64_t bytes,
                        enum isa_access_kind kind);

/* All that was touched, reads first, at the end of the launch: false if that is not known. */
bool machine_touches_tell(struct machine_touches *t,
                          struct greta_soft_touch out[MACHINE_TOUCHES_MAX], size_t *count);

#endif
