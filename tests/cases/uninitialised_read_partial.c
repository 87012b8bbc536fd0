/* The buffer is cleared with a count of elements where bytes are expected, and downloaded whole.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpyAsync site=fetch; messenger none */
#include "case.h"

enum { COUNT = 777 };

void fetch(float *host, const float *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(host, device, COUNT * sizeof *host, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    static float host[COUNT];
    hipStream_t stream;
    float *device;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc((void **)&device, sizeof host));
    CHECK(hipMemsetAsync(device, 0, BUG ? COUNT : sizeof host, stream));
    fetch(host, device, stream);
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
