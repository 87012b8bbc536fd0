/* Documents that repeat hypotheses.def say what it says: docs/hypotheses.md, the manual page and
 * the schemas. `test_hypotheses_doc --write`, in the source tree, writes the first two again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "unit/test.h"
#include "verdict/needs.h"
#include "verdict/verdict.h"

static const char *path_of(const char *file) {
    static char path[512];
    const char *top = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/%s", top ? top : ".", file);
    return path;
}

static char *read_doc(const char *file) {
    enum { MOST = 1 << 20 };
    FILE *in = fopen(path_of(file), "r");
    char *text = calloc(1, MOST);
    if (!in || !text || fread(text, 1, MOST - 1, in) == 0) {
        fprintf(stderr, "%s cannot be read\n", path_of(file));
        exit(1);
    }
    fclose(in);
    return text;
}

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
        fprintf(out, ".TP\n.B %s\n%s\n", hypothesis_name((enum verdict_hypothesis_id)i),
                hypothesis_words(LANG_EN, (enum verdict_hypothesis_id)i)->question);
    fclose(out);
    return text;
}

/* ---- writing them again ---------------------------------------------------------------------- */

static void write_doc(const char *file, const char *text) {
    FILE *out = fopen(path_of(file), "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0) {
        fprintf(stderr, "%s cannot be written\n", path_of(file));
        exit(1);
    }
}

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

static void write_all(void) {
    char *doc = read_doc("hypotheses.md"), *text = NULL;
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
    write_doc("hypotheses.md", text);
    free(text);
    free(doc);
    static const char head[] = ".SH HYPOTHESES\n";
    char *page = read_doc("man/greta_audit.1"), *entries = page_entries();
    char *at = strstr(page, head), *after = at ? strstr(at + 1, "\n.SH ") : NULL;
    at = at ? strstr(at, "\n.TP\n") : NULL;
    if (at && after) {
        out = open_memstream(&text, &size);
        fprintf(out, "%.*s%s%s", (int)(at + 1 - page), page, entries, after + 1);
        fclose(out);
        write_doc("man/greta_audit.1", text);
        free(text);
    }
    free(entries);
    free(page);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const char again[] = "run `build/tests/test_hypotheses_doc --write` in the source tree";

static void the_page_about_hypotheses_says_what_the_rows_say(void **state) {
    (void)state;
    char *doc = read_doc("hypotheses.md");
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

static void the_manual_page_lists_every_hypothesis(void **state) {
    (void)state;
    char *page = read_doc("man/greta_audit.1"), *entries = page_entries();
    if (!strstr(page, entries))
        fail_msg("docs/man/greta_audit.1 differs from the rows; %s", again);
    free(entries);
    free(page);
}

static void check_names(const struct json_node *list, const char *file) {
    const struct json_node *n = list ? list->first : NULL;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++, n = n->next) {
        const char *name = hypothesis_name((enum verdict_hypothesis_id)i);
        if (!n || strcmp(n->text, name) != 0)
            fail_msg("docs/%s lists %s where hypotheses.def has %s", file, n ? n->text : "nothing",
                     name);
    }
    assert_null(n);
}

static const struct json_node *get(const struct json_node *n, const char *const *keys) {
    for (; n && *keys; keys++)
        n = json_tree_get(n, *keys);
    return n;
}

static void schemas_name_the_rows(void **state) {
    (void)state;
    static const struct {
        const char *file;
        const char *list[6];
    } cases[] = {
        { "report.schema.json", { "definitions", "hypothesis_name", "enum" } },
        { "summary.schema.json", { "definitions", "hypothesis", "properties", "name", "enum" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = { 0 };
        json_tree *t = NULL;
        if (json_tree_open_file(&t, path_of(cases[i].file), &e) != RC_OK)
            fail_msg("%s", e.msg);
        const struct json_node *root = json_tree_root(t);
        check_names(get(root, cases[i].list), cases[i].file);
        static const char *const all[] = { "properties", "hypotheses", NULL };
        const struct json_node *list = get(root, all);
        assert_int_equal(json_tree_u64(list, "minItems"), HYPOTHESIS_COUNT);
        assert_int_equal(json_tree_u64(list, "maxItems"), HYPOTHESIS_COUNT);
        json_tree_close(&t);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_about_hypotheses_says_what_the_rows_say),
        cmocka_unit_test(the_manual_page_lists_every_hypothesis),
        cmocka_unit_test(schemas_name_the_rows),
    };
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        write_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
