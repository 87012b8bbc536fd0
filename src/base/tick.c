#include "base/tick.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

__thread struct tick_anchor tick_anchor __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)
#include <cpuid.h>

enum {
    SPAN_TICKS = 1 << 21, /* from half a millisecond on fast machines to some on slow ones */
    CALIBRATE_NS = 2000000,
    READ_TICKS = 4000, /* a reading of both that took longer was interrupted */
};

enum { STATE_OFF, STATE_STARTING, STATE_ON };
static _Atomic int state;
static uint64_t base_tick, base_ns; /* read together, at the start; constant in STATE_ON */

/* Both within READ_TICKS, if that can be had. */
static bool read_both(uint64_t *tick, uint64_t *ns) {
    for (int i = 0; i < 4; i++) {
        uint64_t before = __builtin_ia32_rdtsc();
        *ns = clock_now_ns();
        uint64_t took = __builtin_ia32_rdtsc() - before;
        *tick = before + took / 2;
        if (took < READ_TICKS)
            return true;
    }
    return false;
}

/* The kernel checks the counter, and rejects it if it is not constant or differs between cores. */
static bool kernel_trusts_counter(void) {
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    unsigned a = 0, b = 0, c = 0, d = 0;
    char text[16] = "";
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strcmp(text, "tsc\n") == 0;
}

void tick_start(void) {
    int off = STATE_OFF;
    if (!atomic_compare_exchange_strong(&state, &off, STATE_STARTING))
        return;
    if (kernel_trusts_counter() && read_both(&base_tick, &base_ns))
        atomic_store_explicit(&state, STATE_ON, memory_order_release);
}

/* Sets the anchor to this moment. If the old one was ahead of the clock, time continues from there,
 * slower, so that both agree at the end of the span. False if the counter proves not constant. */
static bool anchor_at(struct tick_anchor *a, uint64_t tick, uint64_t ns) {
    double rate = (double)(ns - base_ns) / (double)(tick - base_tick);
    double span_ns = rate * SPAN_TICKS;
    if (a->span) {
        uint64_t passed = tick - a->tick < a->span ? tick - a->tick : a->span;
        uint64_t given = a->ns + (passed * a->rate >> 32); /* nothing later was */
        if (given > ns) {
            double ahead = (double)(given - ns);
            if (ahead > span_ns / 8)
                return false;
            rate *= 1 - ahead / span_ns;
            ns = given;
        }
    }
    a->tick = tick;
    a->ns = ns;
    a->rate = (uint64_t)(rate * 4294967296.0);
    return true;
}

uint64_t tick_renew(void) {
    struct tick_anchor *a = &tick_anchor;
    uint64_t tick, ns;
    if (atomic_load_explicit(&state, memory_order_acquire) != STATE_ON || a->busy)
        return clock_now_ns();
    a->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    bool good = read_both(&tick, &ns) && ns - base_ns >= CALIBRATE_NS;
    if (good && !anchor_at(a, tick, ns)) {
        atomic_store(&state, STATE_STARTING); /* for ever: the clock is read from now on */
        good = false;
    }
    ns = good ? a->ns : ns;
    a->span = good ? SPAN_TICKS : 0;
    atomic_signal_fence(memory_order_seq_cst);
    a->busy = false;
    return ns;
}

#else

void tick_start(void) {}

uint64_t tick_renew(void) {
    return clock_now_ns();
}

#endif
