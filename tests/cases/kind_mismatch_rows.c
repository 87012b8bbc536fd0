/* A 2D upload says device to device.
 *
 * Expect: verdict FINDINGS; hypothesis KIND_MISMATCH; culprit hipMemcpy2D site=upload;
 *         messenger none */
#include "case.h"

enum { WIDTH = 100, HEIGHT = 10 };

static char host[WIDTH * HEIGHT];

void upload(void *device, size_t pitch) {
    CHECK(hipMemcpy2D(device, pitch, host, WIDTH, WIDTH, HEIGHT,
                      BUG ? hipMemcpyDeviceToDevice : hipMemcpyHostToDevice));
}

int main(void) {
    void *device;
    size_t pitch;
    CHECK(hipMallocPitch(&device, &pitch, WIDTH, HEIGHT));
    upload(device, pitch);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(device));
    return 0;
}
