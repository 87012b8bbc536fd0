/* hipFree gets memory of malloc; the program does not check what it returns.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; culprit hipFree site=release;
 *         messenger hipFree site=release */
#include "case.h"

enum { BYTES = 4096 };

void release(void *host, void *device) {
    hipFree(device);
    if (BUG)
        hipFree(host);
    free(host);
}

int main(void) {
    void *host = calloc(1, BYTES), *device;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemcpy(device, host, BYTES, hipMemcpyHostToDevice));
    release(host, device);
    CHECK(hipDeviceSynchronize());
    return 0;
}
