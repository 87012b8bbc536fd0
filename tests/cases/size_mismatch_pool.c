/* A temporary buffer from the stream's pool has room for half of what the kernel writes. The other
 * stream's work is fine; the wait for it reports the fault.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=expand argument=out site=work_on; messenger hipDeviceSynchronize site=main
 */
#include "case.h"

enum { COUNT = 1024 };

KERNEL(expand, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }, { "out", 8, GRETA_SOFT_POINTER },
       { "count", 4, 0 }) {
    const float *in = ARG(const float *, 0);
    float *out = ARG(float *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        out[2 * i] = out[2 * i + 1] = in[i];
}

void work_on(float *in, hipStream_t stream) {
    void *out;
    uint32_t count = COUNT;
    CHECK(hipMallocAsync(&out, (BUG ? 1 : 2) * COUNT * sizeof(float), stream));
    CHECK(LAUNCH(expand, 1, stream, &in, &out, &count));
    CHECK(hipFreeAsync(out, stream));
}

int main(void) {
    void *in, *other;
    hipStream_t stream, side;
    KERNEL_ENTER(expand);
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&side, hipStreamNonBlocking));
    CHECK(hipMalloc(&in, COUNT * sizeof(float)));
    CHECK(hipMalloc(&other, COUNT * sizeof(float)));
    CHECK(hipMemsetAsync(in, 0, COUNT * sizeof(float), stream));
    work_on(in, stream);
    CHECK(hipMemsetAsync(other, 0, COUNT * sizeof(float), side));
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(other));
    CHECK(hipFree(in));
    CHECK(hipStreamDestroy(side));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
