/* report_json.c - the verdict as one JSON document. docs/report.schema.json describes it; addresses
 * are strings "0x…", because not every reader of JSON has 64-bit numbers. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"

enum { REPORT_VERSION = 1 };

static void put_seq(struct json *j, const char *key, uint64_t seq) {
    if (seq == EVENT_NO_SEQ)
        json_null(j, key);
    else
        json_u64(j, key, seq);
}

static void put_number(struct json *j, const char *key, int64_t number) {
    if (number < 0)
        json_null(j, key);
    else
        json_i64(j, key, number);
}

static void put_stack(struct json *j, const char *key, const struct verdict_stack *s) {
    json_array_open(j, key);
    for (size_t i = 0; i < s->count; i++) {
        const struct verdict_frame *f = &s->frame[i];
        json_object_open(j, NULL);
        json_string(j, "function", f->function);
        json_string(j, "file", f->file);
        put_number(j, "line", f->line ? (int64_t)f->line : -1);
        json_bool(j, "inlined", f->inlined);
        json_string(j, "module", *f->module ? f->module : NULL);
        json_format(j, "offset", "0x%" PRIx64, f->offset);
        json_object_close(j);
    }
    json_array_close(j);
}

/* The place that the stack stands for, and all of it. */
static void put_place(struct json *j, const struct verdict_stack *s) {
    static const struct verdict_frame unknown;
    const struct verdict_frame *f = s->count ? &s->frame[s->where] : &unknown;
    json_string(j, "function", f->function);
    json_string(j, "file", f->file);
    put_number(j, "line", f->line ? (int64_t)f->line : -1);
    put_stack(j, "stack", s);
}

static void put_actor(struct json *j, const char *key, const struct verdict_actor *a) {
    if (!a) {
        json_null(j, key);
        return;
    }
    json_object_open(j, key);
    json_string(j, "api", *a->api ? a->api : NULL);
    json_string(j, "kernel", a->kernel);
    json_string(j, "symbol", a->symbol);
    json_string(j, "argument", a->argument);
    put_number(j, "argument_index", a->argument_index);
    put_seq(j, "event", a->event);
    json_string(j, "kind", event_kind_text(a->kind));
    json_string(j, "site", a->site);
    put_place(j, &a->stack);
    json_u64(j, "stream", a->stream);
    json_u64(j, "thread", a->thread);
    json_string(j, "status", *a->status ? a->status : NULL);
    json_u64(j, "t_ns", a->t_ns);
#define ACTOR_PUT_NAME                         json_string
#define ACTOR_PUT_NUMBER                       put_number
#define ACTOR(name, type, en, es, description) ACTOR_PUT_##type(j, #name, a->name);
#include "verdict/actor.def"
    if (a->replay)
        json_u64(j, "replay", a->replay);
    if (a->len || a->address)
        json_format(j, "address", "0x%" PRIx64, a->address);
    if (a->len) {
        json_u64(j, "bytes", a->len);
        json_bool(j, "writes", a->writes);
        json_string(j, "access", verdict_access_name(a->access));
    }
    json_object_close(j);
}

static void put_block(struct json *j, const char *key, const struct verdict_block *b) {
    if (!b) {
        json_null(j, key);
        return;
    }
    json_object_open(j, key);
    json_format(j, "address", "0x%" PRIx64, b->base);
    json_u64(j, "bytes", b->bytes);
    const struct event e = { .kind = EVENT_ALLOC, .aux = event_aux(0, b->family) };
    json_string(j, "family", event_detail_text(&e));
    json_string(j, "tensor", b->tensor);
    put_seq(j, "allocated", b->alloc);
    json_string(j, "allocated_at", b->alloc_site);
    put_stack(j, "allocated_stack", &b->alloc_stack);
    put_seq(j, "freed", b->free);
    json_string(j, "freed_at", b->free_site);
    put_stack(j, "freed_stack", &b->free_stack);
    json_object_close(j);
}

static void put_events(struct json *j, const char *key, const uint64_t *seq, size_t count) {
    json_array_open(j, key);
    for (size_t i = 0; i < count; i++)
        json_u64(j, NULL, seq[i]);
    json_array_close(j);
}

static void put_sentence(struct json *j, const char *key, const struct sentence *s);

static void put_value(struct json *j, const char *key, const struct sentence_value *v) {
    switch (v->type) {
    case SENTENCE_ADDRESS:
        json_format(j, key, "0x%" PRIx64, v->number);
        break;
    case SENTENCE_NAME:
        json_string(j, key, v->name);
        break;
    case SENTENCE_SAID:
        put_sentence(j, key, v->said);
        break;
    default:
        json_u64(j, key, v->number);
    }
}

/* The facts of a sentence by the names that sentence.def gives them. */
static void put_sentence(struct json *j, const char *key, const struct sentence *s) {
    if (!s) {
        json_null(j, key);
        return;
    }
    const char *names = sentence_names(s->id);
    json_object_open(j, key);
    json_string(j, "sentence", sentence_name(s->id));
    for (unsigned i = 0; i < s->count && *names; i++) {
        char name[32];
        size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        put_value(j, name, &s->value[i]);
        names += length + (names[length] == ',');
    }
    json_object_close(j);
}

static void put_finding(struct json *j, const struct verdict_finding *f) {
    json_object_open(j, NULL);
    json_string(j, "hypothesis", hypothesis_name(f->hypothesis));
    json_array_open(j, "also");
    for (int id = 0; id < HYPOTHESIS_COUNT; id++)
        if (f->also & 1u << id)
            json_string(j, NULL, hypothesis_name((enum verdict_hypothesis_id)id));
    json_array_close(j);
    json_string(j, "text", f->text);
    put_sentence(j, "facts", f->said);
    json_string(j, "advice", lang_advice(LANG_EN, f));
    bool named = f->culprit.event != EVENT_NO_SEQ || f->culprit.kernel;
    put_actor(j, "culprit", named ? &f->culprit : NULL);
    put_actor(j, "other", f->other);
    put_actor(j, "messenger", f->messenger);
    put_block(j, "memory", f->block);
    json_u64(j, "count", f->count);
    put_events(j, "evidence", f->evidence, f->evidence_count);
    json_object_close(j);
}

