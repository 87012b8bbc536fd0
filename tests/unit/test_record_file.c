/* The file and the processes that write it: what is there already, fork, exec. */
#include "unit/test_record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "record/writer_internal.h"

extern char **environ;
static struct reader_event found;
static char program[512];

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void assert_content(const char *path, const char *text) {
    char got[256] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, sizeof got - 1, f), strlen(text));
    fclose(f);
    assert_string_equal(got, text);
}

static enum rc try_open(const char *path, struct err *e) {
    struct record_options o = { .path = path };
    writer *w = NULL;
    enum rc rc = record_open(&w, &o, e);
    if (rc != RC_OK)
        assert_null(w);
    record_close(&w);
    return rc;
}

static void assert_no_leftovers(void) {
    char command[400];
    snprintf(command, sizeof command, "ls %s.new.* >/dev/null 2>&1", record_file);
    assert_int_not_equal(system(command), 0);
}

/* ---- what is there already ----------------------------------------------------------------- */

static void file_of_somebody_else_is_left_alone(void **state) {
    (void)state;
    struct err e = { 0 };
    write_file(record_file, "my only copy");
    assert_int_equal(try_open(record_file, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, "not a recording"));
    assert_content(record_file, "my only copy");
    assert_no_leftovers();
}

static void empty_file_is_taken_over(void **state) {
    (void)state;
    write_file(record_file, "");
    assert_int_equal(try_open(record_file, NULL), RC_OK);
    reader *r = open_reader();
    reader_close(&r);
}

static void older_recording_is_kept_beside(void **state) {
    (void)state;
    char old[300];
    snprintf(old, sizeof old, "%s.old", record_file);
    uint64_t run[3];
    for (int i = 0; i < 3; i++) {
        writer *w = open_writer(0);
        run[i] = record_run_id(w);
        record_close(&w);
    }
    assert_true(run[0] != run[1] && run[1] != run[2]);
    reader *r = open_reader();
    assert_true(reader_info(r)->run_id == run[2]);
    reader_close(&r);
    assert_int_equal(reader_open(&r, old, NULL), RC_OK);
    assert_true(reader_info(r)->run_id == run[1]);
    reader_close(&r);
}

static void what_has_the_name_of_the_old_one_is_left_alone(void **state) {
    (void)state;
    char old[300];
    struct err e = { 0 };
    snprintf(old, sizeof old, "%s.old", record_file);
    assert_int_equal(try_open(record_file, NULL), RC_OK);
    write_file(old, "precious");
    assert_int_equal(try_open(record_file, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, ".old"));
    assert_content(old, "precious");
    reader *r = open_reader();
    reader_close(&r);
}

static void recording_in_progress_is_refused(void **state) {
    (void)state;
    struct err e = { 0 };
    writer *w = open_writer(0);
    assert_int_equal(try_open(record_file, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, "being recorded"));
    struct event ev = make_mark(1);
    assert_true(record_event(w, &ev) != RECORD_NONE);
    record_close(&w);
    reader *r = open_reader();
    assert_int_equal(reader_info(r)->end_seq, 3);
    reader_close(&r);
    assert_no_leftovers();
}

static void things_that_are_no_files_are_refused(void **state) {
    (void)state;
    struct err e = { 0 };
    assert_int_equal(mkdir(record_file, 0700), 0);
    assert_int_equal(try_open(record_file, &e), RC_REFUSED);
    rmdir(record_file);
    assert_int_equal(mkfifo(record_file, 0600), 0);
    assert_int_equal(try_open(record_file, &e), RC_REFUSED);
    assert_int_equal(try_open("/dev/null", &e), RC_REFUSED);
    assert_int_equal(try_open("/dev/null/directory/x.gcr", &e), RC_IO);
    assert_int_equal(try_open("", &e), RC_USAGE);
    assert_int_equal(try_open(NULL, &e), RC_USAGE);
}

static void name_may_have_the_pid(void **state) {
    (void)state;
    char name[300], want[300];
    struct err e = { 0 };
    snprintf(name, sizeof name, "%s.%%p.%%%%", record_file);
    snprintf(want, sizeof want, "%s.%d.%%", record_file, (int)getpid());
    struct record_options o = { .path = name };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    assert_string_equal(record_path(w), want);
    record_close(&w);
    assert_int_equal(unlink(want), 0);
    snprintf(name, sizeof name, "%s.%%q", record_file);
    assert_int_equal(try_open(name, &e), RC_USAGE);
    char *giant = malloc(10000);
    memset(giant, 'x', 9999);
    giant[9999] = 0;
    assert_int_equal(try_open(giant, &e), RC_USAGE);
    giant[0] = '/';
    assert_int_equal(try_open(giant, &e), RC_USAGE);
    free(giant);
}

