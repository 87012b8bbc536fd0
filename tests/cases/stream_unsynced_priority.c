/* A stream of high priority is assumed to run first. Priorities order nothing.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case_event.h"

static void hand_over(void *in, hipEvent_t ready, hipStream_t first, hipStream_t second) {
    int low, high;
    hipStream_t urgent;
    (void)first;
    CHECK(hipDeviceGetStreamPriorityRange(&low, &high));
    CHECK(hipStreamCreateWithPriority(&urgent, hipStreamNonBlocking, high));
    CHECK(hipMemsetAsync(in, 0, BYTES, urgent));
    CHECK(hipEventRecord(ready, urgent));
    if (!BUG)
        CHECK(hipStreamWaitEvent(second, ready, 0));
    CHECK(hipStreamDestroy(urgent));
}
