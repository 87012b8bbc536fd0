/* A 3D copy takes one slice more than the volume has.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also SHAPE_MISMATCH;
 *         culprit hipMemcpy3D site=download; messenger hipMemcpy3D site=download */
#include "case.h"

enum { WIDTH = 64, HEIGHT = 8, DEPTH = 4 };

static char host[WIDTH * HEIGHT * (DEPTH + 1)];

void download(hipPitchedPtr volume, size_t slices) {
    hipMemcpy3DParms p = { .srcPtr = volume,
                           .dstPtr = { host, WIDTH, WIDTH, HEIGHT },
                           .extent = { WIDTH, HEIGHT, slices },
                           .kind = hipMemcpyDeviceToHost };
    CHECK(hipMemcpy3D(&p));
}

int main(void) {
    hipPitchedPtr volume;
    hipExtent extent = { WIDTH, HEIGHT, DEPTH };
    CHECK(hipMalloc3D(&volume, extent));
    CHECK(hipMemset3D(volume, 0, extent));
    download(volume, BUG ? DEPTH + 1 : DEPTH);
    CHECK(hipFree(volume.ptr));
    return 0;
}
