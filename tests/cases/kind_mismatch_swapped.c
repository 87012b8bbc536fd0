/* The download was made from the upload by exchanging the pointers, and the direction was
 * forgotten.
 *
 * Expect: verdict FINDINGS; hypothesis KIND_MISMATCH; culprit hipMemcpy site=download;
 *         messenger none */
#include "case.h"

static char host[2048];

void download(const void *device) {
    CHECK(
        hipMemcpy(host, device, sizeof host, BUG ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
    download(device);
    CHECK(hipFree(device));
    return 0;
}
