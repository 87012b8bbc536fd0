#include "support/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *file, const char *why) {
    fprintf(stderr, "%s %s\n", file, why);
    exit(1);
}

static const char *path_of(const char *file) {
    static char path[512];
    const char *top = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/%s", top ? top : ".", file);
    return path;
}

char *document_read(const char *file) {
    enum { MOST = 1 << 20 };
    FILE *in = fopen(path_of(file), "r");
    char *text = calloc(1, MOST);
    if (!in || !text || fread(text, 1, MOST - 1, in) == 0)
        give_up(path_of(file), "cannot be read");
    fclose(in);
    return text;
}

void document_write(const char *file, const char *text) {
    FILE *out = fopen(path_of(file), "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0)
        give_up(path_of(file), "cannot be written");
}

/* Just past the next `wanted` at or after `at`; NULL if there is none, and if at is NULL. */
static const char *past(const char *at, const char *wanted) {
    at = at ? strstr(at, wanted) : NULL;
    return at ? at + strlen(wanted) : NULL;
}

char *document_replace(char *text, const char *file, const struct document_place *place,
                       const char *middle) {
    const char *at = past(past(text, place->anchor), place->begin);
    const char *after = at ? strstr(at, place->end) : NULL;
    if (!after)
        give_up(path_of(file), "has no place for the list");
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    fprintf(out, "%.*s%s%s", (int)(at - text), text, middle, after);
    fclose(out);
    free(text);
    return result;
}
