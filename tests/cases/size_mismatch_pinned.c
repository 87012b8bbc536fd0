/* The pinned buffer on the host is too small for what the device has; the loop checks no result,
 * and only at the end does the program ask whether anything went wrong.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UNCHECKED_ERROR?;
 *         culprit hipMemcpyAsync site=fetch; messenger hipMemcpyAsync site=fetch
 * Run:    --watch-host */
#include "case.h"

enum { COUNT = 2000, ROUNDS = 4 };

void fetch(float *staging, const float *device, hipStream_t stream) {
    hipMemcpyAsync(staging, device, COUNT * sizeof(float), hipMemcpyDeviceToHost, stream);
}

int main(void) {
    void *device, *staging;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, COUNT * sizeof(float)));
    CHECK(hipHostMalloc(&staging, (BUG ? COUNT / 2 : COUNT) * sizeof(float), 0));
    CHECK(hipMemsetAsync(device, 0, COUNT * sizeof(float), stream));
    for (int i = 0; i < ROUNDS; i++) {
        fetch(staging, device, stream);
        hipStreamSynchronize(stream);
    }
    hipError_t error = hipGetLastError();
    if (error != hipSuccess)
        fprintf(stderr, "something failed: %s\n", hipGetErrorString(error));
    CHECK(hipHostFree(staging));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return error != hipSuccess;
}
