/* hipDeviceReset frees all memory of the device; a pointer from before it is used again.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; culprit hipMemcpy site=reload;
 *         messenger hipMemcpy site=reload */
#include "case.h"

static char host[1024];

void reload(void *device) {
    CHECK(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    reload(device);
    CHECK(hipDeviceReset());
    if (!BUG)
        CHECK(hipMalloc(&device, sizeof host));
    reload(device);
    CHECK(hipFree(device));
    return 0;
}
