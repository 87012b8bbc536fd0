/* The result is downloaded after the buffers were released.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; culprit hipMemcpy site=download;
 *         messenger hipMemcpy site=download */
#include "case.h"

static char host[3000];

void download(const void *device) {
    CHECK(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(hipMemset(device, 0, sizeof host));
    if (!BUG)
        download(device);
    CHECK(hipFree(device));
    if (BUG)
        download(device);
    return 0;
}
