/* matrix_summary.c - summary.json: the matrix as one JSON document (docs/summary.schema.json). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/output.h"
#include "greta_build.h"
#include "tools/audit/matrix.h"

enum { SUMMARY_VERSION = 1, ERRORS_MAX = 1000 };

const char *matrix_mode_result(const struct matrix_by_mode *b, const struct matrix_mode *mode) {
    if (b->errors)
        return "FAIL";
    bool all = b->done && b->done == mode->iterations;
    return all && !b->ends[MATRIX_UNJUDGED] ? "PASS" : "-";
}

static void put_time(struct json *j, const char *key, uint64_t wall_us, const char *form) {
    time_t t = (time_t)(wall_us / 1000000);
    struct tm tm;
    char text[64] = "";
    if (gmtime_r(&t, &tm))
        strftime(text, sizeof text, form, &tm);
    json_string(j, key, text);
}

static void put_command(struct json *j, const char *key, struct matrix *m,
                        const struct matrix_run *r) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        json_null(j, key);
        return;
    }
    matrix_print_command(m, r, out);
    fclose(out);
    json_string(j, key, text);
    free(text);
}

static void put_breakdown(struct json *j, const struct matrix *m, const struct matrix_total *t) {
    json_array_open(j, "breakdown");
    for (size_t i = 0; i < m->profile.mode_count; i++) {
        const struct matrix_mode *mode = &m->profile.modes[i];
        const struct matrix_by_mode *b = &t->modes[i];
        json_object_open(j, NULL);
        json_string(j, "mode", mode->name);
        json_u64(j, "iterations", mode->iterations);
        json_u64(j, "done", b->done);
        json_u64(j, "errors", b->errors);
        json_string(j, "result", matrix_mode_result(b, mode));
        json_bool(j, "recorded", mode->recorded);
        json_string(j, "settings", mode->environment);
        json_object_open(j, "ends");
        for (int end = 0; end < MATRIX_END_COUNT; end++)
            json_u64(j, matrix_end_word((enum matrix_end)end), b->ends[end]);
        json_object_close(j);
        json_object_close(j);
    }
    json_array_close(j);
}

static void put_hypotheses(struct json *j, const struct matrix_total *t) {
    static const char *const counts[] = { "confirmed", "ruled_out", "inconclusive",
                                          "not_applicable" };
    json_array_open(j, "hypotheses");
    for (int id = 0; id < HYPOTHESIS_COUNT; id++) {
        const struct matrix_by_hypothesis *b = &t->hypotheses[id];
        json_object_open(j, NULL);
        json_string(j, "name", hypothesis_name((enum verdict_hypothesis_id)id));
        json_string(j, "status",
                    verdict_status_name(matrix_status(t, (enum verdict_hypothesis_id)id)));
        json_u64(j, "checked", b->checked);
        json_u64(j, "findings", b->findings);
        json_object_open(j, "runs");
        for (int s = 0; s < 4; s++)
            json_u64(j, counts[s], b->runs[s]);
        json_object_close(j);
        json_string(j, "first_run", b->first ? b->first->id : NULL);
        json_object_close(j);
    }
    json_array_close(j);
}

static void put_schedules(struct json *j, const struct matrix_total *t) {
    json_array_open(j, "schedules");
    for (size_t i = 0; i < t->schedule_count; i++) {
        const struct matrix_by_schedule *s = &t->schedules[i];
        json_object_open(j, NULL);
        json_string(j, "schedule", s->name);
        json_u64(j, "runs", s->runs);
        json_u64(j, "errors", s->errors);
        json_array_open(j, "confirmed");
        for (int id = 0; id < HYPOTHESIS_COUNT; id++)
            if (s->confirmed >> id & 1)
                json_string(j, NULL, hypothesis_name((enum verdict_hypothesis_id)id));
        json_array_close(j);
        matrix_put_list(j, "shown_by", &s->shown_by);
        json_object_close(j);
    }
    json_array_close(j);
}

static void put_findings(struct json *j, struct matrix *m, const struct matrix_total *t) {
    json_array_open(j, "findings");
    for (size_t i = 0; i < t->finding_count; i++) {
        const struct matrix_finding *f = &t->findings[i];
        json_object_open(j, NULL);
        json_string(j, "hypothesis", hypothesis_name(f->hypothesis));
        json_string(j, "culprit", f->culprit);
        json_string(j, "site", f->site);
        json_string(j, "text", f->text);
        json_string(j, "advice", f->advice);
        json_u64(j, "runs", f->runs);
        json_u64(j, "root_cause_of", f->roots);
        json_string(j, "first_run", f->first->id);
        matrix_put_list(j, "schedules", &f->schedules);
        put_command(j, "repeat", m, f->first);
        json_object_close(j);
    }
    json_array_close(j);
}

static void put_errors(struct json *j, struct matrix *m, const struct matrix_total *t) {
    size_t shown = 0;
    json_array_open(j, "errors");
    for (size_t i = 0; i < m->run_count && shown < ERRORS_MAX; i++) {
        const struct matrix_run *r = &m->runs[i];
        if (!r->done || !matrix_end_is_error(r->end))
            continue;
        shown++;
        json_object_open(j, NULL);
        json_string(j, "run", r->id);
        json_string(j, "mode", r->mode->name);
        json_string(j, "end", matrix_end_word(r->end));
        json_u64(j, "exit_status", (uint64_t)r->exit_status);
        json_u64(j, "signal", (uint64_t)r->signal);
        json_double(j, "seconds", r->seconds);
        json_string(j, "schedule", r->schedule);
        json_u64(j, "seed", r->seed);
        json_string(j, "prompt", r->prompt);
        json_string(j, "last_line", r->last_line);
        put_command(j, "repeat", m, r);
        json_object_close(j);
    }
    json_array_close(j);
    json_u64(j, "errors_left_out", t->errors - shown);
}

static void put_provenance(struct json *j, const struct matrix *m, const struct matrix_total *t) {
    json_object_open(j, "provenance");
    json_string(j, "commit", t->commit);
    json_bool(j, "dirty", t->dirty);
    json_string(j, "build_id", t->build_id);
    json_string(j, "program", m->program);
    json_format(j, "program_hash", "%016" PRIx64, m->program_hash);
    json_array_open(j, "command");
    if (!m->o.command)
        json_string(j, NULL, m->program);
    for (char **word = m->o.command; word && *word; word++)
        json_string(j, NULL, *word);
    json_array_close(j);
    json_string(j, "device", m->device.soft ? "soft" : "hip");
    json_string(j, "device_name", m->device.name);
    json_u64(j, "device_count", (uint64_t)m->device.count);
    json_string(j, "runtime", m->device.library);
    json_string(j, "model", m->o.model);
    json_string(j, "model_hash", t->model_hash);
    json_string(j, "greta_version", GRETA_VERSION);
    json_string(j, "greta_commit", GRETA_BUILD_COMMIT);
    json_string(j, "expected_commit", m->o.expect_commit);
    json_string(j, "expected_model_hash", m->o.expect_model_hash);
    matrix_put_environment(j);
    json_object_close(j);
}

/* Messenger and culprit as the example's own report has them. */
static void put_node(struct json *j, const char *key, const struct json_node *n) {
    if (!n || n->type == JSON_NULL) {
        json_null(j, key);
        return;
    }
    switch (n->type) {
    case JSON_BOOL:
        json_bool(j, key, n->boolean);
        return;
    case JSON_NUMBER:
        if (n->whole)
            json_u64(j, key, n->u64);
        else
            json_double(j, key, n->number);
        return;
    case JSON_STRING:
        json_string(j, key, n->text);
        return;
    default:
        if (n->type == JSON_OBJECT)
            json_object_open(j, key);
        else
            json_array_open(j, key);
        for (const struct json_node *i = n->first; i; i = i->next)
            put_node(j, i->key, i);
        if (n->type == JSON_OBJECT)
            json_object_close(j);
        else
            json_array_close(j);
    }
}

