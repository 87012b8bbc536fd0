/* judge.c - makes the verdict of a run that has been replayed: what the recording shows
 * (coverage.c), what was found and what of it is the cause (leaks.c, cause.c), each hypothesis
 * (weigh.c), and the answer (answer.c). */
#include "verdict/judge.h"

#include <stdlib.h>

struct whole {
    struct verdict v; /* first: what verdict_open() gives is a pointer to it */
    struct arena arena;
};

static void judge_all(struct judge *j) {
    struct replay *r = j->r;
    struct verdict *v = j->v;
    v->recording = actors_text(r, j->a, "%s", r->options->recording ? r->options->recording : "");
    r->checked[HYPOTHESIS_UPSTREAM_KERNEL_FAULT] = r->calls;
    j->stale = stale_check(r);
    ends_settle(r);
    cause_find_failures(j);
    leaks_check(j);
    resources_finish(r, j->failed);
    coverage_fill(j);
    coverage_fill_provenance(j);
    fidelity_fill(j);
    const struct found *root = j->stale ? NULL : cause_find(r);
    cause_fill_findings(j, root);
    cause_remark_failures(j);
    coverage_fill_remarks(j);
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        weigh_hypothesis(j, (enum verdict_hypothesis_id)id);
    v->overall = answer_overall(j);
    v->answer_said = judge_keep(j, answer_say(j));
    v->answer = sentence_text(LANG_EN, v->answer_said);
    coverage_fill_blocks(j);
}

static enum rc make_verdict(struct replay *r, verdict **out, struct err *e) {
    struct whole *w = calloc(1, sizeof *w);
    if (w) {
        struct judge j = { .r = r, .v = &w->v, .a = &w->arena };
        judge_all(&j);
    }
    if (!w || r->no_memory) {
        verdict *v = w ? &w->v : NULL;
        verdict_close(&v);
        return err_set(e, RC_MEMORY, "out of memory while judging; the recording has %llu events",
                       (unsigned long long)reader_info(r->r)->end_seq);
    }
    *out = &w->v;
    return RC_OK;
}

/* ---- opening and closing --------------------------------------------------------------------- */

enum rc verdict_open(verdict **out, const reader *recording, const struct verdict_options *options,
                     struct err *e) {
    enum { FINDINGS_USUAL = 1000 };
    static const struct verdict_options none;
    struct replay *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, RC_MEMORY, "out of memory");
    r->r = recording;
    r->options = options ? options : &none;
    r->found.max = r->options->findings_max ? r->options->findings_max : FINDINGS_USUAL;
    replay_run(r);
    enum rc rc = r->no_memory ? err_set(e, RC_MEMORY, "out of memory while replaying the recording")
                              : make_verdict(r, out, e);
    replay_free(r);
    free(r);
    return rc;
}

void verdict_close(verdict **v) {
    if (!*v)
        return;
    struct whole *w = (struct whole *)*v;
    arena_clear(&w->arena);
    free(w);
    *v = NULL;
}

int verdict_exit_code(const verdict *v) {
    enum { CLEAN = 0, FOUND = 1, REFUSED = 3 };
    if (v->hypothesis[HYPOTHESIS_STALE_BINARY].status == VERDICT_STATUS_CONFIRMED ||
        !v->coverage.calls)
        return REFUSED;
    return v->overall == VERDICT_CLEAN || v->overall == VERDICT_NOT_REPRODUCED ? CLEAN : FOUND;
}
