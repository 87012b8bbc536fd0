/* A launch with too many threads fails; the program asks for the last error three calls later and
 * takes it for that of a copy.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit kernel=fill site=start; messenger hipGetLastError site=check */
#include "case.h"

enum { COUNT = 128 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void start(void *memory, unsigned threads) {
    uint32_t count = COUNT;
    (void)hipLaunchKernel(&fill_stub, (dim3){ 1, 1, 1 }, (dim3){ threads, 1, 1 },
                          (void *[]){ &memory, &count }, 0, NULL);
}

void check(void) {
    hipError_t last = hipGetLastError();
    if (last != hipSuccess)
        fprintf(stderr, "copy: %s\n", hipGetErrorString(last));
}

int main(void) {
    static float host[COUNT];
    void *memory;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&memory, sizeof host));
    CHECK(hipMemset(memory, 0, sizeof host));
    start(memory, BUG ? 5000 : 64);
    CHECK(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    check();
    CHECK(hipFree(memory));
    return 0;
}
