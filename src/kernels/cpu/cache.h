/* cache.h - a row of keys or values as the cache stores it. */
#ifndef KERNELS_CPU_CACHE_H
#define KERNELS_CPU_CACHE_H

#include "kernels/cpu/ops.h"
#include "model/quant/quant.h"

/* n elements, a whole number of the type's blocks. */
static inline void cache_encode(enum tensor_type type, const float *src, void *dst, size_t n) {
    if (type == TENSOR_TYPE_F16)
        ops()->encode_f16(src, dst, n);
    else
        quant_encoder(type)(src, dst, n, QUANT_FAST);
}

#endif
