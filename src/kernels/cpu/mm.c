#include "kernels/cpu/mm.h"

#include <pthread.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/mm_sets.h"

static const struct mm_set *(*const sets[ISA_COUNT])(void) = {
#define ISA(name, features) mm_##name,
#include "kernels/cpu/isa.def"
#undef ISA
};

static const struct mm_set *usable(int i) {
    return isa_is_there((enum isa)i) ? sets[i]() : NULL;
}

const struct mm_set *mm_set_at(unsigned wanted) {
    for (int i = 0; i < ISA_COUNT; i++)
        if (usable(i) && wanted-- == 0)
            return usable(i);
    return NULL;
}

static const struct mm_set *chosen, *narrow;

/* Once: asking the processor what it has is slow. */
static void choose(void) {
    for (int i = (int)isa_chosen(); i >= 0 && !chosen; i--)
        chosen = usable(i);
    for (int i = ISA_avxvnni; i >= ISA_avx2 && isa_chosen() > ISA_avxvnni && !narrow; i--)
        narrow = usable(i);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct mm_set *mm(void) {
    pthread_once(&once, choose);
    return chosen;
}

const struct mm_set *mm_narrow(void) {
    pthread_once(&once, choose);
    return narrow;
}
