/* A matrix without padding is copied as if its rows had the pitch of hipMallocPitch.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also SHAPE_MISMATCH;
 *         culprit hipMemcpy2DAsync site=upload; messenger hipMemcpy2DAsync site=upload
 * Run:    --watch-host */
#include "case.h"

enum { WIDTH = 300, HEIGHT = 40 };

void upload(void *device, size_t pitch, const void *host, hipStream_t stream) {
    CHECK(
        hipMemcpy2DAsync(device, pitch, host, WIDTH, WIDTH, HEIGHT, hipMemcpyHostToDevice, stream));
}

int main(void) {
    void *pitched, *plain, *host;
    size_t pitch;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipHostMalloc(&host, (size_t)WIDTH * HEIGHT, 0));
    CHECK(hipMallocPitch(&pitched, &pitch, WIDTH, HEIGHT));
    CHECK(hipMalloc(&plain, (size_t)WIDTH * HEIGHT));
    memset(host, 1, (size_t)WIDTH * HEIGHT);
    upload(pitched, pitch, host, stream);
    upload(plain, BUG ? pitch : WIDTH, host, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(plain));
    CHECK(hipFree(pitched));
    CHECK(hipHostFree(host));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
