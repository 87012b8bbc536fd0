/* Every request gets a stream of its own; one that returns early keeps it.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipStreamCreateWithFlags site=serve; messenger none */
#include "case.h"

int serve(void *memory, size_t bytes) {
    hipStream_t stream;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    if (bytes == 0) {
        if (!BUG)
            CHECK(hipStreamDestroy(stream));
        return 0;
    }
    CHECK(hipMemsetAsync(memory, 1, bytes, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
    return 1;
}

int main(void) {
    void *memory;
    int served = 0;
    CHECK(hipMalloc(&memory, 4096));
    for (size_t bytes = 0; bytes <= 4096; bytes += 1024)
        served += serve(memory, bytes);
    CHECK(hipFree(memory));
    return served == 4 ? 0 : 1;
}
