/* Two streams upload into the same buffer; which of them comes last is not defined.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=upload; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

void upload(void *device, const void *host, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
}

int main(void) {
    hipStream_t stream[2];
    void *device[2];
    char *host[2];
    for (int i = 0; i < 2; i++) {
        CHECK(hipStreamCreate(&stream[i]));
        CHECK(hipMalloc(&device[i], BYTES));
        CHECK(hipHostMalloc((void **)&host[i], BYTES, 0));
        memset(host[i], i, BYTES);
    }
    upload(device[0], host[0], stream[0]);
    upload(device[BUG ? 0 : 1], host[1], stream[1]);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        CHECK(hipStreamDestroy(stream[i]));
        CHECK(hipFree(device[i]));
        CHECK(hipHostFree(host[i]));
    }
    return 0;
}
