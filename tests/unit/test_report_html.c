/* The HTML report: complete in itself, the recording's strings only ever text, its data packed so
 * that they can be unpacked; and the lives of memory blocks behind its map. */
#include "report/report_html.h"
#include "report/report_html_data.h"
#include "report/report_memory.h"
#include "unit/test_report.h"

static char *render(const verdict *v, const reader *r, const struct report_html_options *o) {
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_html(out, v, r, o, &e), RC_OK);
    fclose(out);
    assert_int_equal(strlen(text), size);
    return text;
}

static char *render_sample(void) {
    struct sample n = sample_record();
    struct sample_verdict s;
    reader *r = open_reader();
    char *text = render(sample_judge(&s, &n), r, NULL);
    reader_close(&r);
    return text;
}

static unsigned occurrences(const char *text, const char *word) {
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++)
        n++;
    return n;
}

static void the_page_has_its_parts(void **state) {
    (void)state;
    char *text = render_sample(), link[64];
    static const char *const parts[] = { "<!doctype html>",
                                         "<title>ROOT_CAUSE SHAPE_MISMATCH",
                                         "<p class=\"badge bad\">ROOT_CAUSE</p>",
                                         "id=\"messenger\"",
                                         "id=\"culprit\"",
                                         "id=\"timeline-canvas\"",
                                         "SIZE_MISMATCH<small>",
                                         "id=\"memory-canvas\"",
                                         "id=\"rows\"",
                                         "AMD Instinct | MI300X",
                                         "application/json",
                                         "function unpack",
                                         "</html>" };
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        at = strstr(at, parts[i]);
        if (!at)
            fail_msg("'%s' is missing or too early", parts[i]);
    }
    assert_null(strstr(text, "{{"));
    struct sample n = sample_record();
    snprintf(link, sizeof link, "href=\"#event-%u\"", (unsigned)n.launch);
    assert_true(occurrences(text, link) >= 2); /* from its own card and from the messenger's */
    free(text);
}

static void nothing_comes_from_a_network(void **state) {
    (void)state;
    char *text = render_sample();
    assert_null(strstr(text, "http:"));
    assert_null(strstr(text, "https:"));
    assert_null(strstr(text, "@import"));
    assert_non_null(strstr(text, "default-src 'none'"));
    free(text);
}

/* The hostile name is in the recording, in the verdict and in the provenance. */
static void strings_of_a_recording_stay_text(void **state) {
    (void)state;
    char *text = render_sample();
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "<b>\n"));
    assert_int_equal(occurrences(text, "<script"), 2);
    assert_int_equal(occurrences(text, "</script"), 2);
    assert_null(strstr(text, "<!--"));
    assert_true(occurrences(text, "&lt;img src=x onerror=alert(1)&gt;") >= 2);
    assert_true(occurrences(text, "\\u003cimg src=x") >= 1);
    free(text);
}

/* ---- the packed columns, read as html/data.js does ------------------------------------------ */

static unsigned char *from_base64(const char *text, size_t *size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strcspn(text, "\"");
    unsigned char *out = malloc(n + 3);
    *size = 0;
    for (size_t i = 0; i + 3 < n; i += 4) {
        uint32_t word = 0;
        unsigned bytes = 3;
        for (int k = 0; k < 4; k++) {
            const char *d = text[i + (size_t)k] == '=' ? NULL : strchr(digits, text[i + (size_t)k]);
            word = word << 6 | (d ? (uint32_t)(d - digits) : 0);
            bytes -= !d;
        }
        for (unsigned k = 0; k < bytes; k++)
            out[(*size)++] = (unsigned char)(word >> (16 - 8 * k));
    }
    return out;
}

/* The values of a column of the events; returns how many. */
static size_t column(const char *json, const char *name, uint64_t *out, size_t room) {
    char key[32];
    size_t size, n = 0, at = 0;
    snprintf(key, sizeof key, "\"%s\": \"", name);
    const char *text = strstr(strstr(json, "\"events\": {"), key);
    assert_non_null(text);
    unsigned char *bytes = from_base64(text + strlen(key), &size);
    for (uint64_t last = 0; at < size && n < room; n++) {
        uint64_t word = 0;
        for (unsigned shift = 0;; shift += 7) {
            word |= (uint64_t)(bytes[at] & 127) << shift;
            if (!(bytes[at++] & 128))
                break;
        }
        out[n] = last += word >> 1 ^ (0 - (word & 1));
    }
    assert_int_equal(at, size);
    free(bytes);
    return n;
}

