/* lang.h - the texts of reports in the languages they are written in: the tables of lang.def.
 * What the analysis says is in hypotheses.def and sentence.def.
 *
 * Names of hypotheses, of their states and of verdicts are the same in every language, so that one
 * can search for them. All strings are constants; any thread may ask. */
#ifndef VERDICT_LANG_H
#define VERDICT_LANG_H

#include <stdbool.h>

#include "verdict/verdict.h"

/* LANG_SUMMARY, ... */
enum lang_id {
#define LANG_TEXT(id, en, es) LANG_##id,
#include "report/lang.def"
    LANG_TEXT_COUNT
};

/* "en" or "es"; false, and *out untouched, for another word. */
bool lang_parse(const char *word, enum lang *out);
const char *lang_code(enum lang lang); /* "en" */

const char *lang_text(enum lang lang, enum lang_id id);

/* What a state and a verdict mean. */
const char *lang_status(enum lang lang, enum verdict_status status);
const char *lang_overall(enum lang lang, enum verdict_overall overall);

/* A variable of the environment that reports always list. NULL past the last one. */
struct lang_variable {
    const char *name, *fallback; /* fallback: what holds where it is unset */
    const char *meaning[LANG_COUNT];
};
const struct lang_variable *lang_variable(unsigned index);

#endif
