/* mm_avx512vnni.c - mm.h for this instruction set; only called where the processor has it. */
#include "kernels/cpu/mm_sets.h"

#if defined(__AVX512BW__) && defined(__AVX512VNNI__)
#include "kernels/cpu/vec_avx512.h"

#include "kernels/cpu/mm_panel.h"

MM_SET("avx512vnni");

const struct mm_set *mm_avx512vnni(void) {
    return &set;
}
#else
const struct mm_set *mm_avx512vnni(void) {
    return 0;
}
#endif
