/* judge_common.c - what every part of the judgement uses, below all of them. */
#include "verdict/judge.h"

const struct sentence *judge_keep(struct judge *j, const struct sentence *said) {
    const struct sentence *kept = sentence_keep(j->a, said);
    j->r->no_memory |= !kept;
    return kept;
}

const char *judge_fact(const struct replay *r, const char *key) {
    const char *value = reader_provenance_find(r->r, key);
    return value ? value : "";
}
