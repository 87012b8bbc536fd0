/* The pinned buffer is filled for the next upload while the last one may still read it.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also STREAM_UNSYNCED;
 *         culprit site=fill; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 16 << 10 };

void upload(char *device, const char *staging, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, staging, BYTES, hipMemcpyHostToDevice, stream));
}

void fill(char *staging, int value) {
    for (int i = 0; i < BYTES; i++)
        staging[i] = (char)value;
}

int main(void) {
    hipStream_t stream;
    char *device, *staging;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc((void **)&device, 2 * BYTES));
    CHECK(hipHostMalloc((void **)&staging, BYTES, 0));
    fill(staging, 1);
    upload(device, staging, stream);
    if (!BUG)
        CHECK(hipStreamSynchronize(stream));
    fill(staging, 2);
    upload(device + BYTES, staging, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipHostFree(staging));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
