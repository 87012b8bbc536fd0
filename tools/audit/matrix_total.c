/* matrix_total.c - all runs together: what was found, in how many of them, under which schedules.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json_tree.h"
#include "greta_build.h"
#include "tools/audit/matrix.h"

enum { SCHEDULES_SHOWN = 8, SCHEDULES_MAX = 64, FINDINGS_MAX = 500 };

static const char *keep(struct matrix *m, const char *text) {
    const char *copy = arena_copy_text(&m->arena, text, strlen(text));
    return copy ? copy : "";
}

static const char *format(struct matrix *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *format(struct matrix *m, const char *fmt, ...) {
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return keep(m, text);
}

static bool list_has(const struct matrix_list *l, const char *text) {
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->items[i], text))
            return true;
    return false;
}

static void remember_schedule(struct matrix_list *l, const struct matrix_run *r) {
    if (r->schedule && l->count < SCHEDULES_SHOWN && !list_has(l, r->schedule))
        (void)!matrix_list_add(l, r->schedule);
}

/* ---- findings ---- */

/* The number after a name; -1: none of that name. */
static int find_hypothesis(const char *name) {
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (!strcmp(name, hypothesis_name((enum verdict_hypothesis_id)id)))
            return id;
    return -1;
}

static const char *describe_culprit(struct matrix *m, const struct json_node *c) {
    const char *kernel = json_tree_text(c, "kernel"), *api = json_tree_text(c, "api");
    const char *argument = json_tree_text(c, "argument"), *tensor = json_tree_text(c, "tensor");
    if (!c || c->type != JSON_OBJECT)
        return "";
    return format(m, "%s%s%s%s%s%s%s", *kernel ? "kernel " : "",
                  *kernel ? kernel
                  : *api  ? api
                          : json_tree_text(c, "kind"),
                  *argument ? ", argument " : "", argument, *tensor ? " (tensor " : "", tensor,
                  *tensor ? ")" : "");
}

static struct matrix_finding *find_finding(struct matrix_total *t, struct matrix *m, int hypothesis,
                                           const struct json_node *f) {
    const struct json_node *culprit = json_tree_get(f, "culprit");
    const char *what = describe_culprit(m, culprit), *site = json_tree_text(culprit, "site");
    const char *key = format(m, "%d|%s|%s", hypothesis, what, site);
    for (size_t i = 0; i < t->finding_count; i++)
        if (!strcmp(t->findings[i].key, key))
            return &t->findings[i];
    if (t->finding_count == FINDINGS_MAX)
        return NULL;
    struct matrix_finding *more =
        grow_array(t->findings, &t->finding_room, t->finding_count, sizeof *more);
    if (!more)
        return NULL;
    t->findings = more;
    struct matrix_finding *new = &t->findings[t->finding_count++];
    *new = (struct matrix_finding){ .hypothesis = (enum verdict_hypothesis_id)hypothesis,
                                    .culprit = what,
                                    .site = keep(m, site),
                                    .text = keep(m, json_tree_text(f, "text")),
                                    .advice = keep(m, json_tree_text(f, "advice")),
                                    .key = key };
    return new;
}

static void add_findings(struct matrix_total *t, struct matrix *m, const struct matrix_run *r,
                         const struct json_node *report) {
    const struct json_node *all = json_tree_get(report, "findings");
    bool caused = !strcmp(json_tree_text(report, "verdict"), "ROOT_CAUSE");
    for (const struct json_node *f = all ? all->first : NULL; f; f = f->next) {
        bool main = f == all->first, root = main && caused;
        int id = find_hypothesis(json_tree_text(f, "hypothesis"));
        struct matrix_finding *found = id >= 0 ? find_finding(t, m, id, f) : NULL;
        if (!found || found->last == r->number) /* one run shows a bug once */
            continue;
        found->last = r->number;
        if (main && (!found->answer || (root && !found->roots)))
            found->answer = keep(m, json_tree_text(report, "answer"));
        if (root && found->roots++ == 0)
            found->first_root = r;
        if (!found->first)
            found->first = r;
        remember_schedule(&found->schedules, r);
        found->runs++;
    }
}

/* ---- hypotheses and schedules ---- */

static struct matrix_by_schedule *find_schedule(struct matrix_total *t, struct matrix *m,
                                                const struct matrix_run *r) {
    if (!r->schedule)
        return NULL;
    const char *name = format(m, "%.*s", (int)strcspn(r->schedule, ":"), r->schedule);
    for (size_t i = 0; i < t->schedule_count; i++)
        if (!strcmp(t->schedules[i].name, name))
            return &t->schedules[i];
    if (t->schedule_count == SCHEDULES_MAX)
        return NULL;
    t->schedules[t->schedule_count].name = name;
    return &t->schedules[t->schedule_count++];
}

