/* Somebody makes the recording shorter while it is written: the program goes on. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "unit/test_record.h"

/* Enough for many chunks, with names and call stacks. */
static void write_much(writer *w, unsigned from) {
    for (unsigned n = 0; n < 40000; n++) {
        char name[32];
        struct event e = make_mark(from + n);
        snprintf(name, sizeof name, "name %u", (from + n) % 5000);
        e.name = record_string(w, name);
        record_event(w, &e);
    }
}

static void write_and_cut(void *to) {
    writer *w = open_writer(1 << 20);
    write_much(w, 0);
    if (truncate(record_file, *(off_t *)to))
        _exit(9);
    write_much(w, 40000);
    record_close(&w);
}

static void a_cut_does_not_end_the_program(void **state) {
    static off_t lengths[] = { 0, 4096, 100000, 128 << 10, 300000, 1000000 };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        in_child(write_and_cut, &lengths[i]);
        struct err e = { 0 };
        reader *r = NULL;
        if (reader_open(&r, record_file, &e) == RC_OK) { /* it has its header still */
            assert_true(reader_info(r)->truncated || reader_info(r)->file_bytes >= 1000000);
            reader_close(&r);
        }
        unlink(record_file);
    }
}

/* The reader, too: what is gone is missing. */
static void read_cut(void *unused) {
    static struct reader_event e;
    uint64_t whole = 0;
    (void)unused;
    writer *w = open_writer(1 << 20);
    write_much(w, 0);
    record_close(&w);
    reader *r = open_reader();
    if (truncate(record_file, 200000))
        _exit(9);
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &e))
        whole += e.event.kind == EVENT_MARK;
    reader_close(&r);
    _exit(whole < 40000 ? 0 : 8);
}

static void a_cut_does_not_end_the_reader(void **state) {
    (void)state;
    in_child(read_cut, NULL);
}

static sig_atomic_t met;
static unsigned char *volatile mine; /* the handler reads it */

static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    met++;
    mmap(mine, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void meet_own(void *unused) {
    (void)unused;
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigaction(SIGBUS, &action, NULL);
    writer *w = open_writer(1 << 16);
    write_much(w, 0);
    int fd = memfd_create("mine", 0);
    mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mine[5] = 1; /* nothing is behind it */
    record_close(&w);
    _exit(met == 1 && mine[5] == 1 ? 0 : 8);
}

static void the_programs_own_handler_is_called(void **state) {
    (void)state;
    in_child(meet_own, NULL);
}

static void not_ours(void *unused) {
    (void)unused;
    writer *w = open_writer(1 << 16);
    int fd = memfd_create("mine", 0);
    mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mine[5] = 1;
    record_close(&w);
}

/* Without a handler, what is the program's own mistake ends it as ever. */
static void another_bus_error_ends_it(void **state) {
    int status;
    (void)state;
    pid_t pid = fork();
    if (!pid) {
        signal(SIGBUS, SIG_DFL); /* as sanitizers leave it not */
        not_ours(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(a_cut_does_not_end_the_program),
        record_test(a_cut_does_not_end_the_reader),
        record_test(the_programs_own_handler_is_called),
        record_test(another_bus_error_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
