/* sentence.h - what the analysis says, as facts: which sentence of sentence.def, and its values.
 *
 * A sentence is said once, where its facts are known, and written in every language from the same
 * values, so that languages and formats cannot disagree. Values are numbers, amounts of bytes,
 * addresses, names, or sentences themselves ("kernel rope (event 7)" is one).
 *
 * Sentences live in the arena they were made in; names they hold are not copied until
 * sentence_keep(). Nothing here is changed once it is made: any thread may read. */
#ifndef VERDICT_SENTENCE_H
#define VERDICT_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

enum lang { LANG_EN, LANG_ES, LANG_COUNT };

/* SENTENCE_PAST_END, ... */
enum sentence_id {
#define SENTENCE(id, names, en, es) SENTENCE_##id,
#include "verdict/sentence.def"
#undef SENTENCE
    SENTENCE_COUNT
};

enum sentence_type {
    SENTENCE_NUMBER,
    SENTENCE_BYTES,   /* "4 KiB", "1 byte" */
    SENTENCE_ADDRESS, /* "0x7f00" */
    SENTENCE_NAME,    /* of a function, kernel, tensor, file: the same in every language */
    SENTENCE_SAID,    /* another sentence */
    SENTENCE_FORM,    /* a text of its own per language, in which {n} is the number */
};

struct sentence_value {
    enum sentence_type type;
    uint64_t number;
    const char *name;
    const struct sentence *said;
    const char *form[LANG_COUNT]; /* constants */
};

struct sentence {
    enum sentence_id id;
    unsigned count; /* of values, as many as sentence.def names */
    const struct sentence_value *value;
    const char *text[LANG_COUNT]; /* written out; NULL before sentence_keep() */
};

/* Values, for SAY(). A bool is a number too: {writes?writes|reads} chooses by it. */
#define A_NUMBER(n)   ((struct sentence_value){ .type = SENTENCE_NUMBER, .number = (uint64_t)(n) })
#define A_BYTES(n)    ((struct sentence_value){ .type = SENTENCE_BYTES, .number = (uint64_t)(n) })
#define AN_ADDRESS(n) ((struct sentence_value){ .type = SENTENCE_ADDRESS, .number = (uint64_t)(n) })
#define A_NAME(s)     ((struct sentence_value){ .type = SENTENCE_NAME, .name = (s) })
#define A_SENTENCE(s) ((struct sentence_value){ .type = SENTENCE_SAID, .said = (s) })

/* A sentence with values: SAY(arena, PAST_END, A_BYTES(4), ...), in the order of sentence.def's
 * names. NULL if memory ran out. */
#define SAY(arena, id, ...)                                                                        \
    sentence_make(arena, SENTENCE_##id, (const struct sentence_value[]){ __VA_ARGS__ },            \
                  sizeof((const struct sentence_value[]){ __VA_ARGS__ }) /                         \
                      sizeof(struct sentence_value))

/* Names are kept as pointers; a NULL name or sentence is written as "". If there are more or fewer
 * values than names in sentence.def, the rest is empty. */
const struct sentence *sentence_make(struct arena *a, enum sentence_id id,
                                     const struct sentence_value *values, size_t count);
/* One without values; never NULL. */
const struct sentence *sentence_plain(enum sentence_id id);

/* A copy, names included, in the arena, written out in every language. NULL if memory ran out, or
 * for NULL. */
const struct sentence *sentence_keep(struct arena *a, const struct sentence *s);

/* Writes it out; s may be NULL. */
void sentence_write(FILE *out, enum lang lang, const struct sentence *s);
/* Into a buffer of `room` bytes, cut to fit; returns out. */
const char *sentence_format(enum lang lang, const struct sentence *s, char *out, size_t room);
/* The text of one that was kept; "" for NULL. */
const char *sentence_text(enum lang lang, const struct sentence *s);

bool sentence_same(const struct sentence *a, const struct sentence *b);

const char *sentence_name(enum sentence_id id);  /* "PAST_END" */
const char *sentence_names(enum sentence_id id); /* of its values: "call,bytes,offset" */
const char *sentence_template(enum lang lang, enum sentence_id id);

/* Writes a template of one number, as hypotheses.def has them: {n} and {n?one|many}. */
const char *sentence_count(const char *form, uint64_t n, char *out, size_t room);

/* "4 KiB", "37 bytes", "1 byte": exact, in the largest unit that divides it. */
const char *sentence_bytes(uint64_t bytes, char *out, size_t room);

#endif
