/* A host function fills pinned memory, and an upload in another stream is not ordered after it. It
 * may have returned before the upload is even queued: nothing is unfinished then.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED; also STAGING_REUSE;
 *         culprit site=make; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

void make(void *data) {
    for (int i = 0; i < COUNT; i++)
        ((float *)data)[i] = (float)i;
}

void upload(void *device, const void *host, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
}

int main(void) {
    hipStream_t first, second;
    hipEvent_t made;
    void *device, *host;
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&made, hipEventDisableTiming));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc(&host, BYTES, hipHostMallocDefault));
    memset(host, 0, BYTES);
    CHECK(hipLaunchHostFunc(first, make, host));
    CHECK(hipEventRecord(made, first));
    if (!BUG)
        CHECK(hipStreamWaitEvent(second, made, 0));
    upload(device, host, second);
    CHECK(hipStreamSynchronize(second));
    CHECK(hipStreamSynchronize(first));
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
    CHECK(hipEventDestroy(made));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}