static void put_actors(struct json *j, const struct matrix *m, const struct matrix_total *t) {
    char path[PATH_MAX];
    json_tree *tree = NULL;
    if (t->example) {
        matrix_run_path(m, t->example, "report.json", path);
        if (json_tree_open_file(&tree, path, NULL) != RC_OK)
            tree = NULL;
    }
    const struct json_node *root = tree ? json_tree_root(tree) : NULL;
    put_node(j, "messenger", json_tree_get(root, "messenger"));
    put_node(j, "culprit", json_tree_get(root, "culprit"));
    json_tree_close(&tree);
}

static void put_head(struct json *j, struct matrix *m, const struct matrix_total *t) {
    json_u64(j, "version", SUMMARY_VERSION);
    put_time(j, "date", m->start_wall_us, "%Y-%m-%d");
    json_string(j, "profile", m->profile.name);
    json_bool(j, "complete", t->complete);
    json_string(j, "verdict", verdict_overall_name(t->overall));
    json_string(j, "answer", t->answer);
    json_u64(j, "total_runs", m->run_count);
    json_u64(j, "done_runs", t->done);
    json_u64(j, "judged_runs", t->judged);
    json_u64(j, "total_errors", t->errors);
    json_bool(j, "expect_failure", m->o.expect_failure);
    put_time(j, "started", m->start_wall_us, "%Y-%m-%dT%H:%M:%SZ");
    put_time(j, "written", clock_wall_us(), "%Y-%m-%dT%H:%M:%SZ");
    json_double(j, "seconds", m->earlier_seconds + (double)(clock_now_ns() - m->begin_ns) / 1e9);
    json_string(j, "example", t->example ? t->example->id : NULL);
    if (t->example)
        put_command(j, "repeat", m, t->example);
    else
        json_null(j, "repeat");
    json_object_open(j, "lock");
    json_string(j, "path", m->lock_path);
    json_bool(j, "exclusive", m->profile.exclusive);
    json_object_close(j);
}

enum rc matrix_write_summary(struct matrix *m, const struct matrix_total *t, struct err *e) {
    char path[PATH_MAX];
    struct output f;
    snprintf(path, sizeof path, "%s/summary.json", m->folder);
    enum rc rc = output_open(&f, path, e);
    if (rc != RC_OK)
        return rc;
    struct json j = json_begin(f.file, 2);
    json_object_open(&j, NULL);
    put_head(&j, m, t);
    put_breakdown(&j, m, t);
    put_actors(&j, m, t);
    put_hypotheses(&j, t);
    put_schedules(&j, t);
    put_findings(&j, m, t);
    put_errors(&j, m, t);
    put_provenance(&j, m, t);
    json_object_close(&j);
    return output_close(&f, json_end(&j, e), e);
}
