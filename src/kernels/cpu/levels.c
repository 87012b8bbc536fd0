#include "kernels/cpu/levels.h"

#include "kernels/kern.h"

_Static_assert((int)KERN_SLAB == (int)MM_SLAB &&
                   (int)KERN_SLAB_BYTES == MM_SLAB + 2 * MM_RUNS * (int)sizeof(float),
               "kern.h tells what this does");

struct mm_row levels_row(void *buffer, size_t tokens, size_t k, size_t slab, size_t token) {
    const size_t all = levels_slabs(k) * tokens, at = slab * tokens + token;
    int8_t *level = buffer;
    float *scale = (float *)(void *)(level + all * MM_SLAB), *sum = scale + all * MM_RUNS;
    return (struct mm_row){ level + at * MM_SLAB, scale + at * MM_RUNS, sum + at * MM_RUNS };
}

void levels_put(void *buffer, size_t tokens, size_t k, unsigned run, size_t token, const float *x) {
    for (size_t slab = 0; slab < levels_slabs(k); slab++) {
        const struct mm_row row = levels_row(buffer, tokens, k, slab, token);
        size_t at = slab * MM_SLAB, n = k - at < MM_SLAB ? k - at : MM_SLAB;
        mm()->quantize(x + at, n, run, &row);
    }
}
