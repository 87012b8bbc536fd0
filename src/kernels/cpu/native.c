#include "kernels/cpu/native.h"

#include <pthread.h>

#include "kernels/spec.h"

#define KERN_BEGIN(k)                                                                              \
    static void run_##k(const struct greta_soft_work *work, void *const *args) {                   \
        struct kern_##k a;                                                                         \
        spec_gather(&spec_table[KERN_##k], args, &a);                                              \
        cpu_##k(work, &a);                                                                         \
    }
#include "kernels/kernel.def"

static const greta_soft_kernel_fn runs[KERN_COUNT] = {
#define KERN_BEGIN(k) [KERN_##k] = run_##k,
#include "kernels/kernel.def"
};

static struct greta_soft_param params[KERN_COUNT][SPEC_PARAMS_MAX];
static struct greta_soft_kernel kernels[KERN_COUNT];

static void describe(void) {
    for (int i = 0; i < KERN_COUNT; i++) {
        const struct spec *s = &spec_table[i];
        for (uint32_t p = 0; p < s->param_count; p++) {
            const unsigned buffer = GRETA_SOFT_POINTER | GRETA_SOFT_FOOTPRINT;
            unsigned flags = s->params[p].access == SPEC_VALUE  ? GRETA_SOFT_VALUE
                             : s->params[p].access == SPEC_READ ? buffer | GRETA_SOFT_READS
                                                                : buffer;
            params[i][p] =
                (struct greta_soft_param){ s->params[p].name, s->params[p].size, (uint16_t)flags };
        }
        kernels[i] = (struct greta_soft_kernel){ s->name, runs[i], params[i], s->param_count };
    }
}

const struct greta_soft_kernel *native_kernel(enum kern_id id) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, describe);
    return &kernels[id];
}
