/* needs.h - what ruling a hypothesis out needs of a recording: the `needs` column of
 * hypotheses.def, which explains the words. For the files that read the column. */
#ifndef VERDICT_NEEDS_H
#define VERDICT_NEEDS_H

#include <stdint.h>

#include "verdict/verdict.h"

enum need {
    NOTHING = 0,
    HISTORY = 1,
    RUN = 2,
    CHECKED = 4,
    FOOTPRINTS = 8,
    HOST = 16,
    END = 32,
    RACES = 64,
    BARRIERS = 128
};

static const uint8_t needs[HYPOTHESIS_COUNT] = {
#define HYPOTHESIS(name, needs, en, es) [HYPOTHESIS_##name] = needs,
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
};

#endif
