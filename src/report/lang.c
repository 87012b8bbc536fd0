#include "report/lang.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const char *const texts[LANG_TEXT_COUNT][LANG_COUNT] = {
#define LANG_TEXT(id, en, es) [LANG_##id] = { en, es },
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

const struct lang_coverage lang_coverage[LANG_COVERAGE_COUNT] = {
#define COVERAGE(name, where, en, es)                                                              \
    { LANG_COVERAGE_##where, { en, es }, offsetof(struct verdict_coverage, name) },
#include "verdict/coverage.def"
};

uint64_t lang_coverage_value(const struct verdict_coverage *c, size_t row) {
    return *(const uint64_t *)(const void *)((const char *)c + lang_coverage[row].offset);
}

bool lang_actor(enum lang lang, const struct verdict_actor *a, size_t row, struct lang_actor *out) {
    switch (row) {
#define ACTOR_HAS_NAME(value)   (out->name = (value)) != NULL
#define ACTOR_HAS_NUMBER(value) (out->number = (value)) >= 0
#define ACTOR(fact, type, en, es, description)                                                     \
    case LANG_ACTOR_ROW_##fact:                                                                    \
        *out = (struct lang_actor){ .label = lang == LANG_ES ? (es) : (en) };                      \
        return ACTOR_HAS_##type(a->fact);
#include "verdict/actor.def"
    default:
        return false;
    }
}

bool lang_actor_next(enum lang lang, const struct verdict_actor *a, size_t *row,
                     struct lang_actor *out) {
    while (*row < LANG_ACTOR_COUNT)
        if (lang_actor(lang, a, (*row)++, out))
            return true;
    return false;
}

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

const char *lang_api(enum lang lang, const struct verdict_actor *a) {
    if (a->kind == EVENT_EARLY_HOST_ACCESS || a->kind == EVENT_HOST_FAULT)
        return lang_text(lang, LANG_HOST_ACCESS);
    return *a->api ? a->api : event_kind_text(a->kind);
}

const char *lang_result(enum lang lang, const struct verdict_actor *a) {
    return a->status_code == RECORD_PENDING ? lang_text(lang, LANG_PENDING) : a->status;
}

const char *lang_said(enum lang lang, const struct sentence *said, const char *english) {
    return said ? sentence_text(lang, said) : english;
}

const char *lang_advice(enum lang lang, const struct verdict_finding *f) {
    if (f->advised)
        return sentence_text(lang, f->advised);
    if (lang == LANG_EN && f->advice && *f->advice)
        return f->advice;
    return hypothesis_words(lang, f->hypothesis)->advice;
}

const char *lang_block_made(enum lang lang, const struct verdict_block *b) {
    return lang_text(lang, b->family == DETAIL_FAMILY_REGISTERED ? LANG_BLOCK_REGISTERED
                           : b->family == DETAIL_FAMILY_SYMBOL   ? LANG_BLOCK_VARIABLE
                                                                 : LANG_BLOCK_ALLOC);
}

const char *lang_block_size(enum lang lang, const struct verdict_block *b, char *text,
                            size_t room) {
    return b->family == DETAIL_FAMILY_ARRAY ? lang_text(lang, LANG_BLOCK_ARRAY)
                                            : sentence_bytes(b->bytes, text, room);
}

const char *lang_block_gone(enum lang lang, const struct verdict_block *b) {
    return lang_text(lang, b->family == DETAIL_FAMILY_REGISTERED ? LANG_BLOCK_UNREGISTERED
                                                                 : LANG_BLOCK_FREE);
}

void lang_count(FILE *out, enum lang lang, enum sentence_id id, const uint64_t *numbers,
                unsigned count) {
    struct sentence_value values[16];
    count = count < 16 ? count : 16;
    for (unsigned i = 0; i < count; i++)
        values[i] = A_NUMBER(numbers[i]);
    sentence_write(out, lang, &(struct sentence){ .id = id, .count = count, .value = values });
}

const char *lang_access(enum lang lang, enum verdict_access access) {
    static const enum lang_id ids[] = { LANG_READS, LANG_WRITES, LANG_USES, LANG_ALLOCATES,
                                        LANG_FREES };
    return (unsigned)access < sizeof ids / sizeof *ids ? lang_text(lang, ids[access]) : "?";
}

const char *lang_overall(enum lang lang, enum verdict_overall overall) {
    return (unsigned)overall < sizeof overalls / sizeof *overalls ? overalls[overall][lang] : "?";
}

const struct lang_variable *lang_variable(unsigned index) {
    return index < sizeof variables / sizeof *variables ? &variables[index] : NULL;
}

static const char *const pages[][LANG_COUNT] = {
#define LANG_PAGE(en, es) { en, es },
#include "report/lang.def"
};

bool lang_page_row(unsigned index, enum lang lang, const char **english, const char **text) {
    if (index >= sizeof pages / sizeof *pages)
        return false;
    *english = pages[index][LANG_EN];
    *text = pages[index][lang];
    return true;
}

const char *lang_page(enum lang lang, const char *english) {
    const char *own, *text;
    for (unsigned i = 0; lang_page_row(i, lang, &own, &text); i++)
        if (!strcmp(own, english))
            return text;
    return english;
}
