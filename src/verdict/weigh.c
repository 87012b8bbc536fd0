/* weigh.c - puts one hypothesis to the test.
 *
 * A hypothesis is CONFIRMED by one finding. It is RULED_OUT only by proof: its checks found
 * nothing, and the recording has all that the checks would have needed to find something (the
 * `needs` column of hypotheses.def). Everything between is INCONCLUSIVE, with the reason. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <string.h>

#include "verdict/needs.h"

enum { EVIDENCE_SHOWN = 16 };

static bool saturated(const struct replay *r) {
    for (size_t i = 0; i < r->space_count; i++)
        if (shadow_is_saturated(r->spaces[i]->shadow))
            return true;
    return false;
}

/* ---- what the device states about launches --------------------------------------------------- */

static struct sentence_value kernel_of(const struct replay *r, const struct launch_count *c) {
    return A_NAME(c->kernel ? reader_kernel(r->r, c->kernel) : "?");
}

#define SAY_LAUNCHES(id, which)                                                                    \
    SAY(&r->words, id, A_NUMBER((which).count), A_NUMBER(r->launches.total), kernel_of(r, &(which)))

/* Why a launch may not have run. */
static const struct sentence *missing_run(struct replay *r) {
    const struct launch_facts *l = &r->launches;
    if (l->not_run.count)
        return SAY_LAUNCHES(MISSING_RUN, l->not_run);
    return l->unfinished.count ? SAY_LAUNCHES(MISSING_FINISHED, l->unfinished) : NULL;
}

/* Why an access of a kernel to a wrong place may have passed unnoticed. */
static const struct sentence *missing_checks(struct replay *r, enum verdict_hypothesis_id id) {
    const struct launch_facts *l = &r->launches;
    const bool front = id == HYPOTHESIS_BAD_OFFSET, behind = id == HYPOTHESIS_SIZE_MISMATCH;
    if (l->unchecked.count)
        return SAY_LAUNCHES(MISSING_CHECKS, l->unchecked);
    if (front && l->front.count)
        return SAY(&r->words, MISSING_SLACK, A_NUMBER(l->front.count), A_NUMBER(l->total),
                   kernel_of(r, &l->front), A_NUMBER(l->unpatterned), A_BYTES(l->front_bytes),
                   A_NUMBER(true));
    if (behind && l->behind.count)
        return SAY(&r->words, MISSING_SLACK, A_NUMBER(l->behind.count), A_NUMBER(l->total),
                   kernel_of(r, &l->behind), A_NUMBER(l->unpatterned), A_BYTES(l->behind_bytes),
                   A_NUMBER(false));
    return (front || behind) && l->inside.count ? SAY_LAUNCHES(MISSING_TENSORS, l->inside) : NULL;
}

/* Why the bytes that kernels touch are not known well enough for this one; NULL: they are. */
static const struct sentence *missing_footprints(struct replay *r, enum verdict_hypothesis_id id) {
    const struct launch_facts *l = &r->launches;
    if (id == HYPOTHESIS_STREAM_UNSYNCED && !r->unknown_beside)
        return NULL;
    if (l->vague.count)
        return id == HYPOTHESIS_STREAM_UNSYNCED ? SAY_LAUNCHES(MISSING_BESIDE, l->vague)
                                                : SAY_LAUNCHES(MISSING_BYTES, l->vague);
    return r->unknown_beside && id == HYPOTHESIS_STREAM_UNSYNCED
               ? sentence_plain(r->strayed ? SENTENCE_MISSING_VARIABLES : SENTENCE_MISSING_GRAPHS)
               : NULL;
}

