/* tick.h - CLOCK_MONOTONIC at half the cost, for code that reads it a million times per second.
 *
 * The time is extrapolated with the processor's time stamp counter from an anchor, a moment at
 * which counter and clock were read together; each thread has its own anchor and renews it about
 * every millisecond. So the result is off by what the counter drifts in that time, far less than a
 * microsecond, and it never goes back in a thread. Where the kernel itself does not trust the
 * counter, or the processor has none, the clock is read.
 *
 * Thread-safe and async-signal-safe; a forked child goes on with its parent's anchor. */
#ifndef BASE_TICK_H
#define BASE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Lets tick_now_ns() use the counter; without it, it reads the clock. Any number of times. */
void tick_start(void);

struct tick_anchor {
    uint64_t tick, ns; /* read together */
    uint64_t span;     /* ticks for which it holds; 0: there is none */
    uint64_t rate;     /* nanoseconds per tick, in 2^-32 */
    bool busy;         /* being renewed by the code that this handler interrupted */
};
extern __thread struct tick_anchor tick_anchor __attribute__((tls_model("initial-exec")));

/* Renews the anchor if there can be one, and returns the time. */
uint64_t tick_renew(void);

static inline uint64_t tick_now_ns(void) {
#if defined(__x86_64__)
    const volatile struct tick_anchor *a = &tick_anchor;
    uint64_t tick = a->tick, passed = __builtin_ia32_rdtsc() - tick;
    if (__builtin_expect(passed < a->span, 1)) {
        uint64_t ns = a->ns + (passed * a->rate >> 32);
        if (__builtin_expect(a->tick == tick, 1)) /* else a signal handler has renewed it */
            return ns;
    }
    return tick_renew();
#else
    return clock_now_ns();
#endif
}

#endif
