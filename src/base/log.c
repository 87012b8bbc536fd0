#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One lock for all sinks: two of them may name the same file, and lines are rare. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void log_lock_take(void) {
    pthread_mutex_lock(&log_lock);
}
static void log_lock_give(void) {
    pthread_mutex_unlock(&log_lock);
}

/* Registered before all other fork handlers, so that a fork takes this lock last: holders of the
 * others' locks may write lines. */
__attribute__((constructor(101))) static void log_hold_across_fork(void) {
    pthread_atfork(log_lock_take, log_lock_give, log_lock_give);
}

enum rc log_open(struct log_sink *out, const char *path, struct err *e) {
    if (!path || !*path || strcmp(path, "stderr") == 0) {
        *out = (struct log_sink){ .fd = STDERR_FILENO };
        return RC_OK;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(e, RC_IO, "cannot open log file '%s': %s", path, strerror(errno));
    *out = (struct log_sink){ .fd = fd, .owned = true };
    return RC_OK;
}

void log_close(struct log_sink *s) {
    if (s->owned && s->fd >= 0)
        close(s->fd);
    *s = (struct log_sink){ .fd = -1 };
}

/* The result of a failed write: true if it is worth another try. */
static bool write_may_go_on(int fd) {
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;
    /* The descriptor was made non-blocking; a log line is worth waiting for. */
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

enum rc log_line(const struct log_sink *s, const char *buf, size_t len, struct err *e) {
    if (s->fd < 0)
        return RC_OK;
    int saved = errno;
    enum rc rc = RC_OK;
    log_lock_take();
    while (len > 0) {
        ssize_t n = write(s->fd, buf, len);
        if (n >= 0) {
            buf += n;
            len -= (size_t)n;
        } else if (!write_may_go_on(s->fd)) {
            rc = err_set(e, RC_IO, "%s", strerror(errno));
            break;
        }
    }
    log_lock_give();
    errno = saved;
    return rc;
}

enum rc log_linev(const struct log_sink *s, struct err *e, const char *fmt, va_list ap) {
    char line[LOG_LINE_MAX];
    int n = vsnprintf(line, sizeof line, fmt, ap);
    if (n < 0)
        return err_set(e, RC_FORMAT, "the line cannot be formatted");
    size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    line[len] = '\n'; /* over the terminator: log_line takes a length */
    return log_line(s, line, len + 1, e);
}

enum rc log_linef(const struct log_sink *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    enum rc rc = log_linev(s, NULL, fmt, ap);
    va_end(ap);
    return rc;
}
