/* Two compared recordings as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "diff/diff.h"
#include "record/format.h"

static void print_event(FILE *out, char side, const char *text) {
    fprintf(out, "  %c: %s\n", side, *text ? text : "(has ended)");
}

static void print_place(FILE *out, const struct diff_lane *lane) {
    const struct diff_place *p = &lane->first;
    fprintf(out, "first difference: thread ");
    format_text(out, lane->name);
    fprintf(out, ", after %" PRIu64 " common events: %s\n", lane->common,
            p->change == DIFF_ONLY_A   ? "an event that only A has"
            : p->change == DIFF_ONLY_B ? "an event that only B has"
                                       : "the same place, another event");
    if (*p->text_before)
        fprintf(out, "  =: %s\n", p->text_before);
    print_event(out, 'A', p->text_a);
    print_event(out, 'B', p->text_b);
    for (size_t i = 0; i < p->field_count && i < 24; i++) {
        fprintf(out, "  %s: A ", p->fields[i].label);
        format_text(out, p->fields[i].a);
        fputs(", B ", out);
        format_text(out, p->fields[i].b);
        putc('\n', out);
    }
}

static void print_lane(FILE *out, const struct diff_lane *lane) {
    fputs("thread ", out);
    format_text(out, lane->name);
    if (!lane->thread_a || !lane->thread_b) {
        fprintf(out, ": only %c has it, %" PRIu64 " events\n", lane->thread_a ? 'A' : 'B',
                lane->thread_a ? lane->events_a : lane->events_b);
        return;
    }
    fprintf(out, " (A t%u, B t%u): ", lane->thread_a, lane->thread_b);
    if (lane->first.change == DIFF_SAME)
        fprintf(out, "the same %" PRIu64 " events\n", lane->events_a);
    else if (lane->aligned)
        fprintf(out, "%" PRIu64 " events common, %" PRIu64 " only in A, %" PRIu64 " only in B\n",
                lane->events_a - lane->only_a, lane->only_a, lane->only_b);
    else
        fprintf(out,
                "%" PRIu64 " common, then too different to be aligned: %" PRIu64
                " events in A, %" PRIu64 " in B\n",
                lane->common, lane->events_a - lane->common, lane->events_b - lane->common);
}

static void print_fact(FILE *out, const struct diff_fact *f) {
    fputs("  ", out);
    format_text(out, f->key);
    fputs(": A ", out);
    format_text(out, f->a ? f->a : "-");
    fputs(", B ", out);
    format_text(out, f->b ? f->b : "-");
    putc('\n', out);
}

void diff_text(FILE *out, const diff *d, const char *name_a, const char *name_b) {
    uint64_t events = 0;
    for (size_t i = 0; i < d->lane_count; i++)
        events += d->lanes[i].events_a;
    if (d->same)
        fprintf(out, "the same: %" PRIu64 " events of %zu threads\n", events, d->lane_count);
    else
        print_place(out, d->first);
    fputs("A: ", out);
    format_text(out, name_a);
    fputs("\nB: ", out);
    format_text(out, name_b);
    putc('\n', out);
    for (size_t i = 0; i < d->lane_count && !d->same; i++)
        print_lane(out, &d->lanes[i]);
    if (d->missing_a || d->missing_b)
        fprintf(out,
                "events that are missing and could not be compared: A %" PRIu64 ", B %" PRIu64 "\n",
                d->missing_a, d->missing_b);
    if (d->fact_count)
        fputs("provenance that differs:\n", out);
    for (size_t i = 0; i < d->fact_count; i++)
        print_fact(out, &d->facts[i]);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void event_json(struct json *j, const char *key, uint64_t seq, const char *text) {
    if (seq == EVENT_NO_SEQ) {
        json_null(j, key);
        return;
    }
    json_object_open(j, key);
    json_u64(j, "event", seq);
    json_string(j, "text", text);
    json_object_close(j);
}

static void place_json(struct json *j, const struct diff_lane *lane) {
    const struct diff_place *p = &lane->first;
    json_object_open(j, "first");
    json_string(j, "thread", lane->name);
    json_u64(j, "common", lane->common);
    json_string(j, "change", diff_change_name(p->change));
    json_string(j, "before", *p->text_before ? p->text_before : NULL);
    event_json(j, "a", p->a, p->text_a);
    event_json(j, "b", p->b, p->text_b);
    json_array_open(j, "fields");
    for (size_t i = 0; i < p->field_count; i++) {
        json_object_open(j, NULL);
        json_string(j, "field", p->fields[i].label);
        json_string(j, "a", p->fields[i].a);
        json_string(j, "b", p->fields[i].b);
        json_object_close(j);
    }
    json_array_close(j);
    json_object_close(j);
}

static void lane_json(struct json *j, const struct diff_lane *lane) {
    json_object_open(j, NULL);
    json_string(j, "thread", lane->name);
    json_u64(j, "thread_a", lane->thread_a);
    json_u64(j, "thread_b", lane->thread_b);
    json_u64(j, "events_a", lane->events_a);
    json_u64(j, "events_b", lane->events_b);
    json_u64(j, "common", lane->common);
    json_bool(j, "aligned", lane->aligned);
    json_u64(j, "only_a", lane->only_a);
    json_u64(j, "only_b", lane->only_b);
    json_string(j, "change", diff_change_name(lane->first.change));
    json_object_close(j);
}

enum rc diff_json(FILE *out, const diff *d, const char *name_a, const char *name_b, struct err *e) {
    struct json j = json_begin(out, 2);
    json_object_open(&j, NULL);
    json_bool(&j, "same", d->same);
    json_string(&j, "a", name_a);
    json_string(&j, "b", name_b);
    if (d->first)
        place_json(&j, d->first);
    else
        json_null(&j, "first");
    json_array_open(&j, "threads");
    for (size_t i = 0; i < d->lane_count; i++)
        lane_json(&j, &d->lanes[i]);
    json_array_close(&j);
    json_u64(&j, "missing_a", d->missing_a);
    json_u64(&j, "missing_b", d->missing_b);
    json_array_open(&j, "provenance");
    for (size_t i = 0; i < d->fact_count; i++) {
        json_object_open(&j, NULL);
        json_string(&j, "key", d->facts[i].key);
        json_string(&j, "a", d->facts[i].a);
        json_string(&j, "b", d->facts[i].b);
        json_object_close(&j);
    }
    json_array_close(&j);
    json_object_close(&j);
    return json_end(&j, e);
}
