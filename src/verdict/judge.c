/* judge.c - puts the hypotheses to the test and makes the verdict.
 *
 * A hypothesis is CONFIRMED by one finding. It is RULED_OUT only by proof: its checks found
 * nothing, and the recording has all that the checks would have needed to find something (the
 * `needs` column of hypotheses.def). Everything between is INCONCLUSIVE, with the reason.
 *
 * The root cause is the earliest finding that explains a failure; what the device itself said about
 * a fault beats what was inferred. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verdict/replay.h"

enum need { NOTHING = 0, HISTORY = 1, FOOTPRINTS = 2, END = 4 };

static const uint8_t needs[HYPOTHESIS_COUNT] = {
#define HYPOTHESIS(name, needs, question, confirms, refutes, counted) [HYPOTHESIS_##name] = needs,
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
};

enum { ALIVE_MAX = 20000, EVIDENCE_SHOWN = 16 };

struct whole {
    struct verdict v; /* first: what verdict_open() gives is a pointer to it */
    struct arena arena;
};

struct judge {
    struct replay *r;
    struct whole *w;
    struct verdict *v;
    struct arena *a;
    bool stale;       /* refuse to judge */
    bool failed;      /* something failed */
    bool unexplained; /* and nothing says why */
};

/* ---- leaks ----------------------------------------------------------------------------------- */

static bool can_leak(const struct block *b) {
    switch (b->family) {
    case DETAIL_FAMILY_REGISTERED:
    case DETAIL_FAMILY_IMPORTED:
    case DETAIL_FAMILY_SYMBOL:
    case DETAIL_FAMILY_UNKNOWN:
        return false;
    default:
        return !b->found;
    }
}

static void add_leak(struct judge *j, const struct space *s, const struct block *b) {
    struct replay *r = j->r;
    char who[160], bytes[32];
    struct found f = {
        .hypothesis = HYPOTHESIS_LEAK,
        .culprit = b->alloc,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = UINT64_MAX - 1, /* it is one when all is over */
        .argument = -1,
        .address = b->base,
        .len = b->bytes,
    };
    findings_set_block(r, &f, s, b, b->base);
    snprintf(f.text, sizeof f.text, "%s of %s was never freed",
             findings_call(r, b->alloc, who, sizeof who),
             findings_bytes(b->bytes, bytes, sizeof bytes));
    struct found *known = findings_add(r, &f);
    if (known && known->count > 1) {
        known->len += b->bytes;
        snprintf(known->text, sizeof known->text,
                 "%" PRIu64 " allocations from one place (first %s, %s in all) were never freed",
                 known->count, findings_call(r, known->culprit, who, sizeof who),
                 findings_bytes(known->len, bytes, sizeof bytes));
    }
}

static void check_leaks(struct judge *j) {
    struct replay *r = j->r;
    uint64_t alive = 0;
    bool stopped = false;
    r->checked[HYPOTHESIS_LEAK] = r->seen.allocations;
    for (size_t i = 0; i < r->space_count; i++) {
        struct space *s = r->spaces[i];
        for (struct range *at = rangemap_first(&s->live); at; at = rangemap_next(&s->live, at)) {
            const struct block *b = at->value;
            r->seen.alive += can_leak(b);
            r->seen.bytes_alive += can_leak(b) ? b->bytes : 0;
            if (!can_leak(b))
                continue;
            alive++;
            stopped |= s->stopped;
            if (s->ended && !s->stopped && !j->failed)
                add_leak(j, s, b);
        }
    }
    if (alive && (stopped || j->failed))
        findings_doubt(r, HYPOTHESIS_LEAK,
                       "the program stopped on an error; what was alive then need not be a leak");
}

static const char *fact(const struct replay *r, const char *key) {
    const char *value = reader_provenance_find(r->r, key);
    return value ? value : "";
}

/* ---- what the recording shows ---------------------------------------------------------------- */

static void collect_pending(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_coverage *c = &j->v->coverage;
    size_t count = 0;
    for (size_t i = 0; i < r->thread_count; i++)
        count += r->threads[i].seen && r->threads[i].last_pending;
    struct verdict_actor *pending = arena_alloc_array(j->a, count + 1, sizeof *pending);
    if (!pending) {
        r->no_memory = true;
        return;
    }
    c->pending_count = 0;
    for (size_t i = 0; i < r->thread_count; i++)
        if (r->threads[i].seen && r->threads[i].last_pending)
            pending[c->pending_count++] = actors_make(r, j->a, r->threads[i].last);
    c->pending = pending;
}

