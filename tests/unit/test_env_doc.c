/* README.md and greta(7) list the environment variables as env.def does. `test_env_doc --write`, in
 * the source tree, writes their lists again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct document {
    const char *file, *begin, *end; /* the list stands between these lines */
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

static const struct document documents[] = {
    { "README.md", "| variable | values | default | meaning |\n|---|---|---|---|\n", "\n",
      put_markdown },
    { "docs/man/greta.7", ".SH ENVIRONMENT\n", ".SH SEE ALSO\n", put_page },
};

static const char *path_of(const struct document *d) {
    static char path[512];
    const char *top = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/%s", top ? top : ".", d->file);
    return path;
}

/* The document as it should be; *now is what it is. */
static char *expected(const struct document *d, char **now) {
    enum { MOST = 1 << 20 };
    FILE *in = fopen(path_of(d), "r");
    *now = calloc(1, MOST);
    if (!in || !*now || fread(*now, 1, MOST - 1, in) == 0)
        return NULL;
    fclose(in);
    char *text = NULL, *begin = strstr(*now, d->begin);
    size_t size = 0;
    if (!begin)
        return NULL;
    begin += strlen(d->begin);
    const char *end = begin;
    while (end && (end[-1] != '\n' || strncmp(end, d->end, strlen(d->end)) != 0))
        end = *end ? end + 1 : NULL;
    if (!end)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "%.*s", (int)(begin - *now), *now);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        d->put(out, &rows[i]);
    fputs(end, out);
    fclose(out);
    return text;
}

static void compare(const struct document *d) {
    char *now, *text = expected(d, &now);
    assert_non_null(text);
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

static int write_all(void) {
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char *now, *text = expected(&documents[i], &now);
        FILE *out = text ? fopen(path_of(&documents[i]), "w") : NULL;
        if (!out || fputs(text, out) < 0 || fclose(out) != 0) {
            fprintf(stderr, "%s has no list, or cannot be written\n", path_of(&documents[i]));
            return 1;
        }
        free(now);
        free(text);
    }
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readme_lists_every_variable),
        cmocka_unit_test(manual_page_lists_every_variable),
    };
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return write_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
