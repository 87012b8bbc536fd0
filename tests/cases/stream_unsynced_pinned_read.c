/* The host reads the destination of an asynchronous copy after it waited for another stream.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit site=main; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { COUNT = 2000 };

void download(int *host, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(host, device, COUNT * sizeof *host, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    hipStream_t copy, other;
    void *device;
    int *host;
    CHECK(hipStreamCreate(&copy));
    CHECK(hipStreamCreate(&other));
    CHECK(hipMalloc(&device, COUNT * sizeof *host));
    CHECK(hipHostMalloc((void **)&host, COUNT * sizeof *host, hipHostMallocDefault));
    CHECK(hipMemset(device, 7, COUNT * sizeof *host));
    download(host, device, copy);
    CHECK(hipStreamSynchronize(BUG ? other : copy));
    volatile int first = host[0];
    (void)first;
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(copy));
    CHECK(hipStreamDestroy(other));
    return 0;
}
