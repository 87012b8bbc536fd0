/* The device has no room for a buffer and nobody checks; after the launch that gets the null
 * pointer hipGetLastError tells of the allocation, as if the launch had failed.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         also INVALID_POINTER? UPSTREAM_KERNEL_FAULT?; culprit hipMalloc site=take;
 *         messenger none or hipGetLastError */
#include "case.h"

enum { COUNT = 256 };

KERNEL(count_up, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void *take(size_t bytes) {
    void *memory = NULL;
    (void)hipMalloc(&memory, bytes);
    return memory;
}

void fill(void *out) {
    uint32_t count = COUNT;
    (void)LAUNCH(count_up, 1, NULL, &out, &count);
    CHECK(hipGetLastError());
}

int main(void) {
    KERNEL_ENTER(count_up);
    void *out = take(BUG ? (size_t)1 << 50 : COUNT * sizeof(float));
    fill(out);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    return 0;
}
