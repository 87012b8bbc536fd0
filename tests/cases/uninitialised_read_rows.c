/* All rows of a pitched buffer but the last are uploaded; then all of them are copied to another
 * buffer.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpy2D site=download; messenger none */
#include "case.h"

enum { WIDTH = 100, ROWS = 12 };

void download(void *host, const void *device, size_t pitch) {
    CHECK(hipMemcpy2D(host, WIDTH, device, pitch, WIDTH, ROWS, hipMemcpyDeviceToHost));
}

int main(void) {
    static char host[WIDTH * ROWS];
    void *device;
    size_t pitch;
    CHECK(hipMallocPitch(&device, &pitch, WIDTH, ROWS));
    CHECK(hipMemcpy2D(device, pitch, host, WIDTH, WIDTH, BUG ? ROWS - 1 : ROWS,
                      hipMemcpyHostToDevice));
    download(host, device, pitch);
    CHECK(hipFree(device));
    return 0;
}
