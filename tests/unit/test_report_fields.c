/* docs/report.schema.json names the counts of coverage.def, all of them and no others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "unit/test.h"

static const char *const rows[] = {
#define COVERAGE(name, where, en, es) #name,
#include "verdict/coverage.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static void the_schema_describes_every_count(void **state) {
    (void)state;
    struct err e = { 0 };
    json_tree *t = NULL;
    char path[512];
    const char *top = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/report.schema.json", top ? top : ".");
    if (json_tree_open_file(&t, path, &e) != RC_OK)
        fail_msg("%s", e.msg);
    const struct json_node *coverage =
        json_tree_get(json_tree_get(json_tree_root(t), "definitions"), "coverage");
    const struct json_node *properties = json_tree_get(coverage, "properties");
    const struct json_node *required = json_tree_get(coverage, "required");
    for (size_t i = 0; i < ROWS; i++) {
        const struct json_node *p = json_tree_get(properties, rows[i]);
        if (!p)
            fail_msg("report.schema.json, definitions.coverage.properties: \"%s\" of coverage.def "
                     "is missing: expected { \"type\": \"integer\", \"minimum\": 0 }",
                     rows[i]);
        assert_string_equal(json_tree_text(p, "type"), "integer");
        bool listed = false;
        for (const struct json_node *n = required ? required->first : NULL; n; n = n->next)
            listed |= !strcmp(n->text, rows[i]);
        if (!listed)
            fail_msg("report.schema.json, definitions.coverage.required: \"%s\" is missing",
                     rows[i]);
    }
    json_tree_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_describes_every_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
