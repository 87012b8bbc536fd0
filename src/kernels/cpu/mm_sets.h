/* mm_sets.h - the instruction sets there are code for; NULL where the compiler cannot make it. */
#ifndef KERNELS_CPU_MM_SETS_H
#define KERNELS_CPU_MM_SETS_H

#include "kernels/cpu/mm.h"

/* mm_scalar(), mm_avx2(), … */
#define ISA(name, features) const struct mm_set *mm_##name(void);
#include "kernels/cpu/isa.def"
#undef ISA

#endif
