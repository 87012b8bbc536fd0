/* fidelity_say.c - the fidelity section of a verdict: what fidelity.c added up, in words. */
#include "verdict/judge.h"

#include <string.h>

static void add_line(struct judge *j, const struct sentence *said) {
    struct verdict_fidelity *f = &j->v->fidelity;
    f->said[f->lines] = judge_keep(j, said);
    f->text[f->lines] = sentence_text(LANG_EN, f->said[f->lines]);
    f->lines++;
}

/* "v_exp_f32, v_rcp_f32" */
static const char *joined(struct judge *j, unsigned kind) {
    const struct name_list *l = &j->r->fidelity.names[kind];
    size_t bytes = 1, n = 0;
    for (size_t i = 0; i < l->count; i++)
        bytes += strlen(l->at[i]) + 2;
    char *out = arena_alloc(j->a, bytes);
    if (!out) {
        j->r->no_memory = true;
        return "";
    }
    for (size_t i = 0; i < l->count; i++) {
        size_t length = strlen(l->at[i]);
        if (i) {
            out[n++] = ',';
            out[n++] = ' ';
        }
        memcpy(out + n, l->at[i], length);
        n += length;
    }
    out[n] = '\0';
    return out;
}

static void keep_names(struct judge *j, unsigned kind) {
    struct verdict_fidelity *f = &j->v->fidelity;
    const struct name_list *l = &j->r->fidelity.names[kind];
    const char **names = arena_alloc_array(j->a, l->count + 1, sizeof *names);
    if (!names) {
        j->r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < l->count; i++) {
        names[i] = arena_copy_text(j->a, l->at[i], strlen(l->at[i]));
        j->r->no_memory |= !names[i];
    }
    f->kind[kind].names = names;
    f->kind[kind].count = l->count;
}

static const struct sentence *say_reached(struct judge *j) {
    const struct verdict_fidelity *f = &j->v->fidelity;
    struct arena *words = &j->r->words;
    if (f->addresses || f->branches)
        return SAY(words, FIDELITY_REACHED, A_NUMBER(f->addresses), A_NUMBER(f->branches));
    return sentence_plain(f->followed < f->launches ? SENTENCE_FIDELITY_NOT_FOLLOWED
                                                    : SENTENCE_FIDELITY_NOWHERE);
}

void fidelity_fill(struct judge *j) {
    struct verdict_fidelity *f = &j->v->fidelity;
    struct arena *words = &j->r->words;
    *f = j->r->fidelity.seen;
    if (!f->launches) {
        add_line(j, sentence_plain(SENTENCE_FIDELITY_NONE));
        return;
    }
    for (unsigned k = 0; k < VERDICT_EXACTNESS_COUNT; k++)
        keep_names(j, k);
    uint64_t precise = f->kind[VERDICT_PRECISE].instructions;
    uint64_t approximate = f->kind[VERDICT_APPROXIMATE].instructions;
    add_line(j, SAY(words, FIDELITY_EXACT, A_NUMBER(f->launches),
                    A_NUMBER(f->kind[VERDICT_EXACT].instructions),
                    A_NUMBER(f->kind[VERDICT_EXACT].count)));
    add_line(j, precise ? SAY(words, FIDELITY_PRECISE, A_NUMBER(precise),
                              A_NAME(joined(j, VERDICT_PRECISE)))
                        : sentence_plain(SENTENCE_FIDELITY_NO_PRECISE));
    add_line(j, approximate ? SAY(words, FIDELITY_APPROXIMATE, A_NUMBER(approximate),
                                  A_NAME(joined(j, VERDICT_APPROXIMATE)))
                            : sentence_plain(SENTENCE_FIDELITY_NO_APPROXIMATE));
    if (approximate)
        add_line(j, say_reached(j));
}
