/* An event is destroyed too early: the record that would have used it fails.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE;
 *         culprit hipEventRecord site=mark; messenger hipEventRecord site=mark */
#include "case.h"

void mark(hipEvent_t event, hipStream_t stream) {
    CHECK(hipEventRecord(event, stream));
}

int main(void) {
    hipStream_t stream;
    hipEvent_t event;
    void *memory;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipEventCreate(&event));
    CHECK(hipMalloc(&memory, 4096));
    CHECK(hipMemsetAsync(memory, 0, 4096, stream));
    if (BUG)
        CHECK(hipEventDestroy(event));
    mark(event, stream);
    CHECK(hipStreamSynchronize(stream));
    if (!BUG)
        CHECK(hipEventDestroy(event));
    CHECK(hipFree(memory));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
