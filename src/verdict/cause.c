/* cause.c - which of the findings is the root cause, and what failed without one.
 *
 * The root cause is the earliest finding that explains a failure; what the device itself said about
 * a fault beats what was inferred. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <stdlib.h>

/* Is a the better explanation of the failure? */
static bool explains_better(const struct found *a, const struct found *b) {
    if (a->fault != b->fault)
        return a->fault;
    if (a->order != b->order)
        return a->order < b->order;
    return b->hypothesis == HYPOTHESIS_UNCHECKED_ERROR &&
           a->hypothesis != HYPOTHESIS_UNCHECKED_ERROR;
}

const struct found *cause_find(const struct replay *r) {
    const struct found *root = NULL;
    for (size_t i = 0; i < r->found.count; i++) {
        const struct found *f = &r->found.at[i];
        bool named = f->culprit != EVENT_NO_SEQ || f->kernel;
        if (f->failed && named && (!root || explains_better(f, root)))
            root = f;
    }
    return root;
}

static int by_order(const void *a, const void *b) {
    const struct found *x = *(const struct found *const *)a, *y = *(const struct found *const *)b;
    return x->order < y->order ? -1 : x->order > y->order;
}

void cause_fill_findings(struct judge *j, const struct found *root) {
    struct replay *r = j->r;
    struct verdict *v = j->v;
    size_t n = r->found.count, at = 0;
    const struct found **list = arena_alloc_array(j->a, n + 1, sizeof *list);
    struct verdict_finding *out = arena_alloc_array(j->a, n + 1, sizeof *out);
    if (!list || !out) {
        r->no_memory = true;
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) /* bugs of a stale binary say nothing about the one expected */
        if (!j->stale || r->found.at[i].hypothesis == HYPOTHESIS_STALE_BINARY)
            list[kept++] = &r->found.at[i];
    n = kept;
    qsort(list, n, sizeof *list, by_order);
    if (root)
        out[at++] = actors_finding(r, j->a, root);
    for (size_t i = 0; i < n; i++)
        if (list[i] != root)
            out[at++] = actors_finding(r, j->a, list[i]);
    v->findings = out;
    v->finding_count = at;
    v->findings_left_out = j->stale ? 0 : r->found.left_out;
    v->root = root ? &out[0] : NULL;
    v->culprit = at && (out[0].culprit.event != EVENT_NO_SEQ || out[0].culprit.kernel)
                     ? &out[0].culprit
                     : NULL;
    v->messenger = at ? out[0].messenger : NULL;
    /* A program that died in a call got the message there: that call is the messenger. */
    if (!v->messenger && root && root->fault && v->coverage.pending_count)
        v->messenger = &v->coverage.pending[0];
}

void cause_find_failures(struct judge *j) {
    const struct replay *r = j->r;
    for (size_t i = 0; i < r->found.count; i++) {
        const struct found *f = &r->found.at[i];
        j->failed |= f->failed;
        j->unexplained |= f->failed && f->culprit == EVENT_NO_SEQ && !f->kernel;
    }
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];
        bool after_reset = f->sticky && !f->explained && f->seq != f->space->sticky;
        if (f->explained || (f->sticky && (after_reset || j->failed)))
            continue;
        j->failed |= f->sticky;
        j->unexplained |= f->sticky;
    }
}

/* What to do if the program was compiled for other GPUs, which hipcc does by itself where it finds
 * none. */
static void remark_missing_code(struct replay *r) {
    for (size_t i = 0; i < r->failure_count; i++)
        if (r->failures[i].status == hipErrorNoBinaryForGpu) {
            findings_note(r, sentence_plain(SENTENCE_NO_CODE_FOR_DEVICE));
            return;
        }
}

void cause_remark_failures(struct judge *j) {
    struct replay *r = j->r;
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];
        if (f->explained || f->sticky)
            continue;
        const struct sentence_value values[] = { A_SENTENCE(findings_event(r, f->seq)),
                                                 A_NAME(hip_error_name((hipError_t)f->status)) };
        findings_note(r, sentence_make(&r->words,
                                       f->looked    ? SENTENCE_CALL_FAILED_ASKED
                                       : f->went_on ? SENTENCE_CALL_FAILED_WENT_ON
                                                    : SENTENCE_CALL_FAILED,
                                       values, 2));
    }
    remark_missing_code(r);
    if (j->v->coverage.pairs_by_time) {
        findings_note(r, SAY(&r->words, PAIRS_BY_TIME, A_NUMBER(j->v->coverage.pairs_by_time)));
        findings_note(r, sentence_plain(SENTENCE_THREADS_SEEN));
    }
}