/* Returns the confirmed ones as bits. */
static uint32_t add_hypotheses(struct matrix_total *t, const struct matrix_run *r,
                               const struct json_node *report) {
    const struct json_node *all = json_tree_get(report, "hypotheses");
    uint32_t confirmed = 0;
    for (const struct json_node *h = all ? all->first : NULL; h; h = h->next) {
        int id = find_hypothesis(json_tree_text(h, "name"));
        if (id < 0)
            continue;
        struct matrix_by_hypothesis *b = &t->hypotheses[id];
        b->checked += json_tree_u64(h, "checked");
        b->findings += json_tree_u64(h, "findings");
        for (int s = 0; s < 4; s++)
            if (!strcmp(json_tree_text(h, "status"), verdict_status_name((enum verdict_status)s)))
                b->runs[s]++;
        if (!strcmp(json_tree_text(h, "status"), "CONFIRMED")) {
            confirmed |= 1u << id;
            if (!b->first)
                b->first = r;
        }
    }
    return confirmed;
}

/* ---- runs ---- */

static void add_report(struct matrix_total *t, struct matrix *m, const struct matrix_run *r,
                       struct matrix_by_schedule *schedule) {
    char path[PATH_MAX];
    json_tree *tree = NULL;
    matrix_run_path(m, r, "report.json", path);
    if (!r->mode->recorded || json_tree_open_file(&tree, path, NULL) != RC_OK)
        return;
    const struct json_node *report = json_tree_root(tree);
    const struct json_node *from = json_tree_get(report, "provenance");
    for (int i = 0; i < 5; i++)
        t->by_overall[i] += !strcmp(json_tree_text(report, "verdict"),
                                    verdict_overall_name((enum verdict_overall)i));
    uint32_t confirmed = add_hypotheses(t, r, report);
    add_findings(t, m, r, report);
    if (schedule) {
        schedule->confirmed |= confirmed;
        if (confirmed)
            remember_schedule(&schedule->shown_by, r);
    }
    if (!t->judged++) {
        t->commit = keep(m, json_tree_text(from, "commit"));
        t->build_id = keep(m, json_tree_text(from, "build_id"));
        t->model_hash = keep(m, json_tree_text(from, "model_hash"));
        t->dirty = json_tree_bool(from, "dirty");
        t->example = r;
    }
    if (t->example->end == MATRIX_PASSED && r->end != MATRIX_PASSED)
        t->example = r; /* rather one that did not pass */
    json_tree_close(&tree);
}

static void add_run(struct matrix_total *t, struct matrix *m, const struct matrix_run *r) {
    struct matrix_by_mode *mode = &t->modes[r->mode - m->profile.modes];
    struct matrix_by_schedule *schedule = find_schedule(t, m, r);
    bool error = matrix_end_is_error(r->end);
    t->done++;
    t->errors += error;
    mode->done++;
    mode->errors += error;
    mode->ends[r->end]++;
    if (schedule) {
        schedule->runs++;
        schedule->errors += error;
    }
    add_report(t, m, r, schedule);
}

/* ---- the verdict ---- */

static int compare_findings(const void *a, const void *b) {
    const struct matrix_finding *x = a, *y = b;
    if (x->roots != y->roots)
        return x->roots < y->roots ? 1 : -1;
    if (x->runs != y->runs)
        return x->runs < y->runs ? 1 : -1;
    return x->first->number < y->first->number   ? -1
           : x->first->number > y->first->number ? 1
                                                 : strcmp(x->key, y->key);
}

static const char *name_schedules(struct matrix *m, const struct matrix_list *l) {
    char text[256] = "";
    for (size_t i = 0; i < l->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ", " : "",
                 l->items[i]);
    return keep(m, text);
}

/* ---- the first line -------------------------------------------------------------------------- */

/* The cause, as the run that shows it says, and how often it showed. */
static const struct sentence *say_finding(const struct matrix_total *t, struct matrix *m,
                                          const struct sentence *what) {
    const struct matrix_finding *f = &t->findings[0];
    const char *english = f->answer;
    if (!english || !*english)
        english = format(m, "%s %s: %s", verdict_overall_name(t->overall),
                         hypothesis_name(f->hypothesis), f->text);
    return SAY(&m->arena, MATRIX_FOUND, what ? A_SENTENCE(what) : A_NAME(english),
               A_NUMBER(f->runs), A_NUMBER(t->judged), A_NAME(t->example->id),
               A_NUMBER(f->schedules.count != 0), A_NAME(name_schedules(m, &f->schedules)),
               A_NUMBER(t->errors), A_NUMBER(t->done));
}

