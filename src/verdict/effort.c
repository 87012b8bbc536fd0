#include "verdict/effort.h"

_Thread_local struct effort effort = { .steps_max = UINT64_MAX, .bytes_max = UINT64_MAX };

void effort_begin(uint64_t slots, uint64_t bytes) {
    /* Graphs of a thousand nodes, launched again and again, need some 65,000 steps per slot. */
    enum { STEPS_PER_SLOT = 1 << 16, BYTES_PER_BYTE = 64 };
    static const uint64_t STEPS_FREE = UINT64_C(1) << 29, BYTES_FREE = UINT64_C(256) << 20;
    effort = (struct effort){ .steps_max = STEPS_FREE + slots * STEPS_PER_SLOT,
                              .bytes_max = BYTES_FREE + bytes * BYTES_PER_BYTE };
}

void effort_end(void) {
    effort = (struct effort){ .steps_max = UINT64_MAX, .bytes_max = UINT64_MAX };
}
