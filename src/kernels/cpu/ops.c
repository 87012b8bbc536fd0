#include "kernels/cpu/ops.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/env.h"

static const struct ops *chosen;

static const struct ops *avx2(void) {
    return cpu_features() & CPU_AVX2 ? ops_avx2() : NULL;
}

static void choose(void) {
    bool scalar = !strcmp(env_get_str("GRETA_CPU", ""), "scalar");
    chosen = scalar || !avx2() ? &ops_scalar : avx2();
}

const struct ops *ops(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}

enum rc ops_check(struct err *e) {
    const char *wanted = env_get_str("GRETA_CPU", "scalar");
    if (!strcmp(wanted, "avx2") && !avx2())
        return err_set(e, RC_UNSUPPORTED, "GRETA_CPU=avx2: this processor has no AVX2");
    if (strcmp(wanted, "avx2") && strcmp(wanted, "scalar"))
        return err_set(e, RC_USAGE, "GRETA_CPU: expected scalar or avx2, found '%s'", wanted);
    return RC_OK;
}
