#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/model/cmd.h"

struct progress progress_begin(const char *doing) {
    return (struct progress){ .doing = doing,
                              .shown = isatty(STDERR_FILENO) == 1,
                              .start = clock_now_ns() };
}

void progress_show(void *user, uint64_t done, uint64_t total) {
    enum { WIDTH = 30 };
    static const uint64_t pause = 100000000; /* ns between two drawings */
    struct progress *p = user;
    uint64_t now = clock_now_ns();
    if (!p->shown || (now - p->drawn < pause && done < total))
        return;
    p->drawn = now;
    double part = total ? (double)done / (double)total : 1;
    double seconds = (double)(now - p->start) * 1e-9;
    int filled = (int)(part * WIDTH);
    char rate[BYTES_TEXT];
    bytes_format(seconds > 0 ? (uint64_t)((double)done / seconds) : 0, rate);
    fprintf(stderr, "\r%s [%.*s%*s] %3.0f%%  %s/s  %.0f s left\033[K", p->doing, filled,
            "==============================", WIDTH - filled, "", 100 * part, rate,
            part > 0 ? seconds * (1 - part) / part : 0);
    fflush(stderr);
}

double progress_end(struct progress *p) {
    if (p->shown)
        fputs("\r\033[K", stderr);
    return (double)(clock_now_ns() - p->start) * 1e-9;
}
