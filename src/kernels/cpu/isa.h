/* isa.h - which instruction set the kernels use: the best that this processor has and GRETA_CPU
 * (read once) allows. Thread-safe. */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include <stdbool.h>

#include "base/err.h"

enum isa {
#define ISA(name, features) ISA_##name,
#include "kernels/cpu/isa.def"
#undef ISA
    ISA_COUNT
};

enum isa isa_chosen(void);
bool isa_is_there(enum isa set); /* on this processor, whatever GRETA_CPU says */
const char *isa_name(enum isa set);

/* RC_USAGE if GRETA_CPU names no set, RC_UNSUPPORTED if it names one that this processor lacks. */
NODISCARD enum rc isa_check(struct err *e);

#endif
