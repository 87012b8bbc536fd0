/* Memory from a pool is copied to another buffer before anything has been written to it.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpyAsync site=publish; messenger none */
#include "case.h"

enum { BYTES = 5000 };

void publish(void *to, const void *from, hipStream_t stream) {
    CHECK(hipMemcpyAsync(to, from, BYTES, hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    hipStream_t stream;
    void *scratch, *shared;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&shared, BYTES));
    CHECK(hipMallocAsync(&scratch, BYTES, stream));
    if (!BUG)
        CHECK(hipMemsetAsync(scratch, 1, BYTES, stream));
    publish(shared, scratch, stream);
    CHECK(hipFreeAsync(scratch, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(shared));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
