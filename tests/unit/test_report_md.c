/* The Markdown report: its layout in both languages, and that a recording's strings stay text. */
#include "report/md.h"
#include "report/report_md.h"
#include "unit/test_report.h"

static char *render(const verdict *v, const reader *r, const struct report_md_options *o) {
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_md(out, v, r, o, &e), RC_OK);
    fclose(out);
    return text;
}

static char *render_sample(const struct report_md_options *o) {
    struct sample n = sample_record();
    struct sample_verdict s;
    reader *r = open_reader();
    char *text = render(sample_judge(&s, &n), r, o);
    reader_close(&r);
    return text;
}

/* Fails unless all are there, in this order. */
static void assert_order(const char *text, const char *const *words) {
    const char *at = text;
    for (; *words; words++) {
        const char *found = strstr(at, *words);
        if (!found)
            fail_msg("'%s' is missing or too early in:\n%s", *words, text);
        at = found;
    }
}

static void sections_come_in_the_layout_of_audit_reports(void **state) {
    (void)state;
    char *text = render_sample(NULL);
    static const char *const order[] = { "# ROOT_CAUSE SHAPE_MISMATCH: gemm_k reads",
                                         "**Status:** ROOT_CAUSE",
                                         "**Date:** 2026-02-07 00:00:00 UTC",
                                         "**Commit:** `0123456789abcdef`",
                                         "## Summary",
                                         "**ROOT_CAUSE SHAPE_MISMATCH",
                                         "## Setup",
                                         "### Hardware",
                                         "### Environment variables",
                                         "## Evidence",
                                         "## Hypotheses",
                                         "## Verdict",
                                         "### Status: ROOT_CAUSE",
                                         "## Next steps",
                                         "1. Compare \\*both\\* shapes",
                                         NULL };
    assert_order(text, order);
    assert_ptr_equal(strstr(text, "# ROOT_CAUSE"), text); /* the first line is the answer */
    assert_null(strstr(text, "Author"));
    assert_null(strstr(text, "Test matrix"));
    free(text);
}

static void spanish_has_the_same_sections(void **state) {
    (void)state;
    struct report_md_options o = { .lang = LANG_ES };
    char *text = render_sample(&o);
    static const char *const order[] = { "# ROOT_CAUSE SHAPE_MISMATCH: gemm_k lee 32 MiB de 8 MiB",
                                         "**Estado:** ROOT_CAUSE",
                                         "**Fecha:** 2026-02-07",
                                         "## Resumen",
                                         "## Configuración",
                                         "### Variables de entorno",
                                         "## Evidencia",
                                         "## Hipótesis",
                                         "## Veredicto",
                                         "## Próximos pasos",
                                         NULL };
    assert_order(text, order);
    assert_null(strstr(text, "## Summary"));
    assert_non_null(strstr(text, "\ngemm_k leyó 32 MiB de un búfer de 8 MiB\n"));
    assert_null(strstr(text, "gemm_k read"));
    free(text);
}

/* Every row of a table has as many cells as its head, whatever the cells hold. */
static void tables_keep_their_columns(void **state) {
    (void)state;
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        struct report_md_options o = { .lang = (enum lang)lang };
        char *text = render_sample(&o), *save = NULL;
        unsigned columns = 0, rows = 0;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            unsigned bars = 0;
            for (const char *c = line; *c; c++)
                bars += *c == '|' && (c == line || c[-1] != '\\');
            if (line[0] != '|') {
                columns = 0;
                continue;
            }
            if (columns && bars != columns)
                fail_msg("%u cells instead of %u: %s", bars - 1, columns - 1, line);
            columns = bars;
            rows++;
        }
        assert_true(rows > HYPOTHESIS_COUNT + 10);
        free(text);
    }
}

static void every_hypothesis_has_its_row(void **state) {
    (void)state;
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        struct report_md_options o = { .lang = (enum lang)lang };
        char *text = render_sample(&o), row[128];
        for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
            enum verdict_hypothesis_id id = (enum verdict_hypothesis_id)i;
            snprintf(row, sizeof row, "\n| %s<br>%s | **", hypothesis_name(id),
                     hypothesis_words((enum lang)lang, id)->question);
            assert_non_null(strstr(text, row));
            snprintf(row, sizeof row, "** | %d | ", 1000 + i);
            assert_non_null(strstr(text, row));
        }
        free(text);
    }
}

static void the_excerpt_marks_culprit_and_messenger(void **state) {
    (void)state;
    struct sample n = sample_record();
    struct sample_verdict s;
    reader *r = open_reader();
    char *text = render(sample_judge(&s, &n), r, NULL), line[64];
    snprintf(line, sizeof line, "\nC %u ", (unsigned)n.launch);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "\nM %u ", (unsigned)n.copy);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "\n* %u ", (unsigned)n.fault);
    assert_non_null(strstr(text, line));
    free(text);
    text = render(&s.v, NULL, NULL); /* without the recording there is none */
    assert_null(strstr(text, line));
    free(text);
    reader_close(&r);
}

static void strings_of_a_recording_stay_text(void **state) {
    (void)state;
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        struct report_md_options o = { .lang = (enum lang)lang };
        char *text = render_sample(&o);
        /* Outside of code, tags are escaped; the excerpt is in a fence that no line can close. */
        assert_null(strstr(text, "\n<"));
        assert_null(strstr(text, " <b>"));
        const char *fence = strstr(text, "```\n");
        assert_non_null(fence);
        const char *end = strstr(fence + 4, "\n```");
        assert_non_null(end);
        assert_null(strstr(end + 4, "```"));
        free(text);
    }
}