static char *sample_json(struct sample *n, const struct report_html_options *o) {
    struct sample_verdict s;
    struct err e = { 0 };
    char *json = NULL;
    *n = sample_record();
    reader *r = open_reader();
    assert_int_equal(report_html_data(&json, sample_judge(&s, n), r, o, &e), RC_OK);
    reader_close(&r);
    return json;
}

static void columns_hold_the_events(void **state) {
    (void)state;
    struct sample n;
    uint64_t seq[32], kind[32], dst[32], src[32], layer[32], status[32];
    char *json = sample_json(&n, NULL);
    size_t count = column(json, "seq", seq, 32);
    assert_int_equal(column(json, "kind", kind, 32), count);
    assert_int_equal(column(json, "dst", dst, 32), count);
    assert_int_equal(column(json, "src", src, 32), count);
    assert_int_equal(column(json, "layer", layer, 32), count);
    assert_int_equal(column(json, "status", status, 32), count);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (seq[i] == n.copy) {
            assert_int_equal(kind[i], EVENT_COPY);
            assert_int_equal(dst[i], 0x7000);
            assert_int_equal(src[i], 0xa00000);
            assert_int_equal(status[i], hipErrorIllegalAddress);
            assert_int_equal(layer[i], 6); /* of the safe copy before it, plus one */
            found = true;
        }
        if (seq[i] == n.launch)
            assert_int_equal(layer[i], 0); /* unknown */
    }
    assert_true(found);
    free(json);
}

static void what_an_operation_touches_is_listed(void **state) {
    (void)state;
    struct sample n;
    uint64_t seq[32], touched_count[32], touched[32];
    char *json = sample_json(&n, NULL);
    size_t count = column(json, "seq", seq, 32), at = 0;
    assert_int_equal(column(json, "touchedCount", touched_count, 32), count);
    column(json, "touched", touched, 32);
    for (size_t i = 0; i < count; at += touched_count[i++])
        if (seq[i] == n.copy) {
            assert_int_equal(touched_count[i], 1);
            assert_int_equal(touched[at], 1); /* the second allocation */
        }
    free(json);
}

/* Of a recording that is too large, what matters stays. */
static void too_many_events_leave_the_actors(void **state) {
    (void)state;
    struct sample n = { 0 };
    struct sample_verdict s;
    struct err e = { 0 };
    static uint64_t seq[4096];
    char *json = NULL;
    writer *w = sample_writer();
    for (unsigned i = 0; i < 3000; i++) {
        struct event m = make_mark(i);
        uint64_t number = record_event(w, &m);
        if (i == 1500)
            n.launch = number;
        if (i == 2200)
            n.copy = number;
    }
    record_close(&w);
    reader *r = open_reader();
    struct report_html_options o = { .events_max = 400 };
    sample_judge(&s, &n);
    s.v.coverage.events = 3002;
    assert_int_equal(report_html_data(&json, &s.v, r, &o, &e), RC_OK);
    size_t count = column(json, "seq", seq, 4096);
    bool culprit = false, messenger = false, sorted = true;
    for (size_t i = 0; i < count; i++) {
        culprit |= seq[i] == n.launch;
        messenger |= seq[i] == n.copy;
        sorted &= !i || seq[i] > seq[i - 1];
    }
    assert_true(culprit && messenger && sorted);
    assert_true(count <= 400 && count > 200);
    assert_non_null(strstr(json, "\"omitted\": "));
    assert_null(strstr(json, "\"omitted\": 0,"));
    free(json);
    reader_close(&r);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void see(struct report_memory *m, reader *r, uint64_t seq, struct event e) {
    struct reader_event full = { .seq = seq, .event = e };
    report_memory_see(m, r, &full);
}

static void blocks_live_from_alloc_to_free(void **state) {
    (void)state;
    sample_record();
    reader *r = open_reader();
    struct report_memory m = { 0 };
    const struct event a = {
        .kind = EVENT_ALLOC, .dst = 0x1000, .len = 0x100, .aux = event_aux(0, 1)
    };
    const struct event t = { .kind = EVENT_NAME_RANGE, .dst = 0x1040, .len = 0x40, .name = 3 };
    const struct event f = {
        .kind = EVENT_FREE, .dst = 0x1000, .len = 0x100, .aux = event_aux(0, 1)
    };
    struct event failed = f;
    failed.status = 700;
    see(&m, r, 1, a);
    see(&m, r, 2, t);
    assert_int_equal(report_memory_find(&m, r, 0, 0x1000), 0);
    assert_int_equal(report_memory_find(&m, r, 0, 0x1050), 1); /* the tensor before its arena */
    assert_int_equal(report_memory_find(&m, r, 0, 0x1100), SIZE_MAX);
    assert_int_equal(report_memory_alive(&m, 1), 0x100);
    see(&m, r, 3, failed);
    assert_int_equal(report_memory_find(&m, r, 0, 0x1000), 0);
    see(&m, r, 4, f);
    assert_int_equal(report_memory_find(&m, r, 0, 0x1050), SIZE_MAX);
    assert_int_equal(m.blocks[0].end, 4);
    assert_int_equal(m.blocks[1].end, 4);
    assert_int_equal(report_memory_alive(&m, 1), 0);
    see(&m, r, 5, a);
    see(&m, r, 6, a); /* its free was lost */
    assert_int_equal(m.count, 4);
    assert_int_equal(m.blocks[2].end, 6);
    assert_int_equal(m.blocks[3].end, EVENT_NO_SEQ);
    report_memory_clear(&m);
    m.limit = 1;
    see(&m, r, 1, a);
    see(&m, r, 2, t);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.omitted, 1);
    assert_int_equal(report_memory_find(&m, r, 0, 0x1050), SIZE_MAX);
    report_memory_clear(&m);
    reader_close(&r);
}

