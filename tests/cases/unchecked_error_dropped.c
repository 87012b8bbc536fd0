/* A launch by function with more threads per block than the device allows. It is refused, its
 * result is not looked at, the buffer keeps what it had and nothing else fails. The fixed program
 * looks, and tries again with fewer.
 *
 * Expect: verdict FINDINGS; hypothesis UNCHECKED_ERROR; culprit kernel=fill site=run; messenger
 *         none */
#include "case.h"

enum { COUNT = 512, TOO_MANY = 2048 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

static hipError_t launch(void *memory, uint32_t count, uint32_t threads) {
    return hipLaunchKernel(&fill_stub, (dim3){ 1, 1, 1 }, (dim3){ threads, 1, 1 },
                           (void *[]){ &memory, &count }, 0, NULL);
}

void run(void *memory) {
#if BUG
    uint32_t count = COUNT;
    (void)hipLaunchKernel(&fill_stub, (dim3){ 1, 1, 1 }, (dim3){ TOO_MANY, 1, 1 },
                          (void *[]){ &memory, &count }, 0, NULL);
    (void)launch;
#else
    if (launch(memory, COUNT, TOO_MANY) != hipSuccess) {
        (void)hipGetLastError();
        CHECK(launch(memory, COUNT, COUNT));
    }
#endif
    CHECK(hipDeviceSynchronize());
}

int main(void) {
    static float host[COUNT];
    void *memory;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&memory, sizeof host));
    CHECK(hipMemset(memory, 0, sizeof host));
    run(memory);
    CHECK(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(memory));
    return 0;
}
