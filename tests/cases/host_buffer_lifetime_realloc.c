/* A registered buffer grows, and moves, while the upload from it may still run.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 256 << 10 };

void upload(void *device, const void *host, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
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
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    upload(device, host, stream);
    if (!BUG) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipHostUnregister(host));
    }
    char *more = realloc(host, 2 * BYTES);
    if (!more)
        return 1;
    free(more);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