static void add_gap(char *out, size_t room, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add_gap(char *out, size_t room, const char *fmt, ...) {
    va_list args;
    size_t used = strlen(out);
    if (used)
        used += (size_t)snprintf(out + used, room - used, "; ");
    va_start(args, fmt);
    if (used < room)
        vsnprintf(out + used, room - used, fmt, args);
    va_end(args);
}

static void fill_coverage(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_coverage *c = &j->v->coverage;
    char gaps[500] = "";
    *c = r->seen;
    ends_fill(r, j->a, c);
    if (c->overwritten)
        add_gap(gaps, sizeof gaps, "the first %" PRIu64 " events were overwritten", c->overwritten);
    if (c->lost)
        add_gap(gaps, sizeof gaps, "%" PRIu64 " events found no room", c->lost);
    if (c->torn)
        add_gap(gaps, sizeof gaps, "%" PRIu64 " event%s torn", c->torn,
                c->torn > 1 ? "s are" : " is");
    if (c->cut || reader_info(r->r)->truncated)
        add_gap(gaps, sizeof gaps, "the file was cut");
    if (r->partial)
        add_gap(gaps, sizeof gaps, "the program also calls the runtime past the audit");
    if (r->foreign)
        add_gap(gaps, sizeof gaps, "memory was used whose allocation was not recorded");
    if (r->unfollowed)
        add_gap(gaps, sizeof gaps, "what %s does is not followed", r->unfollowed);
    if (reader_info(r->r)->lost_definitions)
        add_gap(gaps, sizeof gaps, "some names are lost");
    c->complete = !*gaps;
    if (!c->ended && c->end_event != EVENT_NO_SEQ)
        add_gap(gaps, sizeof gaps, "the history ends early, with event %" PRIu64, c->end_event);
    else if (!c->ended)
        add_gap(gaps, sizeof gaps, "there are no events");
    c->gaps = actors_text(r, j->a, "%s", gaps);
    collect_pending(j);
}

static void fill_provenance(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_provenance *p = &j->v->provenance;
    uint32_t count = reader_count(r->r, DEFINITION_PROVENANCE);
    struct verdict_fact *facts = arena_alloc_array(j->a, (size_t)count + 1, sizeof *facts);
    if (!facts) {
        r->no_memory = true;
        return;
    }
    for (uint32_t id = 1; id <= count; id++) {
        const struct provenance_value *v = reader_provenance(r->r, id);
        if (!v)
            continue;
        const char *value = reader_string(r->r, v->value);
        char *copy = arena_copy_text(j->a, value, strlen(value)); /* may be long */
        r->no_memory |= !copy;
        facts[p->fact_count++] =
            (struct verdict_fact){ actors_text(r, j->a, "%s", reader_string(r->r, v->key)),
                                   copy ? copy : "" };
    }
    p->facts = facts;
    struct stale_facts s;
    stale_describe(r, &s);
    p->commit = actors_text(r, j->a, "%s", s.commit);
    p->build_id = actors_text(r, j->a, "%s", s.build_id);
    p->model_hash = actors_text(r, j->a, "%s", s.model_hash);
    const char *command = fact(r, "run.command");
    char *copy = arena_copy_text(j->a, command, strlen(command));
    p->command = copy ? copy : "";
    r->no_memory |= !copy;
    p->dirty = s.dirty;
    if (r->options->expect_commit)
        p->expected_commit = actors_text(r, j->a, "%s", r->options->expect_commit);
    if (r->options->expect_build_id)
        p->expected_build_id = actors_text(r, j->a, "%s", r->options->expect_build_id);
    if (r->options->expect_model_hash)
        p->expected_model_hash = actors_text(r, j->a, "%s", r->options->expect_model_hash);
    const struct reader_info *i = reader_info(r->r);
    p->run_id = i->run_id;
    p->start_wall_us = i->start_wall_us;
    p->duration_ns = r->now_ns > i->start_ns ? r->now_ns - i->start_ns : 0;
}

/* ---- the root cause -------------------------------------------------------------------------- */

/* Is a the better explanation of the failure? */
static bool explains_better(const struct found *a, const struct found *b) {
    if (a->fault != b->fault)
        return a->fault;
    if (a->order != b->order)
        return a->order < b->order;
    return b->hypothesis == HYPOTHESIS_UNCHECKED_ERROR &&
           a->hypothesis != HYPOTHESIS_UNCHECKED_ERROR;
}

static const struct found *find_root(const struct replay *r) {
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

/* The findings, the root cause first. */
static void fill_findings(struct judge *j, const struct found *root) {
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
    for (size_t i = 0; i < n; i++) /* what another binary did wrong is not this one's */
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
    /* Who died in a call got the message there. */
    if (!v->messenger && root && root->fault && v->coverage.pending_count)
        v->messenger = &v->coverage.pending[0];
}

static void find_failures(struct judge *j) {
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

/* Failing calls that no hypothesis is about. */
static void remark_failures(struct judge *j) {
    struct replay *r = j->r;
    char who[160];
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];
        if (f->explained || f->sticky)
            continue;
        findings_remark(r, "%s failed with %s%s", findings_call(r, f->seq, who, sizeof who),
                        hip_error_name((hipError_t)f->status),
                        f->looked    ? "; the program asked about it"
                        : f->went_on ? "; the program went on"
                                     : "");
    }
    if (j->v->coverage.pairs_by_time)
        findings_remark(r,
                        "%" PRIu64 " pairs of operations are ordered only by when the program's "
                        "threads happened to run",
                        j->v->coverage.pairs_by_time);
}

/* ---- the hypotheses -------------------------------------------------------------------------- */

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
    if (id == HYPOTHESIS_HOST_BUFFER_LIFETIME && r->registered_async && !*fact(r, "run.recorder"))
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
    if (is_about_order(id) && !*fact(r, "env.GCORE_WATCH_HOST"))
        more = "; what the host's own code reads and writes was not watched (--watch-host)";
    else if (needs[id] & FOOTPRINTS && r->is_soft && inexact_launches(&j->v->coverage))
        more = "; the software device checked every access of the kernels";
    return actors_text(r, j->a, "%s: %" PRIu64 " %s%s", hypothesis_refutes(id), checked,
                       hypothesis_counted(id), more);
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

static void judge_hypothesis(struct judge *j, enum verdict_hypothesis_id id) {
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
        h->text = h->status == VERDICT_STATUS_NOT_APPLICABLE
                      ? "nothing in this run that it could be about"
                      : missing(j, id);
        if (id == HYPOTHESIS_STALE_BINARY || !h->text) {
            h->status = VERDICT_STATUS_NOT_APPLICABLE;
            h->text = "nothing was expected of the binary or the model";
        }
    } else if (why) {
        h->status = VERDICT_STATUS_INCONCLUSIVE;
        h->text = why;
    } else {
        h->status = VERDICT_STATUS_RULED_OUT;
        h->text = ruled_out_text(j, id, h->checked);
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void count_statuses(const struct verdict *v, unsigned count[4]) {
    memset(count, 0, 4 * sizeof *count);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        count[v->hypothesis[i].status]++;
}

static enum verdict_overall overall_of(struct judge *j) {
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
    if (v->messenger && v->messenger->event != f->culprit.event)
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

static const char *answer_of(struct judge *j) {
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

/* ---- blocks and remarks ---------------------------------------------------------------------- */

static void fill_blocks(struct judge *j) {
    struct replay *r = j->r;
    struct verdict *v = j->v;
    size_t room = v->finding_count;
    for (size_t i = 0; i < r->space_count; i++)
        room += r->spaces[i]->live.count;
    room = room < ALIVE_MAX ? room : ALIVE_MAX;
    struct verdict_block *out = arena_alloc_array(j->a, room + 1, sizeof *out);
    if (!out) {
        r->no_memory = true;
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < v->finding_count && n < room; i++)
        if (v->findings[i].block)
            out[n++] = *v->findings[i].block;
    for (size_t i = 0; i < r->space_count; i++) {
        const struct space *s = r->spaces[i];
        for (struct range *at = rangemap_first(&s->live); at && n < room;
             at = rangemap_next(&s->live, at))
            out[n++] = actors_block(r, j->a, at->value, s->process, space_name_at(s, at->addr));
    }
    v->blocks = out;
    v->block_count = n;
}

static void fill_remarks(struct judge *j) {
    struct replay *r = j->r;
    const char **out = arena_alloc_array(j->a, r->found.remark_count + 1, sizeof *out);
    if (!out) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < r->found.remark_count; i++)
        out[i] = actors_text(r, j->a, "%s", r->found.remarks[i]);
    j->v->remarks = out;
    j->v->remark_count = r->found.remark_count;
}

static void judge_all(struct judge *j) {
    struct replay *r = j->r;
    struct verdict *v = j->v;
    v->recording = actors_text(r, j->a, "%s", r->options->recording ? r->options->recording : "");
    r->checked[HYPOTHESIS_UPSTREAM_KERNEL_FAULT] = r->calls;
    j->stale = stale_check(r);
    ends_settle(r);
    find_failures(j);
    check_leaks(j);
    fill_coverage(j);
    fill_provenance(j);
    const struct found *root = j->stale ? NULL : find_root(r);
    fill_findings(j, root);
    remark_failures(j);
    fill_remarks(j);
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        judge_hypothesis(j, (enum verdict_hypothesis_id)id);
    v->overall = overall_of(j);
    v->answer = answer_of(j);
    fill_blocks(j);
}

enum rc judge_make(struct replay *r, verdict **out, struct err *e) {
    struct whole *w = calloc(1, sizeof *w);
    if (w) {
        struct judge j = { .r = r, .w = w, .v = &w->v, .a = &w->arena };
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
                              : judge_make(r, out, e);
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
