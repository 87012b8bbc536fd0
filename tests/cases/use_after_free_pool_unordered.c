/* Memory allocated in one stream's order is freed in another's while a kernel of the first still
 * writes it. That allocation and free are not ordered either is no finding of its own. hipFree in
 * the fixed program waits for the device.
 *
 * Expect: verdict FINDINGS|ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT?;
 *         culprit hipFreeAsync site=release; messenger none or hipDeviceSynchronize site=main */
#include "case.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void release(void *memory, hipStream_t stream) {
    if (BUG)
        CHECK(hipFreeAsync(memory, stream));
    else
        CHECK(hipFree(memory));
}

int main(void) {
    hipStream_t first, second;
    void *memory;
    uint32_t count = COUNT;
    KERNEL_ENTER(fill);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipMallocAsync(&memory, BYTES, first));
    CHECK(LAUNCH(fill, 1, first, &memory, &count));
    release(memory, second);
    CHECK(hipDeviceSynchronize());
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}
