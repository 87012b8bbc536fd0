/* Files appear whole under their names, or not at all. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "unit/test.h"

static char folder[64], path[128];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/test_base_output.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/deep/file", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char deep[128];
    snprintf(deep, sizeof deep, "%s/deep", folder);
    unlink(path);
    return rmdir(deep) || rmdir(folder); /* nothing else is in them */
}

static void write_file(const char *text) {
    struct output o;
    struct stat st;
    assert_int_equal(output_open(&o, path, NULL), RC_OK);
    fputs(text, o.file);
    assert_int_equal(output_close(&o, RC_OK, NULL), RC_OK);
    assert_null(o.file);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, strlen(text));
}

static void expect_text(const char *text) {
    char got[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    assert_string_equal(got, text);
}

static void a_file_appears_when_it_is_closed(void **state) {
    (void)state;
    struct output o;
    assert_int_equal(output_open(&o, path, NULL), RC_OK);
    fputs("new", o.file);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(output_close(&o, RC_OK, NULL), RC_OK);
    expect_text("new");
}

static void after_a_failure_the_old_one_is_there(void **state) {
    (void)state;
    struct output o;
    struct err e = { 0 };
    write_file("old");
    assert_int_equal(output_open(&o, path, &e), RC_OK);
    fputs("new", o.file);
    assert_int_equal(output_close(&o, RC_MEMORY, &e), RC_MEMORY);
    expect_text("old");
}

/* As with --json /dev/stdout, which is a link. */
static void a_link_is_written_through(void **state) {
    (void)state;
    char target[128];
    struct output o;
    struct stat st;
    write_file("");
    unlink(path);
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(symlink("../target", path), 0);
    assert_int_equal(output_open(&o, path, NULL), RC_OK);
    fputs("new", o.file);
    assert_int_equal(output_close(&o, RC_OK, NULL), RC_OK);
    expect_text("new");
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(unlink(target), 0);
}

static void a_device_stays_a_device(void **state) {
    (void)state;
    struct output o;
    struct stat st;
    write_file(""); /* so that there is a folder */
    assert_int_equal(output_open(&o, "/dev/null", NULL), RC_OK);
    fputs("lost", o.file);
    assert_int_equal(output_close(&o, RC_IO, NULL), RC_IO);
    assert_int_equal(lstat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* A limit on the size of files stands for a disk that is full. */
static void what_does_not_fit_leaves_nothing_behind(void **state) {
    (void)state;
    struct rlimit before, small = { 4096, 0 };
    struct output o;
    struct err e = { 0 };
    static char block[8192];
    memset(block, 'x', sizeof block);
    write_file("old");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(output_open(&o, path, &e), RC_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fwrite(block, 1, sizeof block, o.file);
    enum rc rc = output_close(&o, RC_OK, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(rc, RC_IO);
    assert_non_null(strstr(e.msg, path));
    assert_non_null(strstr(e.msg, ": cannot be written"));
    expect_text("old");
}

static void an_empty_one_can_be_closed(void **state) {
    (void)state;
    struct output o = { 0 };
    assert_int_equal(output_close(&o, RC_OK, NULL), RC_OK);
    assert_int_equal(output_close(&o, RC_IO, NULL), RC_IO);
}

static void a_full_device_is_named(void **state) {
    (void)state;
    struct err e = { 0 };
    FILE *f = fopen("/dev/full", "w");
    if (!f)
        skip();
    fputs("text", f);
    assert_int_equal(output_flush(f, "the list", &e), RC_IO);
    assert_string_equal(e.msg, "the list: cannot be written: No space left on device");
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_appears_when_it_is_closed, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(after_a_failure_the_old_one_is_there, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_link_is_written_through, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_device_stays_a_device, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_does_not_fit_leaves_nothing_behind, make_folder,
                                        remove_folder),
        cmocka_unit_test(an_empty_one_can_be_closed),
        cmocka_unit_test(a_full_device_is_named),
    };
    return cmocka_run_group_tests_name("base_output", tests, NULL, NULL);
}
