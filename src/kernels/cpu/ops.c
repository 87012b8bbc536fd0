#include "kernels/cpu/ops.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/env.h"

static const struct ops *chosen;

static void choose(void) {
    const char *limit = env_get_str("GRETA_CPU", "best");
    chosen = &ops_scalar;
    if (!strcmp(limit, "scalar"))
        return;
    if (cpu_features() & CPU_AVX2 && ops_avx2())
        chosen = ops_avx2();
}

const struct ops *ops(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}
