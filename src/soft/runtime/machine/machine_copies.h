/* machine_copies.h - device memory as it was before a launch, block by block, in copies that a
 * second run of the launch may write. For one thread. */
#ifndef SOFT_RUNTIME_MACHINE_COPIES_H
#define SOFT_RUNTIME_MACHINE_COPIES_H

#include "isa/race.h"
#include "soft/runtime/memory.h"

struct machine_copies;

/* race: of the launch. All blocks that it wrote are copied at once. NULL if they are too large,
 * or without memory. */
struct machine_copies *machine_copies_open(const struct isa_race *race);
void machine_copies_close(struct machine_copies **c);

/* The copy of a block, made when it is first asked for; NULL as above. */
unsigned char *machine_copies_reach(struct machine_copies *c, const struct soft_block *b);

/* Are all copies the same as the memory is now? */
bool machine_copies_are_equal(const struct machine_copies *c);

#endif
