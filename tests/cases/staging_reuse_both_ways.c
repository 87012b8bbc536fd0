/* One pinned buffer serves uploads and downloads; the download does not wait for the upload.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also OVERLAPPING_COPIES STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=download; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 10000 };

void upload(void *device, const void *staging, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, staging, BYTES, hipMemcpyHostToDevice, stream));
}

void download(void *staging, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(staging, device, BYTES, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    hipStream_t up, down;
    hipEvent_t sent;
    void *in, *out, *staging;
    CHECK(hipStreamCreateWithFlags(&up, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&down, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&sent, hipEventDisableTiming));
    CHECK(hipHostMalloc(&staging, BYTES, 0));
    memset(staging, 5, BYTES);
    CHECK(hipMalloc(&in, BYTES));
    CHECK(hipMalloc(&out, BYTES));
    CHECK(hipMemset(out, 1, BYTES));
    CHECK(hipDeviceSynchronize());
    upload(in, staging, up);
    CHECK(hipEventRecord(sent, up));
    if (!BUG)
        CHECK(hipStreamWaitEvent(down, sent, 0));
    download(staging, out, down);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostFree(staging));
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipEventDestroy(sent));
    CHECK(hipStreamDestroy(up));
    CHECK(hipStreamDestroy(down));
    return 0;
}
