/* matrix_progress.c - how far the runs are: one line that is drawn again on a terminal, a line
 * every few seconds elsewhere. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/audit/matrix.h"

enum { DRAW_MS = 100, LINE_MS = 5000, LINE_PERCENT = 10 };

static unsigned percent_done(const struct matrix_progress *p, const struct matrix *m) {
    return m->run_count ? (unsigned)(100 * p->done / m->run_count) : 100;
}

void matrix_progress_begin(struct matrix_progress *p, const struct matrix *m) {
    *p = (struct matrix_progress){ .terminal = isatty(STDERR_FILENO) && !m->o.quiet };
    p->begin = p->shown = clock_now_ns();
    for (size_t i = 0; i < m->run_count; i++) {
        p->before += m->runs[i].done;
        p->errors += m->runs[i].done && matrix_end_is_error(m->runs[i].end);
    }
    p->done = p->before;
    p->percent = percent_done(p, m);
    if (p->before && !m->o.quiet)
        matrix_say("resuming: %zu of %zu runs are done", p->before, m->run_count);
}

/* "1:02:03" or "4.2 s" */
static void format_seconds(char out[static 24], double s) {
    if (s < 60)
        snprintf(out, 24, "%.1f s", s);
    else if (s < 3600)
        snprintf(out, 24, "%d:%02d", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 24, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60) % 60, (int)s % 60);
}

void matrix_progress_show(struct matrix_progress *p, const struct matrix *m,
                          const struct matrix_run *r) {
    uint64_t now = clock_now_ns();
    unsigned percent = percent_done(p, m);
    uint64_t pause = p->terminal ? DRAW_MS : LINE_MS;
    bool due = now - p->shown >= pause * 1000000 ||
               (!p->terminal && percent / LINE_PERCENT > p->percent / LINE_PERCENT);
    if (m->o.quiet || !due || p->over)
        return;
    p->over = p->done == m->run_count; /* the last word */
    char elapsed[24], left[24] = "?";
    double seconds = (double)(now - p->begin) / 1e9;
    format_seconds(elapsed, seconds);
    if (p->done > p->before)
        format_seconds(left,
                       seconds / (double)(p->done - p->before) * (double)(m->run_count - p->done));
    fprintf(stderr, "%s[%zu/%zu] %3u%%  %zu error%s  %s, ETA %s%s%s%s", p->terminal ? "\r" : "",
            p->done, m->run_count, percent, p->errors, p->errors == 1 ? "" : "s", elapsed, left,
            r ? "  " : "", r ? r->id : "", p->terminal ? "\033[K" : "\n");
    fflush(stderr);
    p->shown = now;
    p->percent = percent;
}

void matrix_progress_end(struct matrix_progress *p) {
    if (p->terminal)
        fputs("\r\033[K", stderr);
    p->terminal = false;
}
