/* mm_avx2.c - mm.h for this instruction set; only called where the processor has it. */
#include "kernels/cpu/mm_sets.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/cpu/vec_avx2.h"

#include "kernels/cpu/mm_panel.h"

MM_SET("avx2");

const struct mm_set *mm_avx2(void) {
    return &set;
}
#else
const struct mm_set *mm_avx2(void) {
    return 0;
}
#endif
