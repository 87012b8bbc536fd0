/* Asking what a pointer is fails for plain host memory, which the program knows and expects; but
 * the error stays and the check after a launch reports it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipHostGetFlags site=is_pinned; messenger hipGetLastError site=run */
#include "case.h"

enum { COUNT = 64 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

int is_pinned(void *pointer) {
    unsigned flags;
    hipError_t result = hipHostGetFlags(&flags, pointer);
    if (result != hipSuccess && !BUG)
        (void)hipGetLastError();
    return result == hipSuccess;
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
    static float host[COUNT];
    void *memory;
    int failed = 0;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&memory, sizeof host));
    if (!is_pinned(host))
        failed = run(memory);
    CHECK(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(memory));
    return failed;
}
