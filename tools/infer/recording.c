#include "tools/infer/recording.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "hip/hip_api.h"
#include "record/reader.h"

/* A checked copy whose own event has not come yet. */
struct promise {
    uint64_t dst, src, len;
    uint32_t thread;
};

struct summary {
    uint64_t copies, checked, refused, launches, graphs, failed, faults;
    struct reader_event failure, fault; /* the first of each */
    struct promise *promises;
    size_t promised, room;
};

static bool promise(struct summary *s, const struct event *v) {
    struct promise *more = grow_array(s->promises, &s->room, s->promised, sizeof *more);
    if (!more)
        return false;
    s->promises = more;
    s->promises[s->promised++] = (struct promise){ v->dst, v->src, v->len, v->thread };
    return true;
}

/* True, once, for a copy that a check announced. */
static bool keep_promise(struct summary *s, const struct event *v) {
    for (size_t i = s->promised; i-- > 0;) {
        const struct promise *p = &s->promises[i];
        if (p->dst == v->dst && p->src == v->src && p->len == v->len && p->thread == v->thread) {
            s->promises[i] = s->promises[--s->promised];
            return true;
        }
    }
    return false;
}

static bool has_failed(const struct event *v) {
    return event_fn(v) != EVENT_NO_FN && !event_is_pending(v) && v->status != hipSuccess &&
           v->status != hipErrorNotReady;
}

static bool count(struct summary *s, const struct reader_event *r) {
    const struct event *v = &r->event;
    bool passed = event_detail(v) == DETAIL_DECISION_PASSED;
    if (has_failed(v) && !s->failed++)
        s->failure = *r;
    switch (v->kind) {
    case EVENT_SAFE_COPY:
        s->refused += !passed;
        return !passed || promise(s, v);
    case EVENT_REFUSED:
        s->refused++;
        break;
    case EVENT_COPY:
    case EVENT_COPY2D:
        s->copies++;
        s->checked += keep_promise(s, v);
        break;
    case EVENT_LAUNCH:
        s->launches += !event_is_captured(v);
        break;
    case EVENT_GRAPH_LAUNCH:
        s->graphs++;
        break;
    case EVENT_FAULT:
        if (!s->faults++)
            s->fault = *r;
        break;
    default:
        break;
    }
    return true;
}

static void print(const struct summary *s, const reader *r, const struct reader_counts *c,
                  const char *path, FILE *out) {
    const struct reader_info *info = reader_info(r);
    uint64_t missing = info->lost + c->overwritten + c->torn + c->truncated;
    fprintf(out, "Recording %s: %" PRIu64 " events, %" PRIu64 " missing; %" PRIu64 " copies, ",
            path, c->whole, missing, s->copies);
    if (s->checked == s->copies)
        fputs("all through the safe path", out);
    else
        fprintf(out, "%" PRIu64 " of them not through the safe path", s->copies - s->checked);
    if (s->refused)
        fprintf(out, ", %" PRIu64 " refused", s->refused);
    fprintf(out, "; %" PRIu64 " launches", s->launches);
    if (s->graphs)
        fprintf(out, " and %" PRIu64 " of graphs", s->graphs);
    fputs("; ", out);
    if (s->failed)
        fprintf(out, "%" PRIu64 " calls failed, first %s with %s (event %" PRIu64 ")", s->failed,
                reader_function(r, event_fn(&s->failure.event)),
                hip_error_name((hipError_t)s->failure.event.status), s->failure.seq);
    else
        fputs("no call failed", out);
    if (s->faults)
        fprintf(out, "; device fault in %s (event %" PRIu64 ")\n",
                reader_string(r, s->fault.event.name), s->fault.seq);
    else
        fputs(", no device fault\n", out);
    if (s->failed || s->faults)
        fprintf(out, "`greta_audit report %s` says what went wrong\n", path);
}

/* ---- crashes --------------------------------------------------------------------------------- */

static char hint[400];

static void on_crash(int signal) {
    (void)!write(STDERR_FILENO, hint, strlen(hint));
    raise(signal); /* blocked until this returns; then it ends the process */
}

void recording_expect_crash(const char *path) {
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };
    snprintf(hint, sizeof hint,
             "greta_infer: the program died; `greta_audit report %.300s` says what went wrong\n",
             path);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

enum rc recording_print(const char *path, FILE *out, struct err *e) {
    reader *r = NULL;
    struct summary s = { 0 };
    struct reader_event v;
    enum rc rc = reader_open(&r, path, e);
    if (rc)
        return rc;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (!rc && reader_next(&c, &v))
        if (!count(&s, &v))
            rc = err_set(e, RC_MEMORY, "out of memory");
    if (!rc)
        print(&s, r, &c.counts, path, out);
    free(s.promises);
    reader_close(&r);
    return rc;
}
