/* Two streams download into one pinned buffer.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also OVERLAPPING_COPIES STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=download; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

void download(void *staging, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(staging, device, BYTES, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    hipStream_t stream[2];
    void *device[2], *staging;
    CHECK(hipHostMalloc(&staging, BYTES, 0));
    for (int i = 0; i < 2; i++) {
        CHECK(hipStreamCreate(&stream[i]));
        CHECK(hipMalloc(&device[i], BYTES));
        CHECK(hipMemset(device[i], i, BYTES));
    }
    download(staging, device[0], stream[0]);
    if (!BUG)
        CHECK(hipStreamSynchronize(stream[0]));
    download(staging, device[1], stream[1]);
    CHECK(hipStreamSynchronize(stream[1]));
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        CHECK(hipFree(device[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    CHECK(hipHostFree(staging));
    return 0;
}