static const struct sentence *missing_statements(struct replay *r, enum verdict_hypothesis_id id) {
    const struct sentence *why = NULL;
    if (needs[id] & (RUN | CHECKED | FOOTPRINTS | RACES | BARRIERS))
        why = missing_run(r);
    if (!why && needs[id] & RACES && r->launches.unraced.count)
        why = SAY_LAUNCHES(MISSING_RACES, r->launches.unraced);
    if (!why && needs[id] & RACES && r->launches.unfollowed.count)
        why = SAY_LAUNCHES(MISSING_FOLLOWED, r->launches.unfollowed);
    if (!why && needs[id] & RACES && r->launches.unraced_grids.count)
        why = SAY_LAUNCHES(MISSING_GRID_RACES, r->launches.unraced_grids);
    if (!why && needs[id] & (RACES | BARRIERS) && r->launches.cut_short.count)
        why = SAY_LAUNCHES(MISSING_CUT_SHORT, r->launches.cut_short);
    if (!why && needs[id] & BARRIERS && r->launches.unbarred.count)
        why = SAY_LAUNCHES(MISSING_BARRIERS, r->launches.unbarred);
    if (!why && needs[id] & CHECKED)
        why = missing_checks(r, id);
    if (!why && needs[id] & FOOTPRINTS)
        why = missing_footprints(r, id);
    return why;
}

/* What the device could have decided about launches, had it been told to. */
const struct sentence *weigh_missing_choice(struct replay *r) {
    const struct launch_facts *l = &r->launches;
    if (l->could.count)
        return SAY_LAUNCHES(MISSING_CHOICE, l->could);
    if (l->unfollowed.count)
        return SAY_LAUNCHES(MISSING_FOLLOWED, l->unfollowed);
    return l->undefined.count ? SAY_LAUNCHES(MISSING_INIT, l->undefined) : NULL;
}

/* Why what the program's own code did to host memory is not known. */
const struct sentence *weigh_missing_host(struct replay *r) {
    const char *watched = judge_fact(r, "env.GCORE_WATCH_HOST");
    if (!r->host_open || (*watched && strcmp(watched, "0") != 0))
        return NULL;
    return SAY(&r->words, MISSING_HOST, A_NUMBER(r->host_open),
               A_SENTENCE(findings_event(r, r->host_first)));
}

/* A failing call about which the program did not ask, and which it did not make again. */
const struct sentence *weigh_unhandled(struct replay *r) {
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];
        if (!f->explained && !f->sticky && !f->harmless && !f->looked && !f->made_again)
            return SAY(&r->words, FAILED_UNHANDLED, A_SENTENCE(findings_event(r, f->seq)),
                       A_NAME(hip_error_name((hipError_t)f->status)));
    }
    return NULL;
}

/* ---- one hypothesis -------------------------------------------------------------------------- */

static bool is_about_order(enum verdict_hypothesis_id id) {
    return id == HYPOTHESIS_STREAM_UNSYNCED || id == HYPOTHESIS_OVERLAPPING_COPIES ||
           id == HYPOTHESIS_STAGING_REUSE;
}

/* Why it cannot be ruled out; NULL: it can. */
static const struct sentence *missing(struct judge *j, enum verdict_hypothesis_id id) {
    struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    if (j->stale && id != HYPOTHESIS_STALE_BINARY)
        return sentence_plain(SENTENCE_NOT_JUDGED);
    if (r->doubts[id])
        return r->doubts[id] > 1
                   ? SAY(&r->words, CASES, A_SENTENCE(r->undecided[id]), A_NUMBER(r->doubts[id]))
                   : r->undecided[id];
    if (needs[id] & HISTORY && (!c->complete || !c->ended))
        return c->gaps_said;
    if (needs[id] & END && !c->ended)
        return sentence_plain(SENTENCE_MISSING_END);
    const struct sentence *why = missing_statements(r, id);
    if (!why && needs[id] & HOST)
        why = weigh_missing_host(r);
    if (!why && needs[id] & HOST && c->unwatched) /* no option can */
        why = SAY(&r->words, GAP_UNWATCHED, A_NUMBER(c->unwatched));
    if (!why && id == HYPOTHESIS_UNCHECKED_ERROR)
        why = weigh_unhandled(r);
    if (why)
        return why;
    if (is_about_order(id) && c->pairs_by_time)
        return SAY(&r->words, PAIRS_BY_TIME, A_NUMBER(c->pairs_by_time));
    if (is_about_order(id) && saturated(r))
        return sentence_plain(SENTENCE_MISSING_RANGES);
    if (id == HYPOTHESIS_HOST_BUFFER_LIFETIME && r->registered_async &&
        !*judge_fact(r, "run.recorder"))
        return sentence_plain(SENTENCE_MISSING_RECORDER);
    return NULL;
}

