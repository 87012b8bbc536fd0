/* Two streams start together when a value in memory changes. That does not order what they do to
 * one buffer later; the fixed twin orders it with an event.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=count site=second; messenger none */
#include "case.h"

enum { COUNT = 256 };

KERNEL(count, { "counters", 8, GRETA_SOFT_POINTER }) {
    uint32_t *counters = ARG(uint32_t *, 0);
    for (uint32_t i = 0; work->first == 0 && i < COUNT; i++)
        counters[i]++;
}

static void start(hipStream_t a, hipStream_t b, void *flag) {
    CHECK(hipStreamWriteValue32(a, flag, 1, 0));
    CHECK(hipStreamWaitValue32(b, flag, 1, hipStreamWaitValueGte, 0xffffffff));
    CHECK(hipDeviceSynchronize());
}

static void first(hipStream_t stream, void *counters, hipEvent_t counted) {
    CHECK(LAUNCH(count, 1, stream, &counters));
    CHECK(hipEventRecord(counted, stream));
}

static void second(hipStream_t stream, void *counters, hipEvent_t counted) {
    if (!BUG)
        CHECK(hipStreamWaitEvent(stream, counted, 0));
    CHECK(LAUNCH(count, 1, stream, &counters));
}

int main(void) {
    hipStream_t a, b;
    hipEvent_t counted;
    void *counters, *flag;
    KERNEL_ENTER(count);
    CHECK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&counted, hipEventDisableTiming));
    CHECK(hipMalloc(&counters, COUNT * sizeof(uint32_t)));
    CHECK(hipExtMallocWithFlags(&flag, 8, hipMallocSignalMemory));
    CHECK(hipMemset(counters, 0, COUNT * sizeof(uint32_t)));
    CHECK(hipMemset(flag, 0, 8));
    CHECK(hipDeviceSynchronize());
    start(a, b, flag);
    first(a, counters, counted);
    second(b, counters, counted);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(flag));
    CHECK(hipFree(counters));
    CHECK(hipEventDestroy(counted));
    CHECK(hipStreamDestroy(a));
    CHECK(hipStreamDestroy(b));
    return 0;
}
