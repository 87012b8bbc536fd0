/* machine_frame.h - accesses of a kernel's stack that leave the variable they are for and come into
 * another one. */
#ifndef SOFT_RUNTIME_MACHINE_FRAME_H
#define SOFT_RUNTIME_MACHINE_FRAME_H

#include "soft/runtime/machine/machine.h"

/* As isa_memory.frame, with the worker as context. */
void machine_frame_check(void *context, const struct isa_access *a,
                         const uint32_t offset[ISA_LANES]);

#endif
