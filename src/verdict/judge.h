/* judge.h - the parts of the judgement; shared by the files that make it, not an API. */
#ifndef VERDICT_JUDGE_H
#define VERDICT_JUDGE_H

#include "verdict/replay.h"

struct judge {
    struct replay *r;
    struct verdict *v;
    struct arena *a;  /* the verdict's */
    bool stale;       /* refuse to judge */
    bool failed;      /* something failed */
    bool unexplained; /* and nothing says why */
};

/* Into the verdict's arena, written out; notes if memory ran out. */
const struct sentence *judge_keep(struct judge *j, const struct sentence *said);

/* The recording's provenance of that key, "" if there is none. */
const char *judge_fact(const struct replay *r, const char *key);

/* leaks.c: findings about memory that was never freed. */
void leaks_check(struct judge *j);

/* coverage.c */
void coverage_fill(struct judge *j);
void coverage_fill_provenance(struct judge *j);
void coverage_fill_blocks(struct judge *j);
void coverage_fill_remarks(struct judge *j);

/* fidelity_say.c */
void fidelity_fill(struct judge *j);

/* cause.c */
void cause_find_failures(struct judge *j);
/* The finding that explains the failure, NULL if there is none. */
const struct found *cause_find(const struct replay *r);
/* The findings, the root cause first. */
void cause_fill_findings(struct judge *j, const struct found *root);
/* Failing calls that no hypothesis is about. */
void cause_remark_failures(struct judge *j);

/* weigh.c */
void weigh_hypothesis(struct judge *j, enum verdict_hypothesis_id id);

/* Why what the program's own code did to host memory is not known; NULL: it is, or it does not
 * matter. */
const struct sentence *weigh_missing_host(struct replay *r);
const struct sentence *weigh_unhandled(struct replay *r);
/* What the device could have decided about launches, had it been told to; NULL: nothing. */
const struct sentence *weigh_missing_choice(struct replay *r);

/* answer.c */
enum verdict_overall answer_overall(struct judge *j);
const struct sentence *answer_say(struct judge *j);

#endif
