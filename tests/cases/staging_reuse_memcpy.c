/* The pinned buffer is refilled by memcpy() while the last upload may still read it. The access
 * happens inside the C library and must be attributed to its caller.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also STREAM_UNSYNCED;
 *         culprit site=refill; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 16 << 10 };

void upload(char *device, const char *staging, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, staging, BYTES, hipMemcpyHostToDevice, stream));
}

/* Through a pointer, so that no compiler puts its own code in place of the call. */
void refill(char *staging, const char *from) {
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    copy(staging, from, BYTES);
}

int main(void) {
    hipStream_t stream;
    char *device, *staging, *source = calloc(2, BYTES);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc((void **)&device, 2 * BYTES));
    CHECK(hipHostMalloc((void **)&staging, BYTES, 0));
    refill(staging, source);
    upload(device, staging, stream);
    if (!BUG)
        CHECK(hipStreamSynchronize(stream));
    refill(staging, source + BYTES);
    upload(device + BYTES, staging, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipHostFree(staging));
    CHECK(hipStreamDestroy(stream));
    free(source);
    return 0;
}
