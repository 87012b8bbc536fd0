/* Whole lines, whatever the system does to the writes. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

/* Lines past PIPE_BUF, which a pipe does not keep together by itself. */
enum { THREADS = 8, LINES = 500, FILL_MAX = 9000 };

static char *temp_path(void) {
    const char *dir = getenv("TMPDIR");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/test_base_log.XXXXXX", dir ? dir : "/tmp") > 0);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void remove_temp(char *path) {
    unlink(path);
    free(path);
}

static void no_path_and_stderr_mean_standard_error(void **state) {
    (void)state;
    static const char *const names[] = { NULL, "", "stderr" };
    for (size_t i = 0; i < 3; i++) {
        struct log_sink s;
        assert_int_equal(log_open(&s, names[i], NULL), RC_OK);
        assert_int_equal(s.fd, STDERR_FILENO);
        log_close(&s);
        assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0); /* not ours to close */
    }
}

static void file_is_appended_to_and_not_inherited(void **state) {
    (void)state;
    char *path = temp_path();
    for (int i = 0; i < 2; i++) {
        struct log_sink s;
        assert_int_equal(log_open(&s, path, NULL), RC_OK);
        assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(log_linef(&s, "line %d", i), RC_OK);
        log_close(&s);
        assert_int_equal(log_linef(&s, "dropped"), RC_OK);
    }
    char text[64] = { 0 };
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text - 1, f), 14);
    fclose(f);
    assert_string_equal(text, "line 0\nline 1\n");
    remove_temp(path);
}

static void file_that_cannot_be_opened_is_named(void **state) {
    (void)state;
    struct err e = { 0 };
    struct log_sink s = { .fd = 77 };
    assert_int_equal(log_open(&s, "/nonexistent/dir/log", &e), RC_IO);
    assert_int_equal(s.fd, 77);
    assert_non_null(strstr(e.msg, "'/nonexistent/dir/log'"));
}

static void failing_write_is_reported_and_errno_kept(void **state) {
    (void)state;
    struct log_sink s = { .fd = open("/dev/full", O_WRONLY) };
    assert_true(s.fd >= 0);
    errno = EDOM;
    assert_int_equal(log_linef(&s, "no room"), RC_IO);
    assert_int_equal(errno, EDOM);
    close(s.fd);
}

static void longest_line_is_cut_and_keeps_its_newline(void **state) {
    (void)state;
    char *path = temp_path(), *big = malloc(3 * LOG_LINE_MAX);
    assert_non_null(big);
    memset(big, 'y', 3 * LOG_LINE_MAX - 1);
    big[3 * LOG_LINE_MAX - 1] = '\0';
    struct log_sink s;
    assert_int_equal(log_open(&s, path, NULL), RC_OK);
    assert_int_equal(log_linef(&s, "%s", big), RC_OK);
    log_close(&s);
    FILE *f = fopen(path, "r");
    size_t n = fread(big, 1, 3 * LOG_LINE_MAX, f);
    fclose(f);
    assert_int_equal(n, LOG_LINE_MAX);
    assert_int_equal(big[n - 1], '\n');
    free(big);
    remove_temp(path);
}

struct writer {
    const struct log_sink *sink;
    int id;
};

static int fill_of_line(int i) {
    return 1 + (i * 701) % FILL_MAX;
}

/* Lines of varying length, filled with a letter that belongs to the thread. */
static void *write_lines(void *arg) {
    const struct writer *w = arg;
    char line[FILL_MAX + 64];
    for (int i = 0; i < LINES; i++) {
        int at = snprintf(line, sizeof line, "%d %d ", w->id, i), fill = fill_of_line(i);
        memset(line + at, 'a' + w->id, (size_t)fill);
        memcpy(line + at + fill, ".\n", 2);
        log_line(w->sink, line, (size_t)(at + fill + 2), NULL);
    }
    return NULL;
}

