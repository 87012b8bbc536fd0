/* mm_avx512.c - mm.h for this instruction set; only called where the processor has it. */
#include "kernels/cpu/mm_sets.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__)
#include "kernels/cpu/vec_avx512.h"

#include "kernels/cpu/mm_panel.h"

MM_SET("avx512");

const struct mm_set *mm_avx512(void) {
    return &set;
}
#else
const struct mm_set *mm_avx512(void) {
    return 0;
}
#endif
