/* mm_avxvnni.c - mm.h for this instruction set; only called where the processor has it. */
#include "kernels/cpu/mm_sets.h"

#if defined(__AVX2__) && defined(__AVXVNNI__)
#include "kernels/cpu/vec_avx2.h"

#include "kernels/cpu/mm_panel.h"

MM_SET("avxvnni");

const struct mm_set *mm_avxvnni(void) {
    return &set;
}
#else
const struct mm_set *mm_avxvnni(void) {
    return 0;
}
#endif
