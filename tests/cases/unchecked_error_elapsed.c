/* A timer never records its second event. The time between the two is what the variable held
 * before, and nobody looks whether the call failed.
 *
 * Expect: verdict FINDINGS; hypothesis UNCHECKED_ERROR; culprit hipEventElapsedTime site=stop;
 *         messenger none */
#include "case.h"

enum { BYTES = 4096 };

struct timer {
    hipEvent_t begin, end;
};

void start(struct timer *t) {
    CHECK(hipEventCreate(&t->begin));
    CHECK(hipEventCreate(&t->end));
    CHECK(hipEventRecord(t->begin, NULL));
}

float stop(struct timer *t) {
    float ms = 0;
    if (!BUG)
        CHECK(hipEventRecord(t->end, NULL));
    CHECK(hipDeviceSynchronize());
    (void)hipEventElapsedTime(&ms, t->begin, t->end);
    CHECK(hipEventDestroy(t->begin));
    CHECK(hipEventDestroy(t->end));
    return ms;
}

int main(void) {
    struct timer t;
    void *memory;
    CHECK(hipMalloc(&memory, BYTES));
    start(&t);
    CHECK(hipMemset(memory, 0, BYTES));
    float ms = stop(&t);
    CHECK(hipFree(memory));
    return ms < 0;
}
