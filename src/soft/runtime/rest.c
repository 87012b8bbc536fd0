#include "soft/runtime/rest.h"

#include <stdatomic.h>

#include <greta/soft_times.h>

#include "base/futex.h"

static _Atomic uint64_t queued, calls;

uint64_t soft_rest_queued(void) {
    return atomic_load_explicit(&queued, memory_order_relaxed);
}

void soft_rest_note_queued(uint64_t operations) {
    atomic_store_explicit(&queued, operations, memory_order_relaxed);
}

static void count(void) {
    if (soft_rest_queued())
        atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

bool soft_rest_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns) {
    count();
    return futex_wait(word, expected, timeout_ns);
}

int soft_rest_wake(_Atomic uint32_t *word, int n) {
    count();
    return futex_wake(word, n);
}

uint64_t greta_soft_futex_calls(void) {
    return atomic_load_explicit(&calls, memory_order_relaxed);
}
