/* A copy between two buffers of the device says that its source is the host's.
 *
 * Expect: verdict FINDINGS; hypothesis KIND_MISMATCH; culprit hipMemcpyAsync site=duplicate;
 *         messenger none */
#include "case.h"

enum { BYTES = 7000 };

void duplicate(void *to, const void *from, hipStream_t stream) {
    CHECK(hipMemcpyAsync(to, from, BYTES, BUG ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice,
                         stream));
}

int main(void) {
    void *from, *to;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMallocAsync(&from, BYTES, stream));
    CHECK(hipMallocAsync(&to, BYTES, stream));
    CHECK(hipMemsetAsync(from, 3, BYTES, stream));
    duplicate(to, from, stream);
    CHECK(hipFreeAsync(from, stream));
    CHECK(hipFreeAsync(to, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
