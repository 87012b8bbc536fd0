/* weigh.c - puts one hypothesis to the test.
 *
 * A hypothesis is CONFIRMED by one finding. It is RULED_OUT only by proof: its checks found
 * nothing, and the recording has all that the checks would have needed to find something (the
 * `needs` column of hypotheses.def). Everything between is INCONCLUSIVE, with the reason. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <string.h>

enum need { NOTHING = 0, HISTORY = 1, FOOTPRINTS = 2, END = 4 };

static const uint8_t needs[HYPOTHESIS_COUNT] = {
#define HYPOTHESIS(name, needs, en, es) [HYPOTHESIS_##name] = needs,
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
};

enum { EVIDENCE_SHOWN = 16 };

static bool saturated(const struct replay *r) {
    for (size_t i = 0; i < r->space_count; i++)
        if (shadow_is_saturated(r->spaces[i]->shadow))
            return true;
    return false;
}

static uint64_t inexact_launches(const struct verdict_coverage *c) {
    return c->launches - c->launches_exact;
}

/* Why the bytes that kernels touch are not known well enough for this one; NULL: they are. */
static const struct sentence *missing_footprints(struct judge *j, enum verdict_hypothesis_id id) {
    struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    uint64_t n = inexact_launches(c);
    switch (id) {
    case HYPOTHESIS_STREAM_UNSYNCED:
        return r->unknown_beside ? SAY(&r->words, MISSING_BESIDE, A_NUMBER(c->launches_unknown))
                                 : NULL;
    case HYPOTHESIS_SHAPE_MISMATCH:
    case HYPOTHESIS_UNINITIALISED_READ:
        break;
    case HYPOTHESIS_USE_AFTER_FREE:
        n = r->is_soft ? 0 : c->launches_unknown;
        break;
    default: /* the software device checks every access itself */
        n = r->is_soft ? 0 : n;
    }
    return n ? SAY(&r->words, MISSING_BYTES, A_NUMBER(n), A_NUMBER(c->launches)) : NULL;
}

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
    if (needs[id] & FOOTPRINTS) {
        const struct sentence *why = missing_footprints(j, id);
        if (why)
            return why;
    }
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
        return c->copies > 1;
    case HYPOTHESIS_UPSTREAM_KERNEL_FAULT:
        return r->calls > 0;
    case HYPOTHESIS_SHAPE_MISMATCH:
        return c->launches > 0;
    case HYPOTHESIS_UNINITIALISED_READ:
        return r->checked[id] || c->launches;
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

static const struct sentence *ruled_out(struct judge *j, enum verdict_hypothesis_id id,
                                        uint64_t checked) {
    struct replay *r = j->r;
    enum sentence_id more = SENTENCE_NOTHING;
    if (id == HYPOTHESIS_UNCHECKED_ERROR && !checked)
        return SAY(&r->words, NONE_FAILED, A_NUMBER(r->calls));
    if (is_about_order(id) && !*judge_fact(r, "env.GCORE_WATCH_HOST"))
        more = SENTENCE_RULED_OUT_UNWATCHED;
    else if (needs[id] & FOOTPRINTS && r->is_soft && inexact_launches(&j->v->coverage))
        more = SENTENCE_RULED_OUT_CHECKED;
    return SAY(&r->words, RULED_OUT, A_COLUMN(id, refutes, 0), A_COLUMN(id, counted, checked),
               A_SENTENCE(sentence_plain(more)));
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
