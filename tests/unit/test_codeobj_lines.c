/* test_codeobj_lines.c - source lines and names of parameters in code objects of real compilers. */
#include "test_codeobj_compile.h"

#include "codeobj/lines.h"

/* The line of the source that has these words, counted from 1. */
static unsigned line_with(const char *words) {
    char path[1000], text[1000];
    snprintf(path, sizeof path, "%s/tests/hip/image.hip", getenv("SOURCE_DIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    unsigned line = 0, found = 0;
    while (!found && fgets(text, sizeof text, f)) {
        line++;
        if (strstr(text, words))
            found = line;
    }
    fclose(f);
    assert_true(found > 0);
    return found;
}

static codeobj_lines *open_lines(const struct codeobj_image *image) {
    codeobj_lines *lines = NULL;
    struct err e = { 0 };
    enum rc rc = codeobj_lines_open(&lines, image->bytes, image->size, &e);
    if (rc == RC_UNSUPPORTED)
        skip();
    if (rc)
        fail_msg("%s", e.msg);
    return lines;
}

/* Some instruction of the kernel is of the line, in that file. */
static bool has_line(codeobj_lines *lines, const struct codeobj_function *f, unsigned line,
                     const char *function) {
    for (uint64_t at = f->address; at < f->address + f->size; at += 4) {
        struct codeobj_place places[8];
        unsigned count = codeobj_lines_find(lines, at, places, 8);
        for (unsigned i = 0; i < count && i < 8; i++)
            if (places[i].line == line && places[i].function &&
                !strcmp(places[i].function, function) && places[i].file &&
                strstr(places[i].file, "tests/hip/image.hip"))
                return true;
    }
    return false;
}

static void check(enum compile_target target, const char *flags, bool *any) {
    struct codeobj_image image;
    if (!compile(target, "image.hip", flags, &image))
        return;
    *any = true;
    struct codeobj_list *list = NULL;
    struct err e = { 0 };
    assert_int_equal(codeobj_list_open(&list, image.bytes, image.size, &e), RC_OK);
    codeobj_lines *lines = open_lines(&image);
    const struct codeobj_kernel *k = codeobj_list_kernel(list, "lds");
    const struct codeobj_function *f = codeobj_list_function_at(list, k->entry);
    assert_true(has_line(lines, f, line_with("= tile[255 - i]"), "lds"));
    assert_false(has_line(lines, f, line_with("return 2 * x"), "twice"));
    struct codeobj_place place;
    assert_int_equal(codeobj_lines_find(lines, 1, &place, 1), 0); /* no code there */
    assert_true(codeobj_lines_find(lines, k->entry, NULL, 0) > 0);

    const char *names[4];
    assert_int_equal(codeobj_lines_parameters(lines, "scratch", names, 4), 2);
    assert_string_equal(names[0], "out");
    assert_string_equal(names[1], "n");
    assert_int_equal(codeobj_lines_parameters(lines, "scratch", names, 1), 2);
    assert_int_equal(codeobj_lines_parameters(lines, "nothing", names, 4), 0);
    codeobj_lines_close(&lines);
    codeobj_lines_close(&lines);
    codeobj_list_close(&list);
    free(image.bytes);
}

static void instructions_have_lines(void **state) {
    (void)state;
    bool any = false;
    for (int t = 0; t < COMPILE_TARGETS; t++)
        check((enum compile_target)t, "-O2 -g", &any);
    if (!any)
        skip();
}

static void code_without_debug_information_has_none(void **state) {
    (void)state;
    struct codeobj_image image;
    codeobj_lines *lines = NULL;
    struct err e = { 0 };
    if (!compile(COMPILE_GFX942, "image.hip", "-O2", &image))
        skip();
    enum rc rc = codeobj_lines_open(&lines, image.bytes, image.size, &e);
    assert_true(rc == RC_FORMAT || rc == RC_UNSUPPORTED);
    assert_null(lines);
    assert_true(e.msg[0] != 0);
    assert_true(codeobj_lines_open(&lines, "not an ELF file", 15, &e) != RC_OK);
    free(image.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_have_lines),
        cmocka_unit_test(code_without_debug_information_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