static size_t count_unjudged(const struct matrix_total *t, const struct matrix *m) {
    size_t unjudged = 0;
    for (size_t i = 0; i < m->profile.mode_count; i++)
        unjudged += t->modes[i].ends[MATRIX_UNJUDGED];
    return t->judged || !t->done ? unjudged : t->done;
}

static const struct sentence *say(const struct matrix_total *t, struct matrix *m,
                                  const struct sentence *what) {
    const struct sentence_value done = A_NUMBER(t->done);
    size_t unjudged = count_unjudged(t, m);
    if (t->overall == VERDICT_ROOT_CAUSE || t->overall == VERDICT_FINDINGS)
        return say_finding(t, m, what);
    if (t->errors)
        return SAY(&m->arena, MATRIX_UNEXPLAINED, A_NUMBER(t->errors), done);
    if (unjudged)
        return SAY(&m->arena, MATRIX_UNJUDGED, A_NUMBER(unjudged), done);
    if (!t->complete)
        return SAY(&m->arena, MATRIX_INTERRUPTED, done, A_NUMBER(m->run_count));
    return SAY(&m->arena, MATRIX_CLEAN, A_NAME(verdict_overall_name(t->overall)), done,
               A_NUMBER(t->judged));
}

const struct sentence *matrix_answer(const struct matrix_total *t, struct matrix *m,
                                     const struct sentence *what) {
    return sentence_keep(&m->arena, say(t, m, what));
}

static void decide(struct matrix_total *t, const struct matrix *m) {
    bool found =
        t->finding_count && (t->by_overall[VERDICT_ROOT_CAUSE] || t->by_overall[VERDICT_FINDINGS]);
    if (found) {
        bool root = t->findings[0].roots > 0;
        t->overall = root ? VERDICT_ROOT_CAUSE : VERDICT_FINDINGS;
        t->example = root ? t->findings[0].first_root : t->findings[0].first;
    } else if (t->errors || count_unjudged(t, m) || !t->complete) {
        t->overall = VERDICT_INCONCLUSIVE;
    } else {
        t->overall = m->o.expect_failure ? VERDICT_NOT_REPRODUCED : VERDICT_CLEAN;
    }
}

enum rc matrix_total(struct matrix_total *t, struct matrix *m, struct err *e) {
    *t = (struct matrix_total){
        .commit = GRETA_BUILD_COMMIT, .dirty = GRETA_BUILD_DIRTY, .build_id = "", .model_hash = ""
    };
    t->schedules = arena_alloc_array(&m->arena, SCHEDULES_MAX, sizeof *t->schedules);
    if (!t->schedules)
        return err_set(e, RC_MEMORY, "out of memory");
    for (size_t i = 0; i < m->run_count; i++)
        if (m->runs[i].done)
            add_run(t, m, &m->runs[i]);
    t->complete = t->done == m->run_count;
    if (t->finding_count)
        qsort(t->findings, t->finding_count, sizeof *t->findings, compare_findings);
    decide(t, m);
    const struct sentence *said = matrix_answer(t, m, NULL);
    if (!said)
        return err_set(e, RC_MEMORY, "out of memory");
    t->answer = sentence_text(LANG_EN, said);
    return RC_OK;
}

enum verdict_status matrix_status(const struct matrix_total *t, enum verdict_hypothesis_id id) {
    const struct matrix_by_hypothesis *b = &t->hypotheses[id];
    if (b->runs[VERDICT_STATUS_CONFIRMED])
        return VERDICT_STATUS_CONFIRMED;
    if (b->runs[VERDICT_STATUS_INCONCLUSIVE])
        return VERDICT_STATUS_INCONCLUSIVE;
    if (b->runs[VERDICT_STATUS_RULED_OUT])
        return VERDICT_STATUS_RULED_OUT;
    return b->runs[VERDICT_STATUS_NOT_APPLICABLE] ? VERDICT_STATUS_NOT_APPLICABLE
                                                  : VERDICT_STATUS_INCONCLUSIVE;
}

void matrix_total_close(struct matrix_total *t) {
    for (size_t i = 0; i < t->finding_count; i++)
        free(t->findings[i].schedules.items);
    for (size_t i = 0; i < t->schedule_count; i++)
        free(t->schedules[i].shown_by.items);
    free(t->findings);
    t->findings = NULL;
}
