/* A download asks for the bytes of doubles from a buffer of floats.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; culprit hipMemcpy site=download;
 *         messenger hipMemcpy site=download */
#include "case.h"

enum { COUNT = 1000 };

static double host[COUNT];

void download(const void *device) {
    CHECK(hipMemcpy(host, device, COUNT * (BUG ? sizeof(double) : sizeof(float)),
                    hipMemcpyDeviceToHost));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, COUNT * sizeof(float)));
    CHECK(hipMemset(device, 0, COUNT * sizeof(float)));
    download(device);
    CHECK(hipFree(device));
    return 0;
}