static void the_matrix_has_its_rows_and_total(void **state) {
    (void)state;
    static const struct report_matrix_row rows[] = {
        { "A", "Baseline", "GCORE_D2H_AUDIT=0", 50, 0, "PASS" },
        { "B", "Au|dit", "", 150, 3, "FAIL" },
    };
    struct report_md_options o = { .title = "B3.63 FINAL REPORT",
                                   .matrix = rows,
                                   .matrix_rows = 2 };
    char *text = render_sample(&o);
    static const char *const order[] = {
        "# B3.63 FINAL REPORT",
        "## Setup",
        "## Test matrix",
        "| A | Baseline | `GCORE_D2H_AUDIT=0` | 50 | 0 | PASS |",
        "| B | Au\\|dit | - | 150 | 3 | FAIL |",
        "| **Total** | - | - | **200** | **3** | **ROOT_CAUSE** |",
        "## Evidence",
        NULL,
    };
    assert_order(text, order);
    free(text);
}

static void a_clean_run_has_nothing_to_repair(void **state) {
    (void)state;
    struct sample n = sample_record();
    struct sample_verdict s;
    sample_judge(&s, &n);
    s.v.overall = VERDICT_CLEAN;
    s.v.answer = "CLEAN: nothing failed";
    s.v.answer_said = NULL;
    s.v.root = NULL;
    s.v.messenger = s.v.culprit = NULL;
    s.v.finding_count = 0;
    s.v.coverage.copies_d2h = 0;
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        struct report_md_options o = { .lang = (enum lang)lang };
        char *text = render(&s.v, NULL, &o);
        assert_non_null(strstr(text, lang_text((enum lang)lang, LANG_NEXT_NOTHING)));
        assert_null(strstr(text, lang_text((enum lang)lang, LANG_FINDINGS)));
        free(text);
    }
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    struct sample n = sample_record();
    struct sample_verdict s;
    sample_judge(&s, &n);
    s.v.coverage.complete = s.v.coverage.ended = false;
    s.v.coverage.overwritten = 77;
    struct arena words = { 0 };
    s.v.coverage.gaps_said = sentence_keep(&words, SAY(&words, GAP_OVERWRITTEN, A_NUMBER(77)));
    s.v.coverage.launches_unknown = 5;
    struct report_md_options o = { .lang = LANG_ES };
    char *text = render(&s.v, NULL, &o);
    assert_non_null(strstr(text, "\n- los primeros 77 eventos se sobrescribieron\n"));
    assert_non_null(strstr(text, "GCORE_RECORD_EVENTS"));
    assert_non_null(strstr(text, "--device soft"));
    free(text);
    arena_clear(&words);
}

static char *escaped(void (*f)(FILE *, const char *), const char *words) {
    static char text[256];
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    f(out, words);
    fclose(out);
    return text;
}

static void markup_is_escaped(void **state) {
    (void)state;
    assert_string_equal(escaped(md_text, "a|b <c> *d* SIZE_MISMATCH _e_ `f` [g]"),
                        "a\\|b \\<c\\> \\*d\\* SIZE_MISMATCH \\_e\\_ \\`f\\` \\[g\\]");
    assert_string_equal(escaped(md_text, "two\nlines\x1b\xff"), "two lines \xef\xbf\xbd");
    assert_string_equal(escaped(md_text, "se\xc3\xb1or \xc3"), "se\xc3\xb1or \xef\xbf\xbd");
    assert_string_equal(escaped(md_code, "a|b"), "`a|b`");
    assert_string_equal(escaped(md_code_cell, "a|b"), "`a\\|b`");
    assert_string_equal(escaped(md_code, "x``y"), "``` x``y ```");
    assert_string_equal(escaped(md_code, ""), "-");
}

/* "%s %u": the conversions of a text, in order. */
static void conversions(const char *text, char *out) {
    for (const char *p = text; (p = strchr(p, '%')); p++) {
        size_t n = 1 + strspn(p + 1, "0123456789.lzhj");
        strncat(out, p, n + 1);
        p += n;
    }
}

static void both_languages_take_the_same_arguments(void **state) {
    (void)state;
    for (int id = 0; id < LANG_TEXT_COUNT; id++) {
        char en[256] = "", es[256] = "";
        conversions(lang_text(LANG_EN, (enum lang_id)id), en);
        conversions(lang_text(LANG_ES, (enum lang_id)id), es);
        assert_string_equal(en, es);
        assert_true(*lang_text(LANG_ES, (enum lang_id)id));
    }
    enum lang lang = LANG_EN;
    assert_true(lang_parse("es", &lang));
    assert_int_equal(lang, LANG_ES);
    assert_false(lang_parse("fr", &lang));
    assert_int_equal(lang, LANG_ES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(sections_come_in_the_layout_of_audit_reports),
        record_test(spanish_has_the_same_sections),
        record_test(tables_keep_their_columns),
        record_test(every_hypothesis_has_its_row),
        record_test(the_excerpt_marks_culprit_and_messenger),
        record_test(strings_of_a_recording_stay_text),
        record_test(the_matrix_has_its_rows_and_total),
        record_test(a_clean_run_has_nothing_to_repair),
        record_test(what_is_missing_is_said),
        cmocka_unit_test(markup_is_escaped),
        cmocka_unit_test(both_languages_take_the_same_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
