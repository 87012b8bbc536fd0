/* A host function asks whether the copy of another stream is done: a query is a call too. The fixed
 * twin orders the function after the copy with an event.
 *
 * Expect: verdict FINDINGS; hypothesis CALL_IN_CALLBACK;
 *         culprit hipEventQuery site=look line=17; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

static hipEvent_t copied;
static volatile int seen;

void look(void *data) {
    (void)data;
#if BUG
    if (hipEventQuery(copied) == hipSuccess)
        seen = 1;
#else
    seen = ((const int *)data)[3];
#endif
}

int main(void) {
    hipStream_t copy, work;
    void *device, *host;
    CHECK(hipStreamCreateWithFlags(&copy, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&work, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&copied, hipEventDisableTiming));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc(&host, BYTES, hipHostMallocDefault));
    CHECK(hipMemset(device, 3, BYTES));
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, copy));
    CHECK(hipEventRecord(copied, copy));
    if (!BUG)
        CHECK(hipStreamWaitEvent(work, copied, 0));
    CHECK(hipLaunchHostFunc(work, look, host));
    CHECK(hipStreamSynchronize(work));
    CHECK(hipStreamSynchronize(copy));
    CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    CHECK(hipEventDestroy(copied));
    CHECK(hipStreamDestroy(work));
    CHECK(hipStreamDestroy(copy));
    return 0;
}
