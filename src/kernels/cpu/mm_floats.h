/* mm_floats.h - reading rows of floats with the vectors of a vec_*.h, which comes first. */
#ifndef KERNELS_CPU_MM_FLOATS_H
#define KERNELS_CPU_MM_FLOATS_H

#include "model/quant/tensor_type.h"

INLINE vf load_floats(enum tensor_type type, const char *p) {
    return type == TENSOR_TYPE_F16    ? vf_halves(p)
           : type == TENSOR_TYPE_BF16 ? vf_brain_halves(p)
                                      : vf_load((const float *)(const void *)p);
}

INLINE size_t float_size(enum tensor_type type) {
    return type == TENSOR_TYPE_F32 ? 4 : 2;
}

#endif