static void relative_name_is_made_absolute(void **state) {
    (void)state;
    char *here = getcwd(NULL, 0), name[300];
    assert_non_null(here);
    assert_int_equal(chdir("/tmp"), 0);
    snprintf(name, sizeof name, "test_record_relative.%d.gcr", (int)getpid());
    struct record_options o = { .path = name };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    assert_int_equal(record_path(w)[0], '/');
    assert_int_equal(access(record_path(w), F_OK), 0);
    unlink(record_path(w));
    record_close(&w);
    assert_int_equal(chdir(here), 0);
    free(here);
}

static void ring_sizes_are_rounded_and_kept_in_bounds(void **state) {
    (void)state;
    static const struct {
        uint64_t asked, got;
    } cases[] = {
        { 1, 1024 },     { 1024, 1024 },           { 1025, 2048 },
        { 0, 16 << 20 }, { 100 << 20, 128 << 20 }, { UINT64_MAX, UINT64_C(1) << 32 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record_options o = { .path = record_file, .events = cases[i].asked };
        struct err e = { 0 };
        writer *w;
        enum rc rc = record_open(&w, &o, &e);
        if (rc == RC_MEMORY && cases[i].got > 1 << 24) /* little address space here */
            continue;
        assert_int_equal(rc, RC_OK);
        struct event ev = make_mark(1);
        assert_true(record_event(w, &ev) != RECORD_NONE);
        record_close(&w);
        reader *r = open_reader();
        assert_int_equal(reader_info(r)->capacity, cases[i].got);
        assert_int_equal(reader_info(r)->end_seq, 3);
        reader_close(&r);
    }
}

/* ---- environment --------------------------------------------------------------------------- */

static void environment_says_where_and_how_much(void **state) {
    (void)state;
    struct record_options o = { .path = "unset" };
    struct err e = { 0 };
    unsetenv("GCORE_RECORD");
    unsetenv("GCORE_RECORD_EVENTS");
    unsetenv("GCORE_RECORD_JOIN");
    assert_int_equal(record_options_read(&o, NULL, &e), RC_OK);
    assert_null(o.path);
    setenv("GCORE_RECORD", "", 1);
    assert_int_equal(record_options_read(&o, NULL, &e), RC_OK);
    assert_null(o.path);
    setenv("GCORE_RECORD", record_file, 1);
    setenv("GCORE_RECORD_EVENTS", "2M", 1);
    setenv("GCORE_RECORD_JOIN", "00ff00ff00ff00ff", 1);
    assert_int_equal(record_options_read(&o, NULL, &e), RC_OK);
    assert_string_equal(o.path, record_file);
    assert_int_equal(o.events, 2 << 20);
    assert_true(o.join == 0x00ff00ff00ff00ff);
    setenv("GCORE_RECORD_EVENTS", "many", 1);
    assert_int_equal(record_options_read(&o, NULL, &e), RC_USAGE);
    unsetenv("GCORE_RECORD_EVENTS");
    setenv("GCORE_RECORD_JOIN", "us", 1);
    assert_int_equal(record_options_read(&o, NULL, &e), RC_USAGE);
    assert_non_null(strstr(e.msg, "GCORE_RECORD_JOIN"));
    unsetenv("GCORE_RECORD_JOIN");
    unsetenv("GCORE_RECORD");
}

static void announced_name_is_absolute_and_keeps_its_percent_signs(void **state) {
    (void)state;
    char *here = getcwd(NULL, 0), name[300], want[600], id[32];
    assert_non_null(here);
    assert_int_equal(chdir("/tmp"), 0);
    snprintf(name, sizeof name, "test_record_announced.%%p.%%%%");
    struct record_options o = { .path = name, .announce = true };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    snprintf(want, sizeof want, "/tmp/%s", name);
    snprintf(id, sizeof id, "%016llx", (unsigned long long)record_run_id(w));
    assert_string_equal(getenv("GCORE_RECORD"), want);
    assert_string_equal(getenv("GCORE_RECORD_JOIN"), id);
    assert_int_equal(unlink(record_path(w)), 0);
    record_close(&w);
    unsetenv("GCORE_RECORD_JOIN");
    unsetenv("GCORE_RECORD");
    assert_int_equal(chdir(here), 0);
    free(here);
}

/* ---- fork ---------------------------------------------------------------------------------- */

enum { EACH = 20000, CHILDREN = 3 };

static void marks(writer *w, unsigned who) {
    for (uint64_t n = 0; n < EACH; n++) {
        struct event e = make_mark((uint64_t)who << 32 | n);
        e.name = record_string(w, n % 2 ? "odd" : "even");
        child_assert(record_event(w, &e) != RECORD_NONE);
    }
}

/* Checks all marks of `writers` processes and that each has a thread of its own. */
static void check_marks(reader *r, unsigned writers) {
    uint64_t next[CHILDREN + 1] = { 0 };
    uint32_t pids[CHILDREN + 1] = { 0 };
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found)) {
        if (found.event.kind != EVENT_MARK)
            continue;
        unsigned who = (unsigned)(found.event.dst >> 32);
        assert_true(mark_is_whole(&found.event) && who < writers);
        assert_int_equal(found.event.dst & 0xffffffff, next[who]++);
        const struct thread_value *t = reader_thread(r, found.event.thread);
        assert_non_null(t);
        pids[who] = pids[who] ? pids[who] : t->pid;
        assert_int_equal(pids[who], t->pid);
        assert_string_equal(reader_string(r, found.event.name),
                            found.event.dst % 2 ? "odd" : "even");
    }
    for (unsigned who = 0; who < writers; who++) {
        assert_int_equal(next[who], EACH);
        for (unsigned other = 0; other < who; other++)
            assert_int_not_equal(pids[who], pids[other]);
    }
    assert_int_equal(c.counts.torn + c.counts.lost, 0);
}

