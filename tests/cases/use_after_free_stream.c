/* Memory is freed in the order of a stream that has been destroyed.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE;
 *         culprit hipFreeAsync site=finish; messenger hipFreeAsync site=finish */
#include "case.h"

void finish(void *memory, hipStream_t stream) {
    CHECK(hipFreeAsync(memory, stream));
}

int main(void) {
    hipStream_t stream;
    void *memory;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMallocAsync(&memory, 4096, stream));
    CHECK(hipMemsetAsync(memory, 0, 4096, stream));
    CHECK(hipStreamSynchronize(stream));
    if (BUG)
        CHECK(hipStreamDestroy(stream));
    finish(memory, stream);
    if (!BUG)
        CHECK(hipStreamDestroy(stream));
    CHECK(hipDeviceSynchronize());
    return 0;
}
