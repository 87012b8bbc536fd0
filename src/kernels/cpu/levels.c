#include "kernels/cpu/levels.h"

#include "kernels/kern.h"

_Static_assert((int)KERN_SLAB == (int)MM_SLAB &&
                   (int)KERN_SLAB_BYTES == MM_SLAB + 2 * MM_RUNS * (int)sizeof(float),
               "kern.h and mm.h must agree");
_Static_assert((int)KERN_SPLIT_BYTES == MM_STEPS * MM_PARTS * (int)sizeof(struct mm_line),
               "kern.h and mm.h must agree");

struct mm_row levels_row(void *buffer, size_t tokens, size_t k, size_t slab, size_t token) {
    const size_t all = levels_slabs(k) * tokens, at = slab * tokens + token;
    int8_t *level = buffer;
    float *scale = (float *)(void *)(level + all * MM_SLAB), *sum = scale + all * MM_RUNS;
    return (struct mm_row){ level + at * MM_SLAB, scale + at * MM_RUNS, sum + at * MM_RUNS };
}

struct mm_line *levels_lines(void *buffer, size_t tokens, size_t slab, size_t token,
                             size_t *stride) {
    const size_t block = token / MM_BLOCK * MM_BLOCK;
    *stride = tokens - block < MM_BLOCK ? tokens - block : MM_BLOCK;
    return (struct mm_line *)buffer + (slab * tokens + block) * MM_STEPS * MM_PARTS + token - block;
}

static void split(void *buffer, size_t tokens, size_t slab, size_t token, const float *x,
                  size_t n) {
    size_t stride;
    struct mm_line *to = levels_lines(buffer, tokens, slab, token, &stride);
    mm()->split(x, n, to, stride);
}

static void quantize(void *buffer, size_t tokens, size_t k, unsigned run, size_t slab, size_t token,
                     const float *x, size_t n) {
    const struct mm_row row = levels_row(buffer, tokens, k, slab, token);
    mm()->quantize(x, n, run, &row);
}

void levels_put(void *buffer, size_t tokens, size_t k, unsigned run, size_t token, const float *x) {
    if (run == KERN_SPLIT && !mm()->split)
        return;
    for (size_t slab = 0; slab < levels_slabs(k); slab++) {
        size_t at = slab * MM_SLAB, n = k - at < MM_SLAB ? k - at : MM_SLAB;
        if (run == KERN_SPLIT)
            split(buffer, tokens, slab, token, x + at, n);
        else
            quantize(buffer, tokens, k, run, slab, token, x + at, n);
    }
}

void levels_put_part(void *buffer, size_t tokens, size_t k, unsigned run, size_t token, size_t at,
                     const float *x, size_t n) {
    if (run == KERN_SPLIT && !mm()->split)
        return;
    for (size_t end = at + n, count; at < end; at += count, x += count) {
        const size_t slab = at / MM_SLAB, inside = at % MM_SLAB;
        size_t stride;
        struct mm_row row = levels_row(buffer, tokens, k, slab, token);
        count = end - at < MM_SLAB - inside ? end - at : MM_SLAB - inside;
        row.level += inside;
        row.scale += inside / MM_RUN;
        row.sum += inside / MM_RUN;
        if (run == KERN_SPLIT) {
            struct mm_line *to = levels_lines(buffer, tokens, slab, token, &stride);
            mm()->split(x, count, to + inside / MM_STEP * stride, stride);
        } else {
            mm()->quantize(x, count, run, &row);
        }
    }
}
