#include "report/lang.h"

#include <inttypes.h>
#include <string.h>

static const char *const texts[LANG_TEXT_COUNT][LANG_COUNT] = {
#define LANG_TEXT(id, en, es) [LANG_##id] = { en, es },
#include "report/lang.def"
};

struct hypothesis_texts {
    const char *question, *confirms, *refutes, *counted, *advice_en, *advice_es;
};

static const struct hypothesis_texts spanish[HYPOTHESIS_COUNT] = {
#define LANG_HYPOTHESIS(name, question, confirms, refutes, counted, advice_en, advice_es)          \
    [HYPOTHESIS_##name] = { question, confirms, refutes, counted, advice_en, advice_es },
#include "report/lang.def"
};

enum {
#define LANG_HYPOTHESIS(name, question, confirms, refutes, counted, advice_en, advice_es)          \
    TRANSLATED_##name,
#include "report/lang.def"
    TRANSLATED_COUNT
};
_Static_assert((int)TRANSLATED_COUNT == (int)HYPOTHESIS_COUNT, "lang.def lacks a hypothesis");

static const char *const statuses[][LANG_COUNT] = {
#define LANG_STATUS(status, en, es) [VERDICT_STATUS_##status] = { en, es },
#include "report/lang.def"
};

static const char *const overalls[][LANG_COUNT] = {
#define LANG_OVERALL(overall, en, es) [VERDICT_##overall] = { en, es },
#include "report/lang.def"
};

static const struct lang_variable variables[] = {
#define LANG_VARIABLE(name, fallback, en, es) { name, fallback, { en, es } },
#include "report/lang.def"
};

bool lang_parse(const char *word, enum lang *out) {
    for (enum lang lang = 0; lang < LANG_COUNT; lang++)
        if (!strcmp(word, lang_code(lang))) {
            *out = lang;
            return true;
        }
    return false;
}

const char *lang_code(enum lang lang) {
    return lang == LANG_ES ? "es" : "en";
}

const char *lang_text(enum lang lang, enum lang_id id) {
    return texts[id][lang];
}

const char *lang_question(enum lang lang, enum verdict_hypothesis_id id) {
    return lang == LANG_ES ? spanish[id].question : hypothesis_question(id);
}

const char *lang_confirms(enum lang lang, enum verdict_hypothesis_id id) {
    return lang == LANG_ES ? spanish[id].confirms : hypothesis_confirms(id);
}

const char *lang_refutes(enum lang lang, enum verdict_hypothesis_id id) {
    return lang == LANG_ES ? spanish[id].refutes : hypothesis_refutes(id);
}

const char *lang_counted(enum lang lang, enum verdict_hypothesis_id id) {
    return lang == LANG_ES ? spanish[id].counted : hypothesis_counted(id);
}

const char *lang_advice(enum lang lang, enum verdict_hypothesis_id id) {
    return lang == LANG_ES ? spanish[id].advice_es : spanish[id].advice_en;
}

const char *lang_status(enum lang lang, enum verdict_status status) {
    return (unsigned)status < sizeof statuses / sizeof *statuses ? statuses[status][lang] : "?";
}

const char *lang_overall(enum lang lang, enum verdict_overall overall) {
    return (unsigned)overall < sizeof overalls / sizeof *overalls ? overalls[overall][lang] : "?";
}

const struct lang_variable *lang_variable(unsigned index) {
    return index < sizeof variables / sizeof *variables ? &variables[index] : NULL;
}
