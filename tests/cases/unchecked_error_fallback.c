/* The program tries a large buffer and falls back to a small one, which is right; but the error of
 * the first try stays, and the check after the launch takes it for the launch's.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipMalloc site=allocate; messenger hipGetLastError site=run */
#include "case.h"

enum { COUNT = 64 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void *allocate(void) {
    void *memory = NULL;
    if (hipMalloc(&memory, (size_t)1 << 50) == hipSuccess)
        return memory;
    if (!BUG)
        (void)hipGetLastError();
    CHECK(hipMalloc(&memory, COUNT * sizeof(float)));
    return memory;
}

int run(void *memory) {
    uint32_t count = COUNT;
    (void)LAUNCH(fill, 1, NULL, &memory, &count);
    hipError_t result = hipGetLastError();
    if (result != hipSuccess)
        fprintf(stderr, "fill: %s\n", hipGetErrorString(result));
    return result != hipSuccess;
}

int main(void) {
    KERNEL_ENTER(fill);
    void *memory = allocate();
    int failed = run(memory);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return failed;
}