static void fork_children(bool wipe) {
    pid_t pid[CHILDREN];
    int status;
    writer *w = open_writer(0);
    if (!wipe) {
        assert_int_equal(madvise(w->page, (size_t)sysconf(_SC_PAGESIZE), MADV_KEEPONFORK), 0);
        w->check_pid = true;
    }
    uint32_t before = record_string(w, "before the fork");
    for (unsigned i = 0; i < CHILDREN; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (!pid[i]) {
            child_assert(record_string(w, "before the fork") == before);
            marks(w, i + 1);
            record_close(&w);
            _exit(0);
        }
    }
    marks(w, 0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    /* A string that a child defined has its number here, too. */
    uint32_t count = 0;
    record_string(w, "odd");
    record_close(&w);
    reader *r = open_reader();
    check_marks(r, CHILDREN + 1);
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_STRING); id++)
        count += !strcmp(reader_string(r, id), "before the fork");
    assert_int_equal(count, 1);
    assert_int_equal(reader_info(r)->attached, CHILDREN + 1);
    assert_true(reader_info(r)->clean);
    unsigned forks = 0;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_FORK) {
            assert_int_equal(found.event.src, getpid());
            forks++;
        }
    assert_int_equal(forks, CHILDREN);
    reader_close(&r);
}

static void children_go_on_in_the_same_file(void **state) {
    (void)state;
    fork_children(true);
}

static void children_do_so_where_the_kernel_cannot_wipe(void **state) {
    (void)state;
    fork_children(false);
}

static void raw_clone_is_a_fork_too(void **state) {
    (void)state;
    int status;
    writer *w = open_writer(0);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* no pthread_atfork handler runs */
    if (!pid) {
        struct event e = make_mark(1);
        record_event(w, &e);
        syscall(SYS_exit_group, 0);
    }
    assert_true(pid > 0);
    waitpid(pid, &status, 0);
    record_close(&w);
    reader *r = open_reader();
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    bool seen = false;
    while (reader_next(&c, &found))
        if (found.event.kind == EVENT_MARK) {
            assert_int_equal(reader_thread(r, found.event.thread)->pid, pid);
            seen = true;
        }
    assert_true(seen);
    /* The child never said END. */
    assert_false(reader_info(r)->clean);
    assert_int_equal(reader_info(r)->attached, 2);
    assert_int_equal(reader_info(r)->ended, 1);
    reader_close(&r);
}

