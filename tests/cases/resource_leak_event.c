/* A timer makes two events for every measurement and destroys only one of them.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipEventCreate site=measure; messenger none */
#include "case.h"

float measure(void *memory, size_t bytes) {
    hipEvent_t from, to;
    float ms = 0;
    CHECK(hipEventCreateWithFlags(&from, 0));
    CHECK(hipEventCreate(&to));
    CHECK(hipEventRecord(from, NULL));
    CHECK(hipMemsetAsync(memory, 0, bytes, NULL));
    CHECK(hipEventRecord(to, NULL));
    CHECK(hipEventSynchronize(to));
    CHECK(hipEventElapsedTime(&ms, from, to));
    CHECK(hipEventDestroy(from));
    if (!BUG)
        CHECK(hipEventDestroy(to));
    return ms;
}

int main(void) {
    void *memory;
    float sum = 0;
    CHECK(hipMalloc(&memory, 4096));
    for (int i = 0; i < 5; i++)
        sum += measure(memory, 4096);
    CHECK(hipFree(memory));
    return sum < 0;
}
