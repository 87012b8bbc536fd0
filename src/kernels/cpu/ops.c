#include "kernels/cpu/ops.h"

#include <pthread.h>

#include "kernels/cpu/isa.h"

static const struct ops *scalar(void) {
    return &ops_scalar;
}

/* From the plainest on. */
static const struct {
    enum isa isa;
    const struct ops *(*get)(void);
} sets[] = { { ISA_scalar, scalar }, { ISA_avx2, ops_avx2 }, { ISA_avx512, ops_avx512 } };
enum { SETS = sizeof sets / sizeof *sets };

static const struct ops *usable(unsigned i) {
    return isa_is_there(sets[i].isa) ? sets[i].get() : NULL;
}

const struct ops *ops_at(unsigned wanted) {
    for (unsigned i = 0; i < SETS; i++)
        if (usable(i) && wanted-- == 0)
            return usable(i);
    return NULL;
}

static const struct ops *chosen = &ops_scalar;

static void choose(void) {
    for (unsigned i = 0; i < SETS; i++)
        if (sets[i].isa <= isa_chosen() && usable(i))
            chosen = usable(i);
}

/* Asking the processor is slow where it is a virtual one: once is enough. */
const struct ops *ops(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}
