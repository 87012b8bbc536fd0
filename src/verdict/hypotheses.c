#include "verdict/verdict.h"

#define COLUMNS(...) __VA_ARGS__

static const struct {
    const char *name;
    struct hypothesis_words words[LANG_COUNT];
} table[HYPOTHESIS_COUNT] = {
#define HYPOTHESIS(name, needs, en, es)                                                            \
    [HYPOTHESIS_##name] = { #name, { { COLUMNS en }, { COLUMNS es } } },
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
};

const char *hypothesis_name(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].name : "?";
}

const struct hypothesis_words *hypothesis_words(enum lang lang, enum verdict_hypothesis_id id) {
    return &table[id].words[lang];
}

const char *verdict_status_name(enum verdict_status status) {
    static const char *const names[] = { "CONFIRMED", "RULED_OUT", "INCONCLUSIVE",
                                         "NOT_APPLICABLE" };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

const char *verdict_access_name(enum verdict_access access) {
    static const char *const names[] = { "reads", "writes", "uses", "allocates", "frees" };
    return (unsigned)access < sizeof names / sizeof *names ? names[access] : "?";
}

const char *verdict_overall_name(enum verdict_overall overall) {
    static const char *const names[] = { "CLEAN", "ROOT_CAUSE", "FINDINGS", "NOT_REPRODUCED",
                                         "INCONCLUSIVE" };
    return (unsigned)overall < sizeof names / sizeof *names ? names[overall] : "?";
}
