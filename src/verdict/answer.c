/* answer.c - the overall verdict and the first line of every report. */
#include "verdict/judge.h"

#include <stdio.h>
#include <string.h>

static void count_statuses(const struct verdict *v, unsigned count[4]) {
    memset(count, 0, 4 * sizeof *count);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        count[v->hypothesis[i].status]++;
}

/* ---- what stands in the way of CLEAN --------------------------------------------------------- */

/* "2 of 3 launches did not run: first saxpy, machine code that this device cannot run". */
static const struct sentence *not_run(struct replay *r) {
    static const enum sentence_id why[] = {
        [DETAIL_REASON_UNKNOWN] = SENTENCE_NOT_RUN_UNKNOWN,
        [DETAIL_REASON_NO_NATIVE_TWIN] = SENTENCE_NOT_RUN_TWIN,
        [DETAIL_REASON_DEVICE_FAILED] = SENTENCE_NOT_RUN_FAILED,
        [DETAIL_REASON_REFUSED] = SENTENCE_NOT_RUN_UNKNOWN,
        [DETAIL_REASON_PROGRAM_ENDED] = SENTENCE_NOT_RUN_ENDED,
        [DETAIL_REASON_STOPPED] = SENTENCE_NOT_RUN_STOPPED,
    };
    const struct launch_facts *l = &r->launches;
    const struct launch_count *c = l->not_run.count ? &l->not_run : &l->unfinished;
    unsigned reason = l->not_run.count ? l->reason : DETAIL_REASON_PROGRAM_ENDED;
    if (!c->count)
        return NULL;
    return SAY(&r->words, NOT_RUN, A_NUMBER(c->count),
               A_NUMBER(l->total > c->count ? l->total : c->count),
               A_NAME(c->kernel ? reader_kernel(r->r, c->kernel) : "?"),
               A_SENTENCE(sentence_plain(
                   reason < sizeof why / sizeof *why ? why[reason] : SENTENCE_NOT_RUN_UNKNOWN)));
}

/* Compiled for other GPUs than this device: nothing else about the run matters as much. NULL: it
 * was not. */
static const struct sentence *no_code(struct replay *r) {
    for (size_t i = 0; i < r->failure_count; i++)
        if (r->failures[i].status == hipErrorNoBinaryForGpu)
            return SAY(&r->words, NO_CODE, A_SENTENCE(findings_event(r, r->failures[i].seq)));
    return NULL;
}

/* What keeps a run in which nothing was found from being CLEAN; NULL: nothing. */
static const struct sentence *in_the_way(struct judge *j) {
    struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    const struct sentence *why = no_code(r);
    if (!why)
        why = not_run(r);
    if (!why && c->exit_status > 0)
        why = SAY(&r->words, EXIT_STATUS, A_NUMBER(c->exit_status));
    if (!why)
        why = weigh_unhandled(r);
    if (!why)
        why = weigh_missing_host(r);
    if (!why)
        why = weigh_missing_choice(r);
    if (!why && r->no_room)
        why = SAY(&r->words, GAP_UNWATCHED, A_NUMBER(c->unwatched));
    if (!why && c->pairs_by_time)
        why = SAY(&r->words, PAIRS_BY_TIME, A_NUMBER(c->pairs_by_time));
    if (!why)
        why = r->unclear;
    if (!why && r->doubts[HYPOTHESIS_INVALID_POINTER])
        why = r->undecided[HYPOTHESIS_INVALID_POINTER];
    return why;
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
    if (!c->ended || !c->complete || j->r->doubts[HYPOTHESIS_UNCHECKED_ERROR] || in_the_way(j))
        return VERDICT_INCONCLUSIVE;
    return j->r->options->expect_failure ? VERDICT_NOT_REPRODUCED : VERDICT_CLEAN;
}

/* ---- the first line -------------------------------------------------------------------------- */

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

