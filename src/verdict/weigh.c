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
static const char *missing_footprints(struct judge *j, enum verdict_hypothesis_id id) {
    struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    uint64_t n = inexact_launches(c);
    switch (id) {
    case HYPOTHESIS_STREAM_UNSYNCED:
        return r->unknown_beside
                   ? actors_text(r, j->a,
                                 "operations ran beside kernels of which nothing is known "
                                 "(%" PRIu64 " launches)",
                                 c->launches_unknown)
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
    return n ? actors_text(r, j->a,
                           "the bytes that %" PRIu64 " of %" PRIu64 " launches touch are not "
                           "known",
                           n, c->launches)
             : NULL;
}

static bool is_about_order(enum verdict_hypothesis_id id) {
    return id == HYPOTHESIS_STREAM_UNSYNCED || id == HYPOTHESIS_OVERLAPPING_COPIES ||
           id == HYPOTHESIS_STAGING_REUSE;
}

/* Why it cannot be ruled out; NULL: it can. */
static const char *missing(struct judge *j, enum verdict_hypothesis_id id) {
    struct replay *r = j->r;
    const struct verdict_coverage *c = &j->v->coverage;
    if (j->stale && id != HYPOTHESIS_STALE_BINARY)
        return "not judged: this is not the binary, or the model, that was expected";
    if (r->doubts[id])
        return r->doubts[id] > 1
                   ? actors_text(r, j->a, "%s (%" PRIu64 " cases)", r->doubt[id], r->doubts[id])
                   : r->doubt[id];
    if (needs[id] & HISTORY && (!c->complete || !c->ended))
        return c->gaps;
    if (needs[id] & END && !c->ended)
        return "the program did not come to its end";
    if (needs[id] & FOOTPRINTS) {
        const char *why = missing_footprints(j, id);
        if (why)
            return why;
    }
    if (is_about_order(id) && c->pairs_by_time)
        return actors_text(r, j->a,
                           "%" PRIu64 " pairs are ordered only by when the program's threads "
                           "happened to run",
                           c->pairs_by_time);
    if (is_about_order(id) && saturated(r))
        return "there are more different ranges than can be followed";
    if (id == HYPOTHESIS_HOST_BUFFER_LIFETIME && r->registered_async &&
        !*judge_fact(r, "run.recorder"))
        return "frees of registered memory are only seen by greta_audit run";
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

static const char *ruled_out_text(struct judge *j, enum verdict_hypothesis_id id,
                                  uint64_t checked) {
    struct replay *r = j->r;
    const char *more = "";
    if (id == HYPOTHESIS_UNCHECKED_ERROR && !checked)
        return actors_text(r, j->a, "none of %" PRIu64 " calls failed", r->calls);
    if (is_about_order(id) && !*judge_fact(r, "env.GCORE_WATCH_HOST"))
        more = "; what the host's own code reads and writes was not watched (--watch-host)";
    else if (needs[id] & FOOTPRINTS && r->is_soft && inexact_launches(&j->v->coverage))
        more = "; the software device checked every access of the kernels";
    const struct hypothesis_words *w = hypothesis_words(LANG_EN, id);
    char counted[160];
    return actors_text(r, j->a, "%s: %s%s", w->refutes,
                       sentence_count(w->counted, checked, counted, sizeof counted), more);
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
            h->text = f->text;
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

void weigh_hypothesis(struct judge *j, enum verdict_hypothesis_id id) {
    struct verdict_hypothesis *h = &j->v->hypothesis[id];
    struct replay *r = j->r;
    *h = (struct verdict_hypothesis){ .id = id, .checked = r->checked[id], .text = "" };
    collect_evidence(j, h);
    if (h->findings) {
        h->status = VERDICT_STATUS_CONFIRMED;
        if (h->findings > 1)
            h->text = actors_text(r, j->a, "%s (and %" PRIu64 " more)", h->text, h->findings - 1);
        return;
    }
    const char *why = applies(j, id) || r->doubts[id] ? missing(j, id) : NULL;
    if (!applies(j, id) && !why) {
        h->status = j->v->coverage.complete && j->v->coverage.ended && !j->stale
                        ? VERDICT_STATUS_NOT_APPLICABLE
                        : VERDICT_STATUS_INCONCLUSIVE;
        h->text =
            h->status == VERDICT_STATUS_NOT_APPLICABLE
                ? actors_text(r, j->a, "does not apply: %s", hypothesis_words(LANG_EN, id)->absent)
                : missing(j, id);
        if (id == HYPOTHESIS_STALE_BINARY || !h->text) {
            h->status = VERDICT_STATUS_NOT_APPLICABLE;
            h->text =
                actors_text(r, j->a, "does not apply: %s", hypothesis_words(LANG_EN, id)->absent);
        }
    } else if (why) {
        h->status = VERDICT_STATUS_INCONCLUSIVE;
        h->text = why;
    } else {
        h->status = VERDICT_STATUS_RULED_OUT;
        h->text = ruled_out_text(j, id, h->checked);
    }
}
