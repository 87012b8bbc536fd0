/* A buffer is given back to its pool twice, in the order of one stream.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipFreeAsync site=give_back;
 *         messenger hipFreeAsync site=give_back */
#include "case.h"

void give_back(void *memory, hipStream_t stream) {
    CHECK(hipFreeAsync(memory, stream));
}

int main(void) {
    void *memory;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMallocAsync(&memory, 10000, stream));
    CHECK(hipMemsetAsync(memory, 0, 10000, stream));
    CHECK(hipFreeAsync(memory, stream));
    if (BUG)
        give_back(memory, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
