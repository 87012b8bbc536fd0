/* docs/report.schema.json describes the counts of coverage.def and the facts of actor.def, all of
 * them and no others. `test_report_fields --write`, in the source tree, writes those parts of it
 * again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/document.h"
#include "unit/test.h"

static const char *const rows[] = {
#define COVERAGE(name, where, en, es) #name,
#include "verdict/coverage.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
    const char *name, *type, *minimum, *description;
} facts[] = {
#define NAME                                   "string", ""
#define NUMBER                                 "integer", "          \"minimum\": 0,\n"
#define ACTOR(name, type, en, es, description) { #name, type, description },
#include "verdict/actor.def"
};
enum { FACTS = sizeof facts / sizeof *facts };

static const char file[] = "docs/report.schema.json";

/* A line per row, with its name in place of %s. */
static char *lines(const char *format) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < ROWS; i++) {
        const char *name = strstr(format, "%s");
        fprintf(out, "%.*s%s%s", (int)(name - format), format, rows[i], name + 2);
    }
    fclose(out);
    return text;
}

/* Facts are the last properties of "actor", and the last of those that are required. */
static char *expected_facts(char *text) {
    static const struct document_place properties = { "\"replay\": {", "\n        }",
                                                      "\n      },\n" },
                                       required = { "\"replay\": {", "\"t_ns\"", "\n      ]" };
    char *described = NULL, *named = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&described, &size);
    for (size_t i = 0; i < FACTS; i++)
        fprintf(out,
                ",\n        \"%s\": {\n          \"type\": [\n            \"%s\",\n            "
                "\"null\"\n          ],\n%s          \"description\": \"%s\"\n        }",
                facts[i].name, facts[i].type, facts[i].minimum, facts[i].description);
    fclose(out);
    out = open_memstream(&named, &size);
    for (size_t i = 0; i < FACTS; i++)
        fprintf(out, ",\n        \"%s\"", facts[i].name);
    fclose(out);
    text = document_replace(text, file, &properties, described);
    text = document_replace(text, file, &required, named);
    free(named);
    free(described);
    return text;
}

/* Counts are the last properties of "coverage", and the first of those that are required. */
static char *expected(void) {
    static const struct document_place properties = { "\"ends_left_out\": {", "\n        }",
                                                      "\n      },\n" },
                                       required = { "\"ends_left_out\": {", "\"required\": [",
                                                    "\n        \"complete\"" };
    char *described = lines(",\n        \"%s\": {\n          \"type\": \"integer\",\n"
                            "          \"minimum\": 0\n        }");
    char *named = lines("\n        \"%s\",");
    char *text = document_replace(document_read(file), file, &properties, described);
    text = document_replace(text, file, &required, named);
    free(named);
    free(described);
    return expected_facts(text);
}

static void the_schema_describes_every_field(void **state) {
    (void)state;
    char *now = document_read(file), *text = expected();
    if (strcmp(now, text) != 0)
        fail_msg("%s differs from coverage.def or actor.def; run `build/tests/test_report_fields "
                 "--write` in "
                 "the source tree",
                 file);
    free(text);
    free(now);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_describes_every_field),
    };
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        char *text = expected();
        document_write(file, text);
        free(text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