static void put_hypothesis(struct json *j, const struct verdict_hypothesis *h) {
    json_object_open(j, NULL);
    json_string(j, "name", hypothesis_name(h->id));
    json_string(j, "status", verdict_status_name(h->status));
    json_u64(j, "checked", h->checked);
    put_events(j, "evidence", h->evidence, h->evidence_count);
    json_string(j, "text", h->text);
    json_string(j, "question", hypothesis_words(LANG_EN, h->id)->question);
    json_u64(j, "findings", h->findings);
    json_object_close(j);
}

static void put_fidelity(struct json *j, const struct verdict_fidelity *f) {
    static const char *const kinds[] = { [VERDICT_EXACT] = "exact",
                                         [VERDICT_PRECISE] = "documented_precision",
                                         [VERDICT_APPROXIMATE] = "approximate" };
    json_object_open(j, "fidelity");
    json_u64(j, "launches", f->launches);
    for (unsigned k = 0; k < VERDICT_EXACTNESS_COUNT; k++) {
        json_object_open(j, kinds[k]);
        json_u64(j, "wave_instructions", f->kind[k].instructions);
        json_array_open(j, "instructions");
        for (size_t i = 0; i < f->kind[k].count; i++)
            json_string(j, NULL, f->kind[k].names[i]);
        json_array_close(j);
        json_object_close(j);
    }
    json_u64(j, "launches_followed", f->followed);
    json_u64(j, "reached_address", f->addresses);
    json_u64(j, "reached_branch", f->branches);
    json_array_open(j, "text");
    for (size_t i = 0; i < f->lines; i++)
        json_string(j, NULL, f->text[i]);
    json_array_close(j);
    json_object_close(j);
}

static void put_coverage(struct json *j, const struct verdict_coverage *c) {
    json_object_open(j, "coverage");
    json_u64(j, "events_lost", c->lost + c->torn + c->overwritten + c->cut);
    json_bool(j, "complete", c->complete);
    json_bool(j, "ended", c->ended);
    json_string(j, "gaps", c->gaps);
#define COVERAGE(name, where, en, es) json_u64(j, #name, c->name);
#include "verdict/coverage.def"
    json_string(j, "end", c->end && *c->end ? c->end : NULL);
    put_seq(j, "end_event", c->end ? c->end_event : EVENT_NO_SEQ);
    put_number(j, "exit_signal", c->exit_signal ? c->exit_signal : -1);
    put_number(j, "exit_status", c->exit_status);
    put_seq(j, "last_event", c->last_event);
    json_array_open(j, "pending");
    for (size_t i = 0; i < c->pending_count; i++)
        put_actor(j, NULL, &c->pending[i]);
    json_array_close(j);
    json_array_open(j, "ends");
    for (size_t i = 0; i < c->ends_count; i++)
        put_actor(j, NULL, &c->ends[i]);
    json_array_close(j);
    json_u64(j, "ends_left_out", c->ends_left_out);
    json_object_close(j);
}

static void put_provenance(struct json *j, const struct verdict_provenance *p) {
    json_object_open(j, "provenance");
    json_string(j, "commit", p->commit);
    json_bool(j, "dirty", p->dirty);
    json_string(j, "build_id", p->build_id);
    json_string(j, "model_hash", p->model_hash);
    json_string(j, "command", p->command);
    json_string(j, "expected_commit", p->expected_commit);
    json_string(j, "expected_build_id", p->expected_build_id);
    json_string(j, "expected_model_hash", p->expected_model_hash);
    json_format(j, "run_id", "%016" PRIx64, p->run_id);
    json_u64(j, "start_wall_us", p->start_wall_us);
    json_u64(j, "duration_ns", p->duration_ns);
    json_array_open(j, "facts"); /* a key may be there several times */
    for (size_t i = 0; i < p->fact_count; i++) {
        json_object_open(j, NULL);
        json_string(j, "key", p->facts[i].key);
        json_string(j, "value", p->facts[i].value);
        json_object_close(j);
    }
    json_array_close(j);
    json_object_close(j);
}

enum rc report_json(FILE *out, const verdict *v, struct err *e) {
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_u64(&j, "version", REPORT_VERSION);
    json_string(&j, "verdict", verdict_overall_name(v->overall));
    json_string(&j, "answer", v->answer);
    json_string(&j, "hypothesis",
                v->finding_count ? hypothesis_name(v->findings[0].hypothesis) : NULL);
    put_actor(&j, "messenger", v->messenger);
    put_actor(&j, "culprit", v->culprit);
    json_array_open(&j, "hypotheses");
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        put_hypothesis(&j, &v->hypothesis[i]);
    json_array_close(&j);
    json_array_open(&j, "findings");
    for (size_t i = 0; i < v->finding_count; i++)
        put_finding(&j, &v->findings[i]);
    json_array_close(&j);
    json_u64(&j, "findings_left_out", v->findings_left_out);
    json_array_open(&j, "remarks");
    for (size_t i = 0; i < v->remark_count; i++)
        json_string(&j, NULL, v->remarks[i]);
    json_array_close(&j);
    put_coverage(&j, &v->coverage);
    put_fidelity(&j, &v->fidelity);
    put_provenance(&j, &v->provenance);
    json_string(&j, "recording", v->recording);
    json_object_close(&j);
    return json_end(&j, e);
}
