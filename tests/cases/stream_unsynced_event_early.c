/* The event that the reader waits for is recorded before the work it should stand for.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case_event.h"

static void hand_over(void *in, hipEvent_t ready, hipStream_t first, hipStream_t second) {
#if BUG
    CHECK(hipEventRecord(ready, first));
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipStreamWaitEvent(second, ready, 0));
#else
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipEventRecord(ready, first));
    CHECK(hipStreamWaitEvent(second, ready, 0));
#endif
}
