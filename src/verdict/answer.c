/* answer.c - the overall verdict and the first line of every report. */
#include "verdict/judge.h"

#include <string.h>

static void count_statuses(const struct verdict *v, unsigned count[4]) {
    memset(count, 0, 4 * sizeof *count);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        count[v->hypothesis[i].status]++;
}

enum verdict_overall answer_overall(struct judge *j) {
    const struct verdict *v = j->v;
    const struct verdict_coverage *c = &v->coverage;
    if (j->stale || !c->calls)
        return VERDICT_INCONCLUSIVE;
    if (v->root)
        return VERDICT_ROOT_CAUSE;
    if (j->unexplained)
        return VERDICT_INCONCLUSIVE;
    if (v->finding_count)
        return VERDICT_FINDINGS;
    if (!c->ended || !c->complete || j->r->doubts[HYPOTHESIS_UNCHECKED_ERROR])
        return VERDICT_INCONCLUSIVE;
    return j->r->options->expect_failure ? VERDICT_NOT_REPRODUCED : VERDICT_CLEAN;
}

/* ---- the first line ----------------------------------------------------------------------------
 */

static struct sentence_value name_of(struct judge *j, const struct verdict_actor *a) {
    struct arena *words = &j->r->words;
    const struct sentence_value name = A_NAME(a->kernel ? a->kernel : a->api),
                                tensor = A_NAME(a->tensor), event = A_NUMBER(a->event);
    if (a->tensor)
        return A_SENTENCE(a->kernel ? SAY(words, CALL_LAUNCH_TENSOR, name, tensor, event)
                                    : SAY(words, CALL_TENSOR, name, tensor, event));
    return A_SENTENCE(a->kernel ? SAY(words, CALL_LAUNCH, name, event)
                                : SAY(words, CALL, name, event));
}

/* Does the sentence name an argument already? */
static bool names_argument(const struct sentence *s) {
    if (!s)
        return false;
    if (s->id == SENTENCE_THROUGH_ARGUMENT || s->id == SENTENCE_THROUGH_NUMBER ||
        s->id == SENTENCE_UNDEFINED_ARGUMENT)
        return true;
    for (unsigned i = 0; i < s->count; i++)
        if (s->value[i].type == SENTENCE_SAID && names_argument(s->value[i].said))
            return true;
    return false;
}

static const struct sentence *listed(struct judge *j, const struct sentence *first,
                                     const struct sentence *second) {
    return first ? SAY(&j->r->words, LISTED, A_SENTENCE(first), A_SENTENCE(second)) : second;
}

/* " (argument pos, step 0, layer 3)": of where the culprit is, what the sentence does not say. */
static struct sentence_value place_of(struct judge *j, const struct verdict_finding *f) {
    const struct verdict_actor *a = &f->culprit;
    struct arena *words = &j->r->words;
    const struct sentence *parts = NULL;
    if (a->argument && a->argument[0] != '#' && !names_argument(f->said))
        parts = SAY(words, PLACE_ARGUMENT, A_NAME(a->argument));
    if (a->step >= 0)
        parts = listed(j, parts, SAY(words, PLACE_STEP, A_NUMBER(a->step)));
    if (a->layer >= 0)
        parts = listed(j, parts, SAY(words, PLACE_LAYER, A_NUMBER(a->layer)));
    return A_SENTENCE(parts ? SAY(words, PLACE, A_SENTENCE(parts))
                            : sentence_plain(SENTENCE_NOTHING));
}

