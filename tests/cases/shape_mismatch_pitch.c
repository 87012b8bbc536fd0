/* The pitch of the host's rows is given in elements instead of bytes.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SHAPE_MISMATCH; culprit hipMemcpy2D site=upload;
 *         messenger hipMemcpy2D site=upload */
#include "case.h"

enum { COLUMNS = 64, ROWS = 16 };

static float host[ROWS][COLUMNS];

void upload(void *device, size_t pitch) {
    CHECK(hipMemcpy2D(device, pitch, host, BUG ? COLUMNS : COLUMNS * sizeof(float),
                      COLUMNS * sizeof(float), ROWS, hipMemcpyHostToDevice));
}

int main(void) {
    void *device;
    size_t pitch;
    CHECK(hipMallocPitch(&device, &pitch, COLUMNS * sizeof(float), ROWS));
    upload(device, pitch);
    CHECK(hipFree(device));
    return 0;
}
