/* A copy reads from pinned host memory that hipHostFree has given back.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT?;
 *         culprit hipMemcpy site=upload; messenger hipMemcpy site=upload */
#include "case.h"

enum { BYTES = 8192 };

void upload(void *device, const void *staging) {
    CHECK(hipMemcpy(device, staging, BYTES, hipMemcpyHostToDevice));
}

int main(void) {
    void *device, *staging;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc(&staging, BYTES, hipHostMallocDefault));
    memset(staging, 1, BYTES);
    upload(device, staging);
    if (BUG)
        CHECK(hipHostFree(staging));
    upload(device, staging);
    if (!BUG)
        CHECK(hipHostFree(staging));
    CHECK(hipFree(device));
    return 0;
}
