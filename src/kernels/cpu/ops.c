#include "kernels/cpu/ops.h"

#include "kernels/cpu/isa.h"

const struct ops *ops(void) {
    const struct ops *best = isa_chosen() >= ISA_avx2 ? ops_avx2() : &ops_scalar;
    return best ? best : &ops_scalar;
}