static void the_page_speaks_spanish(void **state) {
    (void)state;
    struct sample n = sample_record();
    struct sample_verdict s;
    struct report_html_options o = { .lang = LANG_ES };
    reader *r = open_reader();
    char *text = render(sample_judge(&s, &n), r, &o);
    static const char *const parts[] = { "<html lang=\"es\">",
                                         "<title>ROOT_CAUSE SHAPE_MISMATCH: gemm_k lee 32 MiB",
                                         "Hallazgos",
                                         "<h2>Mensajero <small>",
                                         "lee 32 MiB en 0x100000",
                                         "gemm_k leyó 32 MiB de un búfer de 8 MiB",
                                         "\"words\": {" };
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        at = strstr(at, parts[i]);
        if (!at)
            fail_msg("'%s' is missing or too early", parts[i]);
    }
    assert_null(strstr(text, ">Findings<"));
    assert_null(strstr(text, "gemm_k read"));
    free(text);
    reader_close(&r);
}

/* Texts of the scripts are T('…') in their files. */
static void every_text_of_the_scripts_has_its_row(void **state) {
    (void)state;
    char *page = render_sample();
    unsigned found = 0;
    for (const char *at = page; (at = strstr(at, "T('")); at++) {
        char english[128];
        const char *own = "", *text;
        bool known = false;
        snprintf(english, sizeof english, "%.*s", (int)strcspn(at + 3, "'"), at + 3);
        for (unsigned i = 0; !known && lang_page_row(i, LANG_ES, &own, &text); i++)
            known = !strcmp(own, english);
        if (!known)
            fail_msg("lang.def has no LANG_PAGE(\"%s\", …)", english);
        found++;
    }
    assert_true(found > 30);
    free(page);
}

/* Both operations of a race have a card, with a way from one to the other. */
static void both_operations_of_a_race_have_a_card(void **state) {
    (void)state;
    struct sample n = sample_record();
    struct sample_verdict s;
    char link[64];
    sample_judge(&s, &n);
    struct verdict_actor other = s.messenger;
    s.v.root = NULL;
    s.v.messenger = s.finding.messenger = NULL;
    s.finding.other = &other;
    reader *r = open_reader();
    char *text = render(&s.v, r, NULL);
    const char *culprit = strstr(text, "id=\"culprit\""),
               *collides = strstr(text, "id=\"collides\"");
    assert_true(culprit && collides);
    snprintf(link, sizeof link, "href=\"#event-%u\"", (unsigned)n.copy);
    assert_non_null(strstr(culprit, link));
    assert_non_null(strstr(text, "\"other\": {\"event\":"));
    assert_non_null(strstr(text, "drawLink(g, from, other, 'collides')"));
    free(text);
    reader_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(the_page_has_its_parts),
        record_test(nothing_comes_from_a_network),
        record_test(strings_of_a_recording_stay_text),
        record_test(columns_hold_the_events),
        record_test(what_an_operation_touches_is_listed),
        record_test(too_many_events_leave_the_actors),
        record_test(blocks_live_from_alloc_to_free),
        record_test(the_page_speaks_spanish),
        record_test(every_text_of_the_scripts_has_its_row),
        record_test(both_operations_of_a_race_have_a_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
