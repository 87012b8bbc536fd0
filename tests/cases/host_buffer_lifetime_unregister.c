/* A buffer is unregistered and refilled while the upload from it may still run: HIP documents that
 * hipFree and hipHostFree wait, but not that hipHostUnregister does.
 *
 * Expect: verdict FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         culprit hipMemcpyAsync site=upload; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 256 << 10 };

void upload(void *device, void *host, hipStream_t stream) {
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
    if (!BUG)
        CHECK(hipStreamSynchronize(stream));
    CHECK(hipHostUnregister(host));
}

int main(void) {
    hipStream_t stream;
    void *device;
    char *host = malloc(BYTES);
    if (!host)
        return 1;
    memset(host, 1, BYTES);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    upload(device, host, stream);
    memset(host, 2, BYTES);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    free(host);
    return 0;
}
