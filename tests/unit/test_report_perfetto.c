/* The Perfetto trace: tracks, slices that nest, arrows whose ends lie in slices, counters. */
#include "report/report_perfetto.h"
#include "unit/test_report.h"

static char *render(const verdict *v) {
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    reader *r = open_reader();
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_perfetto(out, v, r, &e), RC_OK);
    fclose(out);
    reader_close(&r);
    return text;
}

static char *render_sample(struct sample *n) {
    struct sample_verdict s;
    *n = sample_record();
    return render(sample_judge(&s, n));
}

/* The number after a key in a line; -1 if it has none. */
static double number(const char *line, const char *key) {
    char word[40];
    const char *end = strchr(line, '\n');
    snprintf(word, sizeof word, "\"%s\": ", key);
    const char *at = strstr(line, word);
    return at && (!end || at < end) ? strtod(at + strlen(word), NULL) : -1;
}

static bool line_has(const char *line, const char *word) {
    const char *end = strchr(line, '\n'), *at = strstr(line, word);
    return at && (!end || at < end);
}

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

static void threads_streams_and_memory_are_tracks(void **state) {
    (void)state;
    struct sample n;
    char *text = render_sample(&n);
    static const char *const parts[] = {
        "\"traceEvents\": [",      "\"process_name\"",      "\"thread_name\"",
        "\"name\": \"s1 0x51\"",   "\"name\": \"s2 0x52\"", "\"name\": \"gemm_k\"",
        "\"name\": \"hipMemcpy\"", "\"otherData\"",         "ROOT_CAUSE"
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no %s in:\n%s", parts[i], text);
    bool counter = false;
    for (const char *l = text; l; l = next_line(l))
        counter |= line_has(l, "\"ph\": \"C\"") && line_has(l, "device memory") &&
                   line_has(l, "\"bytes\": 8392704");
    assert_true(counter);
    free(text);
}

/* Both ends of every arrow lie in a slice of their track. */
static void arrows_touch_slices(void **state) {
    (void)state;
    struct sample n;
    char *text = render_sample(&n);
    unsigned starts = 0, ends = 0, culprit = 0;
    for (const char *l = text; l; l = next_line(l)) {
        bool start = line_has(l, "\"ph\": \"s\""), end = line_has(l, "\"ph\": \"f\"");
        if (!start && !end)
            continue;
        starts += start;
        ends += end;
        culprit += line_has(l, "culprit to messenger");
        bool inside = false;
        for (const char *s = text; s && !inside; s = next_line(s))
            inside = line_has(s, "\"ph\": \"X\"") && number(s, "pid") == number(l, "pid") &&
                     number(s, "tid") == number(l, "tid") && number(s, "ts") <= number(l, "ts") &&
                     number(l, "ts") < number(s, "ts") + number(s, "dur");
        if (!inside)
            fail_msg("an arrow in no slice: %.200s", l);
    }
    assert_int_equal(starts, 3); /* record to wait, launch to fault, culprit to messenger */
    assert_int_equal(ends, 3);
    assert_int_equal(culprit, 2);
    free(text);
}

/* On a track, a slice is inside another or beside it. */
static void slices_nest(void **state) {
    (void)state;
    struct sample n;
    char *text = render_sample(&n);
    for (const char *a = text; a; a = next_line(a)) {
        if (!line_has(a, "\"ph\": \"X\""))
            continue;
        double from = number(a, "ts"), to = from + number(a, "dur");
        assert_true(to > from);
        for (const char *b = text; b != a; b = next_line(b)) {
            if (!line_has(b, "\"ph\": \"X\"") || number(b, "pid") != number(a, "pid") ||
                number(b, "tid") != number(a, "tid"))
                continue;
            double left = number(b, "ts"), right = left + number(b, "dur");
            bool apart = right <= from + 1e-9 || to <= left + 1e-9;
            bool inside =
                (left <= from && to <= right + 1e-9) || (from <= left && right <= to + 1e-9);
            if (!apart && !inside)
                fail_msg("slices cross:\n%.160s\n%.160s", a, b);
        }
    }
    free(text);
}

static void a_call_that_never_returned_is_open(void **state) {
    (void)state;
    struct sample n = { 0 };
    struct sample_verdict s;
    writer *w = sample_writer();
    struct event e = { .kind = EVENT_SYNC,
                       .status = RECORD_PENDING,
                       .aux = event_aux(HIP_FN_hipDeviceSynchronize, 0) };
    n.launch = record_event(w, &e);
    record_close(&w);
    char *text = render(sample_judge(&s, &n));
    bool open = false;
    for (const char *l = text; l; l = next_line(l))
        open |= line_has(l, "\"ph\": \"B\"") && line_has(l, "hipDeviceSynchronize") &&
                line_has(l, "\"result\": \"pending\"");
    assert_true(open);
    free(text);
}

static void names_are_escaped(void **state) {
    (void)state;
    struct sample n;
    char *text = render_sample(&n);
    assert_non_null(strstr(text, "onerror=alert(1)>|`\\\"'&"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(threads_streams_and_memory_are_tracks),
        record_test(arrows_touch_slices),
        record_test(slices_nest),
        record_test(a_call_that_never_returned_is_open),
        record_test(names_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
