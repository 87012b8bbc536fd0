/* test_record.h - what the tests of src/record share: a scratch file and a way to read it. */
#ifndef TESTS_UNIT_TEST_RECORD_H
#define TESTS_UNIT_TEST_RECORD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/writer.h"
#include "unit/test.h"

static char record_file[256]; /* path of this test's recording */

static inline int record_setup(void **state) {
    static int number;
    const char *dir = getenv("TMPDIR");
    (void)state;
    snprintf(record_file, sizeof record_file, "%s/test_record.%d.%d.gcr",
             dir && *dir ? dir : "/tmp", (int)getpid(), number++);
    return 0;
}

static inline int record_teardown(void **state) {
    char name[300];
    (void)state;
    unlink(record_file);
    snprintf(name, sizeof name, "%s.old", record_file);
    unlink(name);
    return 0;
}

#define record_test(f) cmocka_unit_test_setup_teardown(f, record_setup, record_teardown)

/* A writer to record_file with a ring of that many events (0: the usual). */
static inline writer *open_writer(uint64_t events) {
    struct err e = { 0 };
    struct record_options o = { .path = record_file, .events = events };
    writer *w = NULL;
    if (record_open(&w, &o, &e) != RC_OK)
        fail_msg("%s", e.msg);
    return w;
}

static inline reader *open_reader(void) {
    struct err e = { 0 };
    reader *r = NULL;
    if (reader_open(&r, record_file, &e) != RC_OK)
        fail_msg("%s", e.msg);
    return r;
}

/* An event that can be checked on its own: src and len follow from dst. */
static inline struct event make_mark(uint64_t n) {
    return (struct event){
        .kind = EVENT_MARK, .dst = n, .src = ~n, .len = n * 3, .aux = event_aux(EVENT_NO_FN, 0)
    };
}

static inline bool mark_is_whole(const struct event *e) {
    return e->kind == EVENT_MARK && e->src == ~e->dst && e->len == e->dst * 3;
}

/* Runs f in a forked child, which must exit with 0. */
static inline void in_child(void (*f)(void *), void *arg) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        f(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* For children, where cmocka's asserts would run the parent's clean-up. */
#define child_assert(x)                                                                            \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#endif
