/* A stream is asked whether it is done, and the answer is ignored: it may have been yes this time.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=fetch; messenger none */
#include "case.h"

enum { COUNT = 1024 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void fetch(float *host, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(host, device, COUNT * sizeof(float), hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    static float host[COUNT];
    uint32_t count = COUNT;
    hipStream_t make, take;
    void *device;
    KERNEL_ENTER(fill);
    CHECK(hipStreamCreate(&make));
    CHECK(hipStreamCreate(&take));
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(LAUNCH(fill, 1, make, &device, &count));
#if BUG
    (void)hipStreamQuery(make);
#else
    while (hipStreamQuery(make) == hipErrorNotReady)
        ;
#endif
    fetch(host, device, take);
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(take));
    CHECK(hipStreamDestroy(make));
    return 0;
}
