/* The event is recorded in the stream that waits for it, not in the one that works.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case.h"

enum { COUNT = 512 };

KERNEL(sum, { "out", 8, GRETA_SOFT_POINTER }, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *out = ARG(float *, 0), total = 0;
    const float *in = ARG(const float *, 1);
    if (work->first)
        return;
    for (uint32_t i = 0; i < ARG(uint32_t, 2); i++)
        total += in[i];
    out[0] = total;
}

void reduce(void *out, void *in, hipStream_t stream) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, stream, &out, &in, &count));
}

int main(void) {
    hipStream_t first, second;
    hipEvent_t ready;
    void *in, *out;
    float total;
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreate(&ready));
    CHECK(hipMalloc(&in, COUNT * sizeof(float)));
    CHECK(hipMalloc(&out, sizeof total));
#if BUG
    CHECK(hipMemsetAsync(in, 0, COUNT * sizeof(float), first));
    CHECK(hipEventRecord(ready, second));
    CHECK(hipStreamWaitEvent(second, ready, 0));
#else
    CHECK(hipMemsetAsync(in, 0, COUNT * sizeof(float), first));
    CHECK(hipEventRecord(ready, first));
    CHECK(hipStreamWaitEvent(second, ready, 0));
#endif
    reduce(out, in, second);
    CHECK(hipMemcpyAsync(&total, out, sizeof total, hipMemcpyDeviceToHost, second));
    CHECK(hipStreamSynchronize(second));
    CHECK(hipStreamSynchronize(first));
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipEventDestroy(ready));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}