/* Reads f to its end; every line must be whole and the next one of its thread. */
static void check_lines(FILE *f, int writers) {
    int next[THREADS] = { 0 };
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, f)) > 0) {
        int id, i, at = 0;
        assert_int_equal(sscanf(line, "%d %d %n", &id, &i, &at), 2);
        assert_in_range(id, 0, writers - 1);
        assert_int_equal(i, next[id]++);
        size_t fill = strspn(line + at, (char[]){ (char)('a' + id), 0 });
        assert_int_equal(fill, fill_of_line(i));
        assert_string_equal(line + at + fill, ".\n");
    }
    for (int id = 0; id < writers; id++)
        assert_int_equal(next[id], LINES);
    free(line);
}

static void run_writers(const struct log_sink *s, pthread_t *threads, struct writer *writers) {
    for (int id = 0; id < THREADS; id++) {
        writers[id] = (struct writer){ s, id };
        assert_int_equal(pthread_create(&threads[id], NULL, write_lines, &writers[id]), 0);
    }
}

static void lines_of_threads_never_interleave_in_a_file(void **state) {
    (void)state;
    char *path = temp_path();
    struct log_sink s;
    pthread_t threads[THREADS];
    struct writer writers[THREADS];
    assert_int_equal(log_open(&s, path, NULL), RC_OK);
    run_writers(&s, threads, writers);
    for (int id = 0; id < THREADS; id++)
        pthread_join(threads[id], NULL);
    log_close(&s);
    FILE *f = fopen(path, "r");
    check_lines(f, THREADS);
    fclose(f);
    remove_temp(path);
}

/* Copies what comes out of fd into a file, in small pieces. Returns an exit status. */
static int copy_all(int fd, const char *path) {
    int out = open(path, O_WRONLY);
    char piece[1000];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        if (write(out, piece, (size_t)n) != n)
            return 1;
    return out < 0 || n < 0;
}

/* A non-blocking pipe that is read slowly cuts writes short and refuses them with EAGAIN. */
static void lines_survive_short_writes(void **state) {
    (void)state;
    int ends[2];
    char *path = temp_path();
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    struct log_sink s = { .fd = ends[1], .owned = true };
    pthread_t threads[THREADS];
    struct writer writers[THREADS];
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        close(ends[1]);
        _exit(copy_all(ends[0], path));
    }
    close(ends[0]);
    run_writers(&s, threads, writers);
    for (int id = 0; id < THREADS; id++)
        pthread_join(threads[id], NULL);
    log_close(&s);
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    FILE *f = fopen(path, "r");
    check_lines(f, THREADS);
    fclose(f);
    remove_temp(path);
}

/* Forking while other threads log must leave the child able to log. */
static void child_of_a_busy_parent_can_log(void **state) {
    (void)state;
    char *path = temp_path(), *child_path = temp_path();
    struct log_sink s, child_sink;
    pthread_t threads[THREADS];
    struct writer writers[THREADS];
    assert_int_equal(log_open(&s, path, NULL), RC_OK);
    assert_int_equal(log_open(&child_sink, child_path, NULL), RC_OK);
    run_writers(&s, threads, writers);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(20); /* a child that inherited the lock would hang */
            long status = log_linef(&child_sink, "child %d", i) == RC_OK ? 0 : 1;
            /* Not _exit: ThreadSanitizer would report the parent's threads as never joined. */
            syscall(SYS_exit_group, status);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    for (int id = 0; id < THREADS; id++)
        pthread_join(threads[id], NULL);
    log_close(&s);
    log_close(&child_sink);
    remove_temp(path);
    remove_temp(child_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_path_and_stderr_mean_standard_error),
        cmocka_unit_test(file_is_appended_to_and_not_inherited),
        cmocka_unit_test(file_that_cannot_be_opened_is_named),
        cmocka_unit_test(failing_write_is_reported_and_errno_kept),
        cmocka_unit_test(longest_line_is_cut_and_keeps_its_newline),
        cmocka_unit_test(lines_of_threads_never_interleave_in_a_file),
        cmocka_unit_test(lines_survive_short_writes),
        cmocka_unit_test(child_of_a_busy_parent_can_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
