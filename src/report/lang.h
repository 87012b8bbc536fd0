/* lang.h - the texts of reports in the languages they are written in: the tables of lang.def.
 * What the analysis says is in hypotheses.def and sentence.def.
 *
 * Names of hypotheses, of their states and of verdicts are the same in every language, so that one
 * can search for them. All strings are constants; any thread may ask. */
#ifndef VERDICT_LANG_H
#define VERDICT_LANG_H

#include <stdbool.h>
#include <stdio.h>

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

/* The function that an actor called, or what it did where there is none. */
const char *lang_api(enum lang lang, const struct verdict_actor *a);

/* The result of an actor's call: the name of an error, or that the call has not returned. */
const char *lang_result(enum lang lang, const struct verdict_actor *a);

/* What the analysis says: said in the language, or what there is in English where said is NULL. */
const char *lang_said(enum lang lang, const struct sentence *said, const char *english);
/* What to do about a finding. */
const char *lang_advice(enum lang lang, const struct verdict_finding *f);
/* "reads", "allocates". */
const char *lang_access(enum lang lang, enum verdict_access access);

/* How a block came about and how it ended: "allocated by event", "unregistered by event". */
const char *lang_block_made(enum lang lang, const struct verdict_block *b);
/* Its size in words, in text of `room` bytes. Only the runtime knows that of an array. */
const char *lang_block_size(enum lang lang, const struct verdict_block *b, char *text, size_t room);
const char *lang_block_gone(enum lang lang, const struct verdict_block *b);

/* Writes a sentence whose values are all numbers, in the order of sentence.def. */
void lang_count(FILE *out, enum lang lang, enum sentence_id id, const uint64_t *numbers,
                unsigned count);
#define LANG_COUNTS(out, lang, id, ...)                                                            \
    lang_count(out, lang, SENTENCE_##id, (const uint64_t[]){ __VA_ARGS__ },                        \
               sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* The rows of coverage.def: where a count is shown, and its label. */
enum lang_coverage_where { LANG_COVERAGE_JSON, LANG_COVERAGE_PAGE, LANG_COVERAGE_ALL };
struct lang_coverage {
    enum lang_coverage_where where;
    const char *label[LANG_COUNT];
    size_t offset; /* of the uint64_t in struct verdict_coverage */
};
enum {
#define COVERAGE(name, where, en, es) LANG_COVERAGE_ROW_##name,
#include "verdict/coverage.def"
    LANG_COVERAGE_COUNT
};
extern const struct lang_coverage lang_coverage[LANG_COVERAGE_COUNT];
uint64_t lang_coverage_value(const struct verdict_coverage *c, size_t row);

/* The facts of actor.def that an operation has, one after the other: *row is 0 for the first call.
 * False past the last. */
struct lang_actor {
    const char *label;
    const char *name; /* NULL: it is a number */
    int64_t number;
};
bool lang_actor_next(enum lang lang, const struct verdict_actor *a, size_t *row,
                     struct lang_actor *out);
/* The fact of that row; false if the operation does not have it. */
bool lang_actor(enum lang lang, const struct verdict_actor *a, size_t row, struct lang_actor *out);
enum {
#define ACTOR(name, type, en, es, description) LANG_ACTOR_ROW_##name,
#include "verdict/actor.def"
    LANG_ACTOR_COUNT
};

/* What a verdict means. */
const char *lang_overall(enum lang lang, enum verdict_overall overall);

/* A text of the HTML page, looked up by its English, which is the fallback. */
const char *lang_page(enum lang lang, const char *english);
/* The texts one by one; false past the last one. */
bool lang_page_row(unsigned index, enum lang lang, const char **english, const char **text);

/* A variable of the environment that reports always list. NULL past the last one. */
struct lang_variable {
    const char *name, *fallback; /* fallback: what holds where it is unset */
    const char *meaning[LANG_COUNT];
};
const struct lang_variable *lang_variable(unsigned index);

#endif
