/* The program polls an event and frees the buffer when it is done; with its bug it takes "not
 * ready" for an answer as well and frees in the order of another stream.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT?;
 *         culprit hipFreeAsync site=release; messenger none or hipDeviceSynchronize */
#include "case.h"

enum { BYTES = 1 << 16 };

void release(void *memory, hipStream_t stream) {
    CHECK(hipFreeAsync(memory, stream));
}

int main(void) {
    hipStream_t stream, other;
    hipEvent_t done;
    void *memory;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    CHECK(hipEventCreate(&done));
    CHECK(hipMallocAsync(&memory, BYTES, stream));
    CHECK(hipMemsetAsync(memory, 0, BYTES, stream));
    CHECK(hipEventRecord(done, stream));
    if (BUG) {
        release(memory, other);
    } else {
        hipError_t result;
        while ((result = hipEventQuery(done)) == hipErrorNotReady)
            ;
        CHECK(result);
        release(memory, other);
    }
    CHECK(hipDeviceSynchronize());
    CHECK(hipEventDestroy(done));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipStreamDestroy(other));
    return 0;
}
