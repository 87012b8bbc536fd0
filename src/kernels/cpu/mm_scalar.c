/* mm_scalar.c - mm.h in plain C, for every processor and as the twin the others are tested with. */
#include "kernels/cpu/mm_sets.h"
#include "kernels/cpu/vec_scalar.h"

#include "kernels/cpu/mm_panel.h"

MM_SET("scalar");

const struct mm_set *mm_scalar(void) {
    return &set;
}
