/* A callback of one stream reads what a copy in another stream brings; the two streams merely start
 * together.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit site=look; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { COUNT = 1500 };

static volatile int seen;

void look(hipStream_t stream, hipError_t status, void *data) {
    (void)stream;
    if (status == hipSuccess)
        seen = ((const int *)data)[COUNT / 2];
}

void download(int *host, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(host, device, COUNT * sizeof *host, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    hipStream_t copy, other;
    void *device;
    int *host;
    CHECK(hipStreamCreateWithFlags(&copy, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, COUNT * sizeof *host));
    CHECK(hipHostMalloc((void **)&host, COUNT * sizeof *host, hipHostMallocDefault));
    CHECK(hipMemset(device, 7, COUNT * sizeof *host));
    CHECK(hipDeviceSynchronize());
    download(host, device, copy);
    CHECK(hipStreamAddCallback(BUG ? other : copy, look, host, 0));
    CHECK(hipStreamSynchronize(other));
    CHECK(hipStreamSynchronize(copy));
    CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(copy));
    CHECK(hipStreamDestroy(other));
    return 0;
}
