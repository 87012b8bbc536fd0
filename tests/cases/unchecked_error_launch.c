/* A <<<...>>> launch with more threads per block than the device allows: the syntax has no result,
 * and nobody asks for the last error. The buffer keeps what it had.
 *
 * Expect: verdict FINDINGS; hypothesis UNCHECKED_ERROR;
 *         culprit kernel=fill site=run; messenger none */
#include "case.h"

enum { COUNT = 512 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

/* What a compiler makes of fill<<<1, threads>>>(memory, count). */
void run(void *memory, uint32_t count, uint32_t threads) {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    if (__hipPushCallConfiguration((dim3){ 1, 1, 1 }, (dim3){ threads, 1, 1 }, 0, NULL) != 0)
        return;
    (void)__hipPopCallConfiguration(&grid, &block, &shared, &stream);
    (void)hipLaunchKernel(&fill_stub, grid, block, (void *[]){ &memory, &count }, shared, stream);
}

int main(void) {
    static float host[COUNT];
    void *memory;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&memory, sizeof host));
    CHECK(hipMemset(memory, 0, sizeof host));
    run(memory, COUNT, BUG ? 2048 : COUNT);
    CHECK(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(memory));
    return 0;
}
