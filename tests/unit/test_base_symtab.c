/* Functions by address from a file's symbol table: this program's own, and files that lie. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/test.h"

#include "base/symtab.h"

static const char self[] = "/proc/self/exe";
extern const char __ehdr_start; /* where the file's first page is mapped */

__attribute__((noinline, used)) static int a_static_function(int n) {
    return n + 1;
}

static uint64_t offset_of(const void *address) {
    return (uint64_t)((const char *)address - &__ehdr_start);
}

static void static_functions_have_names(void **state) {
    (void)state;
    symtab *s = NULL;
    struct err e = { 0 };
    assert_int_equal(symtab_open(&s, self, NULL, &e), RC_OK);
    uint64_t inside = 99;
    const void *at = (const void *)(uintptr_t)a_static_function;
    assert_string_equal(symtab_find(s, offset_of(at), &inside), "a_static_function");
    assert_int_equal(inside, 0);
    assert_string_equal(symtab_find(s, offset_of(at) + 1, &inside), "a_static_function");
    assert_int_equal(inside, 1);
    at = (const void *)(uintptr_t)symtab_find;
    assert_string_equal(symtab_find(s, offset_of(at) + 3, &inside), "symtab_find");
    assert_int_equal(inside, 3);
    assert_null(symtab_find(s, 0, &inside));
    assert_null(symtab_find(s, UINT64_MAX, &inside));
    assert_null(symtab_find(s, UINT64_C(1) << 40, &inside));
    symtab_close(&s);
    assert_null(s);
    symtab_close(&s);
}

static void another_build_is_refused(void **state) {
    (void)state;
    symtab *s = NULL;
    struct err e = { 0 };
    assert_int_equal(symtab_open(&s, self, "0123456789abcdef0123456789abcdef01234567", &e),
                     RC_REFUSED);
    assert_non_null(strstr(e.msg, "another build id"));
    assert_int_equal(symtab_open(&s, self, "01", &e), RC_REFUSED);
    assert_null(s);
}

static void what_is_no_program_is_an_error(void **state) {
    (void)state;
    symtab *s = NULL;
    struct err e = { 0 };
    assert_int_equal(symtab_open(&s, "/nothing/of/that/name", NULL, &e), RC_IO);
    assert_int_equal(symtab_open(&s, "/dev/zero", NULL, &e), RC_IO);
    assert_int_equal(symtab_open(&s, "/", NULL, &e), RC_IO);
    assert_int_equal(symtab_open(&s, "/proc/self/maps", NULL, &e), RC_FORMAT);
    assert_null(s);
}

/* ---- files that lie -------------------------------------------------------------------------- */

static char *whole(size_t *size) {
    struct stat st;
    int fd = open(self, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    *size = (size_t)st.st_size;
    char *bytes = malloc(*size);
    assert_non_null(bytes);
    for (size_t done = 0; done < *size;) {
        ssize_t n = pread(fd, bytes + done, *size - done, (off_t)done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    close(fd);
    return bytes;
}

static void look_everywhere(const char *path) {
    symtab *s = NULL;
    uint64_t inside;
    if (symtab_open(&s, path, NULL, NULL) != RC_OK)
        return;
    for (uint64_t at = 0; at < 1 << 22; at += 4093) {
        const char *name = symtab_find(s, at, &inside);
        if (name)
            assert_true(strlen(name) > 0);
    }
    symtab_close(&s);
}

/* The first pages and the section table, one word after the other, made into something else. */
static void damaged_files_do_no_harm(void **state) {
    (void)state;
    size_t size;
    char *bytes = whole(&size), path[] = "/tmp/greta-symtab-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    static const uint64_t words[] = { 0, UINT64_MAX, UINT64_C(1) << 63, 0x1000 };
    for (unsigned i = 0; i < 400; i++) {
        uint64_t word = words[i % 4];
        size_t at = i < 200 ? (i / 4) * 8 : size - 8 - (size_t)(i / 4 - 50) * 40;
        assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
        look_everywhere(path);
        assert_int_equal(pwrite(fd, bytes + at, sizeof word, (off_t)at), sizeof word);
    }
    for (unsigned i = 1; i < 40; i++) {
        assert_int_equal(ftruncate(fd, (off_t)(size - size / 40 * i)), 0);
        look_everywhere(path);
    }
    close(fd);
    unlink(path);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_functions_have_names),
        cmocka_unit_test(another_build_is_refused),
        cmocka_unit_test(what_is_no_program_is_an_error),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
