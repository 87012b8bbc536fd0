/* Stream-ordered memory is never freed; destroying its stream does not free it.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipMallocAsync site=prepare; messenger none */
#include "case.h"

void *prepare(hipStream_t stream) {
    void *memory;
    CHECK(hipMallocAsync(&memory, 10000, stream));
    CHECK(hipMemsetAsync(memory, 0, 10000, stream));
    return memory;
}

int main(void) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    void *memory = prepare(stream);
    (void)memory;
    if (!BUG)
        CHECK(hipFreeAsync(memory, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
