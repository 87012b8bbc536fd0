/* A buffer is registered for fast uploads and freed without being unregistered.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipHostRegister site=upload; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 64 << 10 };

void upload(void *device, void *host) {
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, NULL));
    CHECK(hipDeviceSynchronize());
    if (!BUG)
        CHECK(hipHostUnregister(host));
}

int main(void) {
    void *device, *host = aligned_alloc(4096, BYTES);
    if (!host)
        return 1;
    memset(host, 1, BYTES);
    CHECK(hipMalloc(&device, BYTES));
    upload(device, host);
    CHECK(hipFree(device));
    free(host);
    return 0;
}