/* `wipe` off: as on kernels that cannot wipe a page at a fork. */
static void silent_child(bool wipe) {
    int status;
    writer *w = open_writer(0);
    if (!wipe) {
        assert_int_equal(madvise(w->page, (size_t)sysconf(_SC_PAGESIZE), MADV_KEEPONFORK), 0);
        w->check_pid = true;
    }
    pid_t pid = fork();
    if (!pid) {
        record_close(&w);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    record_close(&w);
    reader *r = open_reader();
    assert_int_equal(reader_info(r)->attached, 1);
    assert_int_equal(reader_info(r)->end_seq, 2);
    assert_true(reader_info(r)->clean);
    reader_close(&r);
}

static void child_that_says_nothing_is_not_counted(void **state) {
    (void)state;
    silent_child(true);
    silent_child(false);
}

/* ---- exec ---------------------------------------------------------------------------------- */

/* This program again, as somebody else: records what the environment says. */
static int be_the_child(void) {
    struct record_options o = { .announce = true };
    struct err e = { 0 };
    writer *w = NULL;
    if (record_options_read(&o, NULL, &e) != RC_OK || record_open(&w, &o, &e) != RC_OK) {
        fprintf(stderr, "%s\n", e.msg);
        return e.rc == RC_REFUSED ? 3 : 1;
    }
    marks(w, 1);
    record_close(&w);
    return 0;
}

static int spawn_child(void) {
    char *argv[] = { program, (char *)(uintptr_t) "child", NULL };
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void started_program_joins_the_recording(void **state) {
    (void)state;
    struct record_options o = { .path = record_file, .announce = true };
    writer *w;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    assert_int_equal(spawn_child(), 0);
    marks(w, 0);
    record_close(&w);
    unsetenv("GCORE_RECORD");
    unsetenv("GCORE_RECORD_JOIN");
    reader *r = open_reader();
    check_marks(r, 2);
    assert_int_equal(reader_count(r, DEFINITION_PROCESS), 2);
    assert_int_equal(reader_process(r, 2)->how, PROCESS_JOINED);
    assert_int_equal(reader_process(r, 2)->parent, getpid());
    assert_int_not_equal(reader_process(r, 1)->image, reader_process(r, 2)->image);
    assert_true(reader_info(r)->clean);
    reader_close(&r);
}

static void program_of_another_run_does_not_join(void **state) {
    (void)state;
    setenv("GCORE_RECORD", record_file, 1);
    setenv("GCORE_RECORD_JOIN", "1234", 1);
    writer *w = open_writer(0);
    assert_int_equal(spawn_child(), 3); /* refused: somebody writes there */
    uint64_t run = record_run_id(w);
    record_close(&w);
    assert_int_equal(spawn_child(), 0); /* a fresh one */
    unsetenv("GCORE_RECORD");
    unsetenv("GCORE_RECORD_JOIN");
    reader *r = open_reader();
    assert_true(reader_info(r)->run_id != run);
    reader_close(&r);
}

static const char *one_name(unsigned fn) {
    return fn ? "hipB" : "hipA";
}

static void build_with_other_functions_does_not_join(void **state) {
    (void)state;
    struct err e = { 0 };
    struct record_options o = { .path = record_file, .fn_count = 1, .fn_name = one_name };
    writer *w, *second = NULL;
    assert_int_equal(record_open(&w, &o, NULL), RC_OK);
    o.join = record_run_id(w);
    assert_int_equal(record_open(&second, &o, &e), RC_OK);
    record_close(&second);
    o.fn_count = 2;
    assert_int_equal(record_open(&second, &o, &e), RC_REFUSED);
    assert_null(second);
    record_close(&w);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "child"))
        return be_the_child();
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        record_test(file_of_somebody_else_is_left_alone),
        record_test(empty_file_is_taken_over),
        record_test(older_recording_is_kept_beside),
        record_test(what_has_the_name_of_the_old_one_is_left_alone),
        record_test(recording_in_progress_is_refused),
        record_test(things_that_are_no_files_are_refused),
        record_test(name_may_have_the_pid),
        record_test(relative_name_is_made_absolute),
        record_test(ring_sizes_are_rounded_and_kept_in_bounds),
        record_test(environment_says_where_and_how_much),
        record_test(announced_name_is_absolute_and_keeps_its_percent_signs),
        record_test(children_go_on_in_the_same_file),
        record_test(children_do_so_where_the_kernel_cannot_wipe),
        record_test(raw_clone_is_a_fork_too),
        record_test(child_that_says_nothing_is_not_counted),
        record_test(started_program_joins_the_recording),
        record_test(program_of_another_run_does_not_join),
        record_test(build_with_other_functions_does_not_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
