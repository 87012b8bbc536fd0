#include "report/lang.h"

#include <inttypes.h>
#include <string.h>

static const char *const texts[LANG_TEXT_COUNT][LANG_COUNT] = {
#define LANG_TEXT(id, en, es) [LANG_##id] = { en, es },
#include "report/lang.def"
};

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

const char *lang_status(enum lang lang, enum verdict_status status) {
    return (unsigned)status < sizeof statuses / sizeof *statuses ? statuses[status][lang] : "?";
}

const char *lang_overall(enum lang lang, enum verdict_overall overall) {
    return (unsigned)overall < sizeof overalls / sizeof *overalls ? overalls[overall][lang] : "?";
}

const struct lang_variable *lang_variable(unsigned index) {
    return index < sizeof variables / sizeof *variables ? &variables[index] : NULL;
}
