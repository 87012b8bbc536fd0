/* The program's own memory, registered, is overwritten while a download into it may still come.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also STREAM_UNSYNCED;
 *         culprit site=main; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 32 << 10 };

void download(char *host, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    hipStream_t stream;
    void *device;
    char *host = aligned_alloc(4096, BYTES);
    if (!host)
        return 1;
    memset(host, 0, BYTES);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemset(device, 1, BYTES));
    CHECK(hipDeviceSynchronize());
    download(host, device, stream);
    if (!BUG)
        CHECK(hipStreamSynchronize(stream));
    host[BYTES / 2] = 9;
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipHostUnregister(host));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    free(host);
    return 0;
}
