/* machine_count.h - counts what launches of machine code do (greta_soft_count_start()).
 * Thread-safe. */
#ifndef SOFT_RUNTIME_MACHINE_COUNT_H
#define SOFT_RUNTIME_MACHINE_COUNT_H

#include <greta/soft.h>

#include "isa/isa.h"

bool machine_count_is_on(void);
void machine_count_insn(const struct isa_insn *i); /* that a wave has executed */
void machine_count_memory(const struct isa_access *a, const uint64_t address[ISA_LANES]);
void machine_count_lds(const struct isa_access *a, const uint32_t address[ISA_LANES]);

#endif
