/* log.h - line-oriented output that never tears.
 *
 * Every line is one write() under a lock of this module; a write that the system cut short goes on
 * under the same lock, so that lines of several threads never interleave. Files are opened with
 * O_APPEND, so that lines of several processes do not overwrite each other either. The lock is held
 * across fork(), so that a child never inherits it from a thread it does not have.
 *
 * Thread-safe, not async-signal-safe. errno is preserved. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct log_sink {
    int fd;     /* -1: closed, lines go nowhere */
    bool owned; /* close fd in log_close */
};

/* The longest line log_linef formats; what is longer is cut and still ends in a newline. */
enum { LOG_LINE_MAX = 4096 };

/* Opens path for appending (created with mode 0666 less the umask); NULL, "" and "stderr" mean
 * standard error. On failure *out is untouched. */
NODISCARD enum rc log_open(struct log_sink *out, const char *path, struct err *e);

/* Closes what log_open opened; the sink then takes lines and drops them. */
void log_close(struct log_sink *s);

/* Writes len bytes, which should be one or more whole lines with their newline. RC_IO if the system
 * refused (disk full, pipe closed), and e (may be NULL) what it said; part of it may have been
 * written then. */
enum rc log_line(const struct log_sink *s, const char *buf, size_t len, struct err *e);

/* Formats one line (a newline is added) and writes it. */
enum rc log_linef(const struct log_sink *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same; e receives what the system said. */
enum rc log_linev(const struct log_sink *s, struct err *e, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

#endif
