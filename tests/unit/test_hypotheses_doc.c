/* Documents that repeat hypotheses.def say what it says: docs/hypotheses.md, the manual page and
 * the schemas. `test_hypotheses_doc --write`, in the source tree, writes all of them again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/document.h"
#include "unit/test.h"
#include "verdict/needs.h"
#include "verdict/verdict.h"

static void put_needs(FILE *out, int what) {
    static const struct {
        int need;
        const char *words;
    } all[] = {
        { HISTORY,
          "the whole history (no event lost, overwritten, cut off or made past the audit)" },
        { RUN, "the device's word that every launch ran to its end" },
        { CHECKED, "the device's word that it checked where every launch reads and writes" },
        { FOOTPRINTS, "the bytes that every kernel touches" },
        { RACES, "the device's word that it looked for races within every launch of machine code" },
        { BARRIERS, "the device's word that it looked whether all threads reach the barriers" },
        { HOST, "what the program's own code does to host memory of unfinished operations" },
        { END, "that the program came to its end in good order" },
    };
    const char *between = "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (what & all[i].need) {
            fprintf(out, "%s%s", between, all[i].words);
            between = "; ";
        }
    if (!what)
        fputs("nothing else", out);
}

/* What docs/hypotheses.md says of one before its examples. */
static char *section_of(enum verdict_hypothesis_id id) {
    const struct hypothesis_words *w = hypothesis_words(LANG_EN, id);
    char *text = NULL, counted[160];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    sentence_count(w->counted, 2, counted, sizeof counted);
    fprintf(out, "## %s\n\n%s\n\n- Confirmed by: %s.\n- Ruled out if: %s.\n- Counted: %s.\n",
            hypothesis_name(id), w->question, w->confirms, w->refutes, counted + 2);
    fprintf(out, "- Does not apply if: %s.\n- Ruling it out needs: ", w->absent);
    put_needs(out, needs[id]);
    fprintf(out, ".\n- Advice: %s\n", w->advice);
    fclose(out);
    return text;
}

static char *page_entries(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        fprintf(out, "%s.B %s\n%s\n", i ? ".TP\n" : "",
                hypothesis_name((enum verdict_hypothesis_id)i),
                hypothesis_words(LANG_EN, (enum verdict_hypothesis_id)i)->question);
    fclose(out);
    return text;
}

/* ---- writing them again ---------------------------------------------------------------------- */

/* The lines of a section that no row says: its examples. */
static void put_examples(FILE *out, const char *doc, const char *name) {
    char head[64];
    snprintf(head, sizeof head, "\n## %s\n", name);
    const char *at = strstr(doc, head), *end = at ? strstr(at + 1, "\n## ") : NULL;
    const char *examples = at ? strstr(at, "\n- Examples:") : NULL;
    if (!examples || (end && examples > end))
        return;
    fprintf(out, "%.*s\n", (int)strcspn(examples + 1, "\n"), examples + 1);
}

static void write_page_about_hypotheses(void) {
    static const char file[] = "docs/hypotheses.md";
    char *doc = document_read(file), *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const char *first = strstr(doc, "\n## ");
    fprintf(out, "%.*s", (int)(first ? first - doc : (long)strlen(doc)), doc);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        char *section = section_of((enum verdict_hypothesis_id)i);
        fprintf(out, "\n%s", section);
        put_examples(out, doc, hypothesis_name((enum verdict_hypothesis_id)i));
        free(section);
    }
    fclose(out);
    document_write(file, text);
    free(text);
    free(doc);
}

/* ---- manual page and schemas ----------------------------------------------------------------- */

static char *page_expected(const char *file) {
    static const struct document_place list = { ".SH HYPOTHESES\n", "\n.TP\n", ".SH " };
    char *entries = page_entries();
    char *page = document_replace(document_read(file), file, &list, entries);
    free(entries);
    return page;
}

/* The names as elements of a JSON array, one per line, and their number. */
static char *schema_expected(const char *file) {
    static const struct document_place names = { "\"hypothesis_name\"", "\"enum\": [",
                                                 "\n      ]" },
                                       least = { "\"hypotheses\"", "\"minItems\": ", "," },
                                       most = { "\"hypotheses\"", "\"maxItems\": ", "\n" };
    char *list = NULL, count[16];
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        fprintf(out, "%s\n        \"%s\"", i ? "," : "",
                hypothesis_name((enum verdict_hypothesis_id)i));
    fclose(out);
    snprintf(count, sizeof count, "%d", HYPOTHESIS_COUNT);
    char *text = document_replace(document_read(file), file, &names, list);
    text = document_replace(text, file, &least, count);
    text = document_replace(text, file, &most, count);
    free(list);
    return text;
}

static const struct page {
    const char *file;
    char *(*expected)(const char *file);
} documents[] = {
    { "docs/man/greta_audit.1", page_expected },
    { "docs/report.schema.json", schema_expected },
    { "docs/summary.schema.json", schema_expected },
};
enum { DOCUMENTS = sizeof documents / sizeof *documents };

static void write_all(void) {
    write_page_about_hypotheses();
    for (size_t i = 0; i < DOCUMENTS; i++) {
        char *text = documents[i].expected(documents[i].file);
        document_write(documents[i].file, text);
        free(text);
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const char again[] = "run `build/tests/test_hypotheses_doc --write` in the source tree";

static void the_page_about_hypotheses_says_what_the_rows_say(void **state) {
    (void)state;
    char *doc = document_read("docs/hypotheses.md");
    unsigned sections = 0;
    for (const char *at = doc; (at = strstr(at, "\n## ")); at++)
        sections++;
    assert_int_equal(sections, HYPOTHESIS_COUNT);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        char *section = section_of((enum verdict_hypothesis_id)i);
        if (!strstr(doc, section))
            fail_msg("docs/hypotheses.md differs from the row; %s. Expected:\n%s", again, section);
        free(section);
    }
    free(doc);
}

static void manual_page_and_schemas_list_every_hypothesis(void **state) {
    (void)state;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        char *now = document_read(documents[i].file);
        char *expected = documents[i].expected(documents[i].file);
        if (strcmp(now, expected) != 0)
            fail_msg("%s differs from the rows; %s", documents[i].file, again);
        free(expected);
        free(now);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_about_hypotheses_says_what_the_rows_say),
        cmocka_unit_test(manual_page_and_schemas_list_every_hypothesis),
    };
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        write_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