/* What did not run, appended to what was found: it is always worth saying. */
static struct sentence_value not_run_tail(struct judge *j) {
    const struct sentence *said = no_code(j->r);
    if (!said && j->r->launches.not_run.count)
        said = not_run(j->r);
    return A_SENTENCE(said ? SAY(&j->r->words, TAIL_END, A_SENTENCE(said))
                           : sentence_plain(SENTENCE_NOTHING));
}

/* Does the finding itself say where the failure surfaced? */
static bool says_where(const struct verdict_finding *f) {
    return f->said && (f->said->id == SENTENCE_UNCHECKED || f->said->id == SENTENCE_CAPTURE_BROKEN);
}

/* What the messenger did: a call that returned success has reported nothing. */
static struct sentence_value tail_of(struct judge *j) {
    const struct verdict_finding *f = j->v->root;
    const struct verdict_actor *m = j->v->messenger;
    struct arena *words = &j->r->words;
    if (m && m->status_code == RECORD_PENDING)
        return A_SENTENCE(SAY(words, TAIL_ENDED_IN, name_of(j, m)));
    if (m && m->status_code && m->event != f->culprit.event && says_where(f))
        return A_SENTENCE(sentence_plain(SENTENCE_NOTHING));
    if (m && m->status_code && m->event != f->culprit.event)
        return A_SENTENCE(SAY(words, TAIL_REPORTED, name_of(j, m)));
    if (m && m->status_code && m->kind != EVENT_REFUSED)
        return A_SENTENCE(SAY(words, TAIL_RETURNED, A_NAME(m->status)));
    const struct sentence *end = j->v->coverage.end_said;
    if (m && !m->status_code && m->event == f->culprit.event)
        return A_SENTENCE(end ? SAY(words, TAIL_END, A_SENTENCE(end))
                              : sentence_plain(SENTENCE_NOTHING));
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
               A_SENTENCE(end ? SAY(words, TAIL_END, A_SENTENCE(end)) : nothing), not_run_tail(j));
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
    if (j->r->launches.not_run.count || j->r->launches.unfinished.count)
        return SAY(words, ANSWER_NOT_RUN, A_SENTENCE(not_run(j->r)));
    if (c->gaps_said)
        return SAY(words, ANSWER_GAPS, gaps);
    if (in_the_way(j))
        return SAY(words, ANSWER_GAPS, A_SENTENCE(in_the_way(j)));
    return sentence_plain(SENTENCE_ANSWER_CALL_FAILED);
}

/* " (LEAK, KERNEL_RACE)": names what a run without a finding leaves undecided, so that nobody has
 * to look up. */
static struct sentence_value undecided_names(struct judge *j) {
    char names[HYPOTHESIS_COUNT * 32] = "";
    size_t used = 0;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        if (j->v->hypothesis[i].status == VERDICT_STATUS_INCONCLUSIVE)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     hypothesis_name((enum verdict_hypothesis_id)i));
    const char *kept = used ? arena_copy_text(&j->r->words, names, used) : NULL;
    return A_SENTENCE(kept ? SAY(&j->r->words, UNDECIDED_NAMES, A_NAME(kept))
                           : sentence_plain(SENTENCE_NOTHING));
}

const struct sentence *answer_say(struct judge *j) {
    const struct verdict *v = j->v;
    unsigned count[4];
    count_statuses(v, count);
    const struct sentence_value counts[] = { A_NUMBER(count[VERDICT_STATUS_RULED_OUT]),
                                             A_NUMBER(count[VERDICT_STATUS_NOT_APPLICABLE]),
                                             A_NUMBER(count[VERDICT_STATUS_INCONCLUSIVE]),
                                             undecided_names(j) };
    switch (v->overall) {
    case VERDICT_ROOT_CAUSE:
        return SAY(&j->r->words, ANSWER_ROOT, A_NAME(hypothesis_name(v->root->hypothesis)),
                   A_SENTENCE(v->root->said), place_of(j, v->root), tail_of(j), not_run_tail(j));
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
