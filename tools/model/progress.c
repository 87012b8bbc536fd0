#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/cmd.h"

int cmd_wrong(const char *command, const char *what, const char *value) {
    fprintf(stderr, "greta_model %s: %s%s%s; `greta_model %s --help` shows the usage\n", command,
            what, value ? ": " : "", value ? value : "", command);
    return EXIT_WRONG;
}

int cmd_failed(const char *command, const struct err *e) {
    fprintf(stderr, "greta_model %s: %s\n", command, e->msg);
    return e->rc == RC_USAGE ? EXIT_WRONG : e->rc == RC_REFUSED ? EXIT_REFUSED : EXIT_FOUND;
}

bool cmd_parse_count(const char *text, int max, int *out) {
    char *rest;
    errno = 0;
    long n = strtol(text, &rest, 10);
    if (errno || *rest || rest == text || n < 1 || n > max)
        return false;
    *out = (int)n;
    return true;
}

void cmd_format_bytes(uint64_t bytes, char out[24]) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double n = (double)bytes;
    size_t u = 0;
    while (n >= 1024 && u + 1 < sizeof units / sizeof *units) {
        n /= 1024;
        u++;
    }
    snprintf(out, 24, u ? "%.2f %s" : "%.0f %s", n, units[u]);
}

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
    char rate[24];
    cmd_format_bytes(seconds > 0 ? (uint64_t)((double)done / seconds) : 0, rate);
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

static atomic_bool interrupted;

static void on_signal(int number) {
    (void)number;
    atomic_store(&interrupted, true);
}

const atomic_bool *progress_catch_signals(void) {
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND) };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    return &interrupted;
}
