#include "kernels/cpu/isa.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/env.h"

static const struct {
    const char *name;
    unsigned features;
} sets[ISA_COUNT] = {
#define ISA(name, features) { #name, features },
#include "kernels/cpu/isa.def"
#undef ISA
};

bool isa_is_there(enum isa set) {
    return (cpu_features() & sets[set].features) == sets[set].features;
}

const char *isa_name(enum isa set) {
    return sets[set].name;
}

static enum isa chosen;

/* GRETA_CPU is the most that may be used. */
static void choose(void) {
    const char *named = env_text(ENV_GRETA_CPU);
    const char *most = named ? named : sets[ISA_COUNT - 1].name;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (isa_is_there((enum isa)i))
            chosen = (enum isa)i;
        if (!strcmp(most, sets[i].name))
            break;
    }
}

enum isa isa_chosen(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}

enum rc isa_check(struct err *e) {
    const char *wanted = env_text(ENV_GRETA_CPU);
    char names[128] = "";
    if (!wanted)
        return RC_OK;
    for (int i = 0; i < ISA_COUNT; i++) {
        size_t used = strlen(names);
        if (!strcmp(wanted, sets[i].name))
            return isa_is_there((enum isa)i)
                       ? RC_OK
                       : err_set(e, RC_UNSUPPORTED, "GRETA_CPU=%s: this processor has no %s",
                                 wanted, wanted);
        snprintf(names + used, sizeof names - used, "%s%s",
                 i == 0               ? ""
                 : i + 1 == ISA_COUNT ? " or "
                                      : ", ",
                 sets[i].name);
    }
    return err_set(e, RC_USAGE, "GRETA_CPU: expected %s, found '%s'", names, wanted);
}
