#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

void err_fill(struct err *e, enum rc rc, const char *fmt, ...) {
    if (!e)
        return;
    e->rc = rc;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    printable_scrub(e->msg, strlen(e->msg)); /* the message may contain names from files */
}

enum rc err_prefix(struct err *e, const char *fmt, ...) {
    if (!e)
        return RC_OK;
    char old[sizeof e->msg];
    memcpy(old, e->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->msg)
        snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %.*s", (int)(sizeof e->msg - 3), old);
    return e->rc;
}

const char *rc_name(enum rc rc) {
    static const char *const names[] = {
        [RC_OK] = "RC_OK",           [RC_USAGE] = "RC_USAGE",
        [RC_IO] = "RC_IO",           [RC_FORMAT] = "RC_FORMAT",
        [RC_MEMORY] = "RC_MEMORY",   [RC_RANGE] = "RC_RANGE",
        [RC_REFUSED] = "RC_REFUSED", [RC_UNSUPPORTED] = "RC_UNSUPPORTED",
        [RC_DEVICE] = "RC_DEVICE",   [RC_BUSY] = "RC_BUSY",
    };
    return (size_t)rc < sizeof names / sizeof *names ? names[rc] : "RC_?";
}