static bool applies(const struct judge *j, enum verdict_hypothesis_id id) {
    const struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    uint64_t ops = c->copies + c->sets + c->launches + c->graph_launches;
    switch (id) {
    case HYPOTHESIS_STREAM_UNSYNCED:
        return ops > 0;
    case HYPOTHESIS_OVERLAPPING_COPIES:
        return c->copies > 0; /* it may overlap itself */
    case HYPOTHESIS_UPSTREAM_KERNEL_FAULT:
        return r->calls > 0;
    case HYPOTHESIS_SHAPE_MISMATCH:
        return r->checked[id] || r->launches.not_run.count || r->launches.unfinished.count ||
               r->launches.vague.count;
    case HYPOTHESIS_UNINITIALISED_READ:
        return r->checked[id] || c->launches;
    case HYPOTHESIS_KERNEL_RACE:
        return r->checked[id] || r->launches.unraced.count || r->launches.unfollowed.count ||
               r->launches.unraced_grids.count;
    case HYPOTHESIS_BARRIER_DIVERGENCE:
        return r->checked[id] || r->launches.unbarred.count;
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_BAD_OFFSET:
    case HYPOTHESIS_INVALID_POINTER:
    case HYPOTHESIS_USE_AFTER_FREE:
        return ops > 0;
    case HYPOTHESIS_UNCHECKED_ERROR:
        return r->calls > 0;
    default:
        return r->checked[id] > 0;
    }
}

/* A column of the hypothesis's row in every language; n: what {n} stands for in it. */
#define A_COLUMN(id, column, n)                                                                    \
    ((struct sentence_value){ .type = SENTENCE_FORM,                                               \
                              .number = (n),                                                       \
                              .form = { hypothesis_words(LANG_EN, id)->column,                     \
                                        hypothesis_words(LANG_ES, id)->column } })

/* Is it about where ranges begin and end? Machine code does not tell private arrays apart, and
 * debug information does not name all of them. */
static bool is_about_extent(enum verdict_hypothesis_id id) {
    return id == HYPOTHESIS_SIZE_MISMATCH || id == HYPOTHESIS_BAD_OFFSET;
}

static bool is_about_place(enum verdict_hypothesis_id id) {
    return is_about_extent(id) || id == HYPOTHESIS_INVALID_POINTER ||
           id == HYPOTHESIS_USE_AFTER_FREE;
}

/* A kernel whose sizes ask for more than its buffer holds touches a wrong place, too. */
static bool shows_place(enum verdict_hypothesis_id id) {
    return is_about_place(id) || id == HYPOTHESIS_SHAPE_MISMATCH;
}

/* These hypotheses are about every range. If one of them is confirmed, the others are ruled out
 * only for the ranges besides that finding's. */
static const struct sentence *leave_out(struct judge *j, enum verdict_hypothesis_id id,
                                        const struct sentence *more) {
    for (size_t i = 0; is_about_place(id) && i < j->v->finding_count; i++) {
        const struct verdict_finding *f = &j->v->findings[i];
        for (int other = 0; other < HYPOTHESIS_COUNT; other++)
            if (shows_place((enum verdict_hypothesis_id)other) &&
                ((int)f->hypothesis == other || f->also & 1u << other))
                return SAY(&j->r->words, RULED_OUT_BUT, A_SENTENCE(more),
                           A_NAME(hypothesis_name((enum verdict_hypothesis_id)other)));
    }
    return more;
}