/* What the messenger did: a call that returned success has reported nothing. */
static struct sentence_value tail_of(struct judge *j) {
    const struct verdict_finding *f = j->v->root;
    const struct verdict_actor *m = j->v->messenger;
    struct arena *words = &j->r->words;
    if (m && m->status_code == RECORD_PENDING)
        return A_SENTENCE(SAY(words, TAIL_ENDED_IN, name_of(j, m)));
    if (m && m->status_code && m->event != f->culprit.event)
        return A_SENTENCE(SAY(words, TAIL_REPORTED, name_of(j, m)));
    if (m && m->status_code && m->kind != EVENT_REFUSED)
        return A_SENTENCE(SAY(words, TAIL_RETURNED, A_NAME(m->status)));
    /* The sentence about an unchecked error says itself where it surfaced. */
    if (m && !m->status_code && f->said->id != SENTENCE_UNCHECKED)
        return A_SENTENCE(SAY(words, TAIL_SURFACED, name_of(j, m)));
    return A_SENTENCE(sentence_plain(SENTENCE_NOTHING));
}

static const struct sentence *findings_answer(struct judge *j) {
    const struct verdict *v = j->v;
    const struct verdict_finding *f = &v->findings[0];
    struct arena *words = &j->r->words;
    const struct sentence *nothing = sentence_plain(SENTENCE_NOTHING), *end = v->coverage.end_said;
    return SAY(words, ANSWER_FINDINGS, A_NAME(hypothesis_name(f->hypothesis)), A_SENTENCE(f->said),
               place_of(j, f),
               A_SENTENCE(v->finding_count > 1
                              ? SAY(words, TAIL_MORE, A_NUMBER(v->finding_count - 1))
                              : nothing),
               A_SENTENCE(end ? SAY(words, TAIL_END, A_SENTENCE(end)) : nothing));
}

static const struct sentence *unclear_answer(struct judge *j) {
    const struct verdict *v = j->v;
    const struct verdict_coverage *c = &v->coverage;
    struct arena *words = &j->r->words;
    const struct sentence_value first = A_SENTENCE(v->finding_count ? v->findings[0].said : NULL),
                                end = A_SENTENCE(c->end_said), gaps = A_SENTENCE(c->gaps_said);
    if (j->stale)
        return SAY(words, ANSWER_STALE, first);
    if (!c->calls && !c->ended && c->exit_signal > 0)
        return SAY(words, ANSWER_NOTHING_ENDED, end);
    if (!c->calls)
        return sentence_plain(SENTENCE_ANSWER_NO_CALLS);
    if (j->unexplained && v->finding_count)
        return SAY(words, ANSWER_UNEXPLAINED, first);
    if (j->unexplained)
        return sentence_plain(SENTENCE_ANSWER_DEVICE_FAILED);
    if (!c->ended)
        return SAY(words, ANSWER_ENDED, end,
                   A_SENTENCE(c->complete ? sentence_plain(SENTENCE_NOTHING)
                                          : SAY(words, TAIL_END, gaps)));
    if (c->gaps_said)
        return SAY(words, ANSWER_GAPS, gaps);
    return sentence_plain(SENTENCE_ANSWER_CALL_FAILED);
}

const struct sentence *answer_say(struct judge *j) {
    const struct verdict *v = j->v;
    unsigned count[4];
    count_statuses(v, count);
    const struct sentence_value counts[] = { A_NUMBER(count[VERDICT_STATUS_RULED_OUT]),
                                             A_NUMBER(count[VERDICT_STATUS_NOT_APPLICABLE]),
                                             A_NUMBER(count[VERDICT_STATUS_INCONCLUSIVE]) };
    switch (v->overall) {
    case VERDICT_ROOT_CAUSE:
        return SAY(&j->r->words, ANSWER_ROOT, A_NAME(hypothesis_name(v->root->hypothesis)),
                   A_SENTENCE(v->root->said), place_of(j, v->root), tail_of(j));
    case VERDICT_FINDINGS:
        return findings_answer(j);
    case VERDICT_INCONCLUSIVE:
        return unclear_answer(j);
    default:
        return sentence_make(&j->r->words,
                             v->overall == VERDICT_CLEAN ? SENTENCE_ANSWER_CLEAN
                                                         : SENTENCE_ANSWER_NOT_REPRODUCED,
                             counts, sizeof counts / sizeof *counts);
    }
}
