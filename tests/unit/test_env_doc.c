/* README.md and greta(7) list the environment variables as env.def does. `test_env_doc --write`, in
 * the source tree, writes their lists again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/document.h"
#include "unit/test.h"

static const struct row {
    const char *group; /* of a heading; NULL: a variable */
    const char *name, *fallback, *values, *meaning;
} rows[] = {
#define ENV_GROUP(title) { title, NULL, NULL, NULL, NULL },
#define ENV(name, type, fallback, low, high, values, meaning)                                      \
    { NULL, #name, fallback, values, meaning },
#include "base/env.def"
};

struct page {
    const char *file;
    struct document_place list;
    void (*put)(FILE *out, const struct row *r);
};

static void put_markdown(FILE *out, const struct row *r) {
    if (r->group)
        fprintf(out, "| **%s** | | | |\n", r->group);
    else
        fprintf(out, "| `%s` | %s | %s | %s |\n", r->name, r->values, r->fallback, r->meaning);
}

static void put_escaped(FILE *out, const char *text) {
    for (; *text; text++)
        fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

static void put_page(FILE *out, const struct row *r) {
    if (r->group) {
        fprintf(out, ".SS %s\n", r->group);
        return;
    }
    fprintf(out, ".TP\n.BR %s \" (%s%s%s)\"\n", r->name, r->values,
            *r->fallback ? "; default: " : "", r->fallback);
    put_escaped(out, r->meaning);
    fputs(".\n", out);
}

static const struct page documents[] = {
    { "README.md",
      { "| variable | values | default | meaning |", "\n|---|---|---|---|\n", "\n\n" },
      put_markdown },
    { "docs/man/greta.7", { ".SH ENVIRONMENT", "\n", "\n.SH SEE ALSO\n" }, put_page },
};

static char *expected(const struct page *d) {
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        d->put(out, &rows[i]);
    fclose(out);
    list[size - 1] = '\0'; /* the last line's end is the document's own */
    char *text = document_replace(document_read(d->file), d->file, &d->list, list);
    free(list);
    return text;
}

static void compare(const struct page *d) {
    char *now = document_read(d->file), *text = expected(d);
    if (strcmp(now, text) != 0) {
        size_t at = 0, line = 1;
        for (; now[at] == text[at]; at++)
            line += now[at] == '\n';
        fail_msg("%s:%zu differs from env.def; build/tests/test_env_doc --write mends it", d->file,
                 line);
    }
    free(now);
    free(text);
}

static void readme_lists_every_variable(void **state) {
    (void)state;
    compare(&documents[0]);
}

static void manual_page_lists_every_variable(void **state) {
    (void)state;
    compare(&documents[1]);
}

static void write_all(void) {
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char *text = expected(&documents[i]);
        document_write(documents[i].file, text);
        free(text);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readme_lists_every_variable),
        cmocka_unit_test(manual_page_lists_every_variable),
    };
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        write_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
