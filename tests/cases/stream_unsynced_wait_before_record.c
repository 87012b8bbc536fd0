/* The stream waits for the event before it is recorded, which is no wait at all.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case_event.h"

static void hand_over(void *in, hipEvent_t ready, hipStream_t first, hipStream_t second) {
#if BUG
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipStreamWaitEvent(second, ready, 0));
    CHECK(hipEventRecord(ready, first));
#else
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipEventRecord(ready, first));
    CHECK(hipStreamWaitEvent(second, ready, 0));
#endif
}
