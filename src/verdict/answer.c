/* answer.c - the overall verdict and the first line of every report. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <stdio.h>
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

static const char *name_of(struct judge *j, const struct verdict_actor *a) {
    struct replay *r = j->r;
    if (!a)
        return "nothing";
    const char *name = a->kernel ? actors_text(r, j->a, "the launch of %s", a->kernel) : a->api;
    if (a->tensor)
        name = actors_text(r, j->a, "%s of %s", name, a->tensor);
    return actors_text(r, j->a, "%s (event %" PRIu64 ")", name, a->event);
}

/* " (argument pos, step 0, layer 3)": of where the culprit is, what the sentence does not say. */
static const char *place_of(struct judge *j, const struct verdict_finding *f) {
    const struct verdict_actor *a = &f->culprit;
    char text[160] = "";
    size_t used = 0;
    if (a->argument && a->argument[0] != '#' && !strstr(f->text, "argument"))
        used = (size_t)snprintf(text, sizeof text, ", argument %.60s", a->argument);
    if (a->step >= 0)
        used += (size_t)snprintf(text + used, sizeof text - used, ", step %" PRId64, a->step);
    if (a->layer >= 0)
        used += (size_t)snprintf(text + used, sizeof text - used, ", layer %" PRId64, a->layer);
    return used ? actors_text(j->r, j->a, " (%s)", text + 2) : "";
}

static const char *root_answer(struct judge *j) {
    const struct verdict *v = j->v;
    const struct verdict_finding *f = v->root;
    const char *tail = "";
    if (v->messenger && v->messenger->status_code == RECORD_PENDING)
        tail = actors_text(j->r, j->a, "; the program ended in %s", name_of(j, v->messenger));
    else if (v->messenger && !v->messenger->status_code &&
             f->hypothesis == HYPOTHESIS_UNCHECKED_ERROR)
        tail = ""; /* its sentence says where the failure surfaced */
    else if (v->messenger && !v->messenger->status_code)
        tail = actors_text(j->r, j->a, "; it surfaced at %s", name_of(j, v->messenger));
    else if (v->messenger && v->messenger->event != f->culprit.event)
        tail = actors_text(j->r, j->a, "; %s only reported it", name_of(j, v->messenger));
    else if (v->messenger && v->messenger->kind != EVENT_REFUSED)
        tail = actors_text(j->r, j->a, "; it returned %s", v->messenger->status);
    return actors_text(j->r, j->a, "ROOT_CAUSE %s: %s%s%s", hypothesis_name(f->hypothesis), f->text,
                       place_of(j, f), tail);
}

static const char *unclear_answer(struct judge *j) {
    const struct verdict *v = j->v;
    const struct verdict_coverage *c = &v->coverage;
    if (j->stale)
        return actors_text(j->r, j->a, "STALE_BINARY: %s; not judged",
                           v->finding_count ? v->findings[0].text : "");
    if (!c->calls && !c->ended && c->exit_signal > 0)
        return actors_text(j->r, j->a, "INCONCLUSIVE: nothing to judge: %s", c->end);
    if (!c->calls)
        return "INCONCLUSIVE: nothing to judge: the program made no HIP call that could be "
               "recorded";
    if (j->unexplained && v->finding_count)
        return actors_text(j->r, j->a, "INCONCLUSIVE: %s", v->findings[0].text);
    if (j->unexplained)
        return "INCONCLUSIVE: the device failed, and the recording does not show why";
    if (!c->ended)
        return actors_text(j->r, j->a, "INCONCLUSIVE: %s, and there is no bug in it%s%s", c->end,
                           c->complete ? "" : "; ", c->complete ? "" : c->gaps);
    if (*c->gaps)
        return actors_text(j->r, j->a, "INCONCLUSIVE: no bug was found, but %s", c->gaps);
    return "INCONCLUSIVE: a call failed, and whether the program looked at that cannot be seen";
}

const char *answer_text(struct judge *j) {
    const struct verdict *v = j->v;
    unsigned count[4];
    count_statuses(v, count);
    switch (v->overall) {
    case VERDICT_ROOT_CAUSE:
        return root_answer(j);
    case VERDICT_FINDINGS:
        return actors_text(
            j->r, j->a, "FINDINGS %s: %s%s%s%s%s", hypothesis_name(v->findings[0].hypothesis),
            v->findings[0].text, place_of(j, &v->findings[0]),
            v->finding_count > 1
                ? actors_text(j->r, j->a, " (and %zu more findings)", v->finding_count - 1)
                : "",
            v->coverage.ended ? "" : "; ", v->coverage.end);
    case VERDICT_INCONCLUSIVE:
        return unclear_answer(j);
    default:
        return actors_text(
            j->r, j->a, "%s: %s; %u hypotheses ruled out, %u do not apply, %u undecided",
            verdict_overall_name(v->overall),
            v->overall == VERDICT_CLEAN ? "nothing failed and no bug was found"
                                        : "the failure did not happen and no bug was found",
            count[VERDICT_STATUS_RULED_OUT], count[VERDICT_STATUS_NOT_APPLICABLE],
            count[VERDICT_STATUS_INCONCLUSIVE]);
    }
}