static const struct sentence *ruled_out(struct judge *j, enum verdict_hypothesis_id id,
                                        uint64_t checked) {
    struct replay *r = j->r;
    if (id == HYPOTHESIS_UNCHECKED_ERROR && !checked)
        return SAY(&r->words, NONE_FAILED, A_NUMBER(r->calls));
    const struct launch_facts *l = &r->launches;
    /* Accesses that no range of the recording shows were seen by the device. */
    bool by_device = needs[id] & CHECKED && (checked ? l->vague.count : l->total);
    bool harmless = needs[id] & RACES && l->harmless.count;
    const struct sentence *said = by_device ? SAY(&r->words, RULED_OUT_CHECKED, A_NUMBER(l->total))
                                  : harmless
                                      ? SAY(&r->words, RULED_OUT_HARMLESS,
                                            A_NUMBER(l->harmless.count), kernel_of(r, &l->harmless))
                                  : checked ? sentence_plain(SENTENCE_NOTHING)
                                            : sentence_plain(SENTENCE_RULED_OUT_EMPTY);
    if (l->machine && is_about_extent(id))
        said = SAY(&r->words, RULED_OUT_PRIVATE, A_SENTENCE(said));
    if (id == HYPOTHESIS_HOST_BUFFER_LIFETIME && r->registered_async)
        said = sentence_plain(SENTENCE_RULED_OUT_REGISTERED);
    const struct sentence_value more = A_SENTENCE(leave_out(j, id, said));
    if (!checked)
        return SAY(&r->words, RULED_OUT_NONE, A_COLUMN(id, refutes, 0), more);
    return SAY(&r->words, RULED_OUT, A_COLUMN(id, refutes, 0), A_COLUMN(id, counted, checked),
               more);
}

static const struct sentence *not_applicable(struct judge *j, enum verdict_hypothesis_id id) {
    return SAY(&j->r->words, NOT_APPLICABLE, A_COLUMN(id, absent, 0));
}

static void collect_evidence(struct judge *j, struct verdict_hypothesis *h) {
    const struct verdict *v = j->v;
    uint64_t *evidence = arena_alloc_array(j->a, EVIDENCE_SHOWN, sizeof *evidence);
    if (!evidence) {
        j->r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < v->finding_count; i++) {
        const struct verdict_finding *f = &v->findings[i];
        if (f->hypothesis != h->id && !(f->also & 1u << h->id))
            continue;
        if (!h->findings++)
            h->said = f->said;
        for (size_t k = 0; k < f->evidence_count && h->evidence_count < EVIDENCE_SHOWN; k++) {
            size_t at = 0;
            while (at < h->evidence_count && evidence[at] < f->evidence[k])
                at++;
            if (at < h->evidence_count && evidence[at] == f->evidence[k])
                continue;
            memmove(&evidence[at + 1], &evidence[at], (h->evidence_count - at) * sizeof *evidence);
            evidence[at] = f->evidence[k];
            h->evidence_count++;
        }
    }
    h->evidence = evidence;
}

/* The status of one without findings, and why. */
static const struct sentence *weigh(struct judge *j, struct verdict_hypothesis *h) {
    enum verdict_hypothesis_id id = h->id;
    const struct verdict_coverage *c = &j->v->coverage;
    const struct sentence *why =
        applies(j, id) || j->r->doubts[id] || !c->complete || !c->ended || j->stale ? missing(j, id)
                                                                                    : NULL;
    h->status = VERDICT_STATUS_INCONCLUSIVE;
    if (why && (applies(j, id) || j->r->doubts[id] || id != HYPOTHESIS_STALE_BINARY))
        return why;
    if (!applies(j, id)) {
        h->status = VERDICT_STATUS_NOT_APPLICABLE;
        return not_applicable(j, id);
    }
    h->status = VERDICT_STATUS_RULED_OUT;
    return ruled_out(j, id, h->checked);
}

void weigh_hypothesis(struct judge *j, enum verdict_hypothesis_id id) {
    struct verdict_hypothesis *h = &j->v->hypothesis[id];
    struct replay *r = j->r;
    *h = (struct verdict_hypothesis){ .id = id, .checked = r->checked[id] };
    collect_evidence(j, h);
    if (h->findings)
        h->status = VERDICT_STATUS_CONFIRMED;
    else
        h->said = weigh(j, h);
    if (h->findings > 1)
        h->said = SAY(&r->words, MORE_LIKE_IT, A_SENTENCE(h->said), A_NUMBER(h->findings - 1));
    h->said = judge_keep(j, h->said);
    h->text = sentence_text(LANG_EN, h->said);
}
