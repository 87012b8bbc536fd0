#include "verdict/verdict.h"

static const struct {
    const char *name, *question, *confirms, *refutes, *counted;
} table[HYPOTHESIS_COUNT] = {
#define HYPOTHESIS(name, needs, question, confirms, refutes, counted)                              \
    [HYPOTHESIS_##name] = { #name, question, confirms, refutes, counted },
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
};

const char *hypothesis_name(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].name : "?";
}

const char *hypothesis_question(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].question : "";
}

const char *hypothesis_confirms(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].confirms : "";
}

const char *hypothesis_refutes(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].refutes : "";
}

const char *hypothesis_counted(enum verdict_hypothesis_id id) {
    return (unsigned)id < HYPOTHESIS_COUNT ? table[id].counted : "";
}

const char *verdict_status_name(enum verdict_status status) {
    static const char *const names[] = { "CONFIRMED", "RULED_OUT", "INCONCLUSIVE",
                                         "NOT_APPLICABLE" };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

const char *verdict_overall_name(enum verdict_overall overall) {
    static const char *const names[] = { "CLEAN", "ROOT_CAUSE", "FINDINGS", "NOT_REPRODUCED",
                                         "INCONCLUSIVE" };
    return (unsigned)overall < sizeof names / sizeof *names ? names[overall] : "?";
}
