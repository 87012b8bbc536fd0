/* The count of hipMemsetD32 is in elements; here it is given in bytes.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; culprit hipMemsetD32 site=clear;
 *         messenger hipMemsetD32 site=clear */
#include "case.h"

enum { COUNT = 512 };

void clear(void *device) {
    CHECK(hipMemsetD32(device, 0, BUG ? COUNT * sizeof(float) : COUNT));
}

int main(void) {
    float host[COUNT];
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    clear(device);
    CHECK(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(device));
    return 0;
}
