/* Reports in Spanish: of what lang.def has in both languages, nothing is left in English. */
#include <ctype.h>
#include <inttypes.h>

#include "report/report.h"
#include "report/report_html.h"
#include "report/report_md.h"
#include "unit/test_report.h"

static const char *const rows[][LANG_COUNT] = {
#define LANG_TEXT(id, en, es)         { en, es },
#define LANG_OVERALL(overall, en, es) { en, es },
#define LANG_PAGE(en, es)             { en, es },
#include "report/lang.def"
};

/* What stands in code spans, code blocks and scripts is the program's or the recording's. */
static void cut(char *text, const char *from, const char *to) {
    for (char *at = text; (at = strstr(at, from));) {
        char *end = strstr(at + strlen(from), to);
        size_t length = end ? (size_t)(end - at) + strlen(to) : strlen(at);
        memset(at, ' ', length);
        at += length;
    }
}

static bool is_word(const char *text, const char *at, size_t length) {
    return (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]);
}

static const char *find_label(const char *text, const char *label) {
    size_t length = strlen(label);
    for (const char *at = text; (at = strstr(at, label)); at++)
        if (is_word(text, at, length))
            return at;
    return NULL;
}

/* Some Spanish texts have words that are English, too ("error"). */
static bool is_spanish_too(const char *label) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i][LANG_ES], label))
            return true;
    return false;
}

static unsigned count_english(const char *format, const char *text, bool fails) {
    unsigned found = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *label = rows[i][LANG_EN];
        const char *at = strlen(label) < 4 || strchr(label, '%') || is_spanish_too(label)
                             ? NULL
                             : find_label(text, label);
        found += at != NULL;
        if (at && fails)
            fail_msg("%s has the English '%s' at: %.80s", format, label, at);
    }
    return found;
}

static char *render(unsigned format, enum lang lang) {
    struct sample n = sample_record();
    struct sample_verdict s;
    const verdict *v = sample_judge(&s, &n);
    s.messenger.status_code = RECORD_PENDING;
    s.messenger.status = "pending";
    s.messenger.kind = EVENT_EARLY_HOST_ACCESS;
    s.messenger.api = "host access";
    reader *r = open_reader();
    char *text = NULL;
    size_t size = 0;
    struct err e = { 0 };
    FILE *out = open_memstream(&text, &size);
    enum rc rc = format == 0 ? report_text(out, v,
                                           &(struct report_text_options){
                                               .lang = lang, .verbose = true, .stacks = true },
                                           &e)
                 : format == 1
                     ? report_md(out, v, r, &(struct report_md_options){ .lang = lang }, &e)
                     : report_html(out, v, r, &(struct report_html_options){ .lang = lang }, &e);
    assert_int_equal(rc, RC_OK);
    fclose(out);
    reader_close(&r);
    cut(text, "```", "```");
    cut(text, "`", "`");
    cut(text, "<code>", "</code>");
    cut(text, "<style", "</style>");
    cut(text, "<script", "</script>");
    cut(text, "<", ">"); /* attributes are no text */
    return text;
}

static void no_english_label_is_left_in_a_spanish_report(void **state) {
    static const char *const names[] = { "text", "Markdown", "HTML" };
    (void)state;
    for (unsigned format = 0; format < 3; format++) {
        char *en = render(format, LANG_EN), *es = render(format, LANG_ES);
        assert_true(count_english(names[format], en, false) > 5); /* so they would be found */
        (void)count_english(names[format], es, true);
        free(en);
        free(es);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(no_english_label_is_left_in_a_spanish_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
