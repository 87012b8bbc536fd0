/* An image is uploaded row by row, but with the width in pixels instead of bytes: the right half of
 * every row is never written, and is read by the download of whole rows.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpy2D site=download; messenger none */
#include "case.h"

enum { WIDTH = 100, HEIGHT = 20, ROW = WIDTH * sizeof(uint16_t) };

static uint16_t image[HEIGHT][WIDTH], back[HEIGHT][WIDTH];

void upload(void *device, size_t pitch, size_t width) {
    CHECK(hipMemcpy2D(device, pitch, image, ROW, width, HEIGHT, hipMemcpyHostToDevice));
}

void download(void *device, size_t pitch) {
    CHECK(hipMemcpy2D(back, ROW, device, pitch, ROW, HEIGHT, hipMemcpyDeviceToHost));
}

int main(void) {
    void *device;
    size_t pitch;
    CHECK(hipMallocPitch(&device, &pitch, ROW, HEIGHT));
    upload(device, pitch, BUG ? WIDTH : ROW);
    download(device, pitch);
    CHECK(hipFree(device));
    return 0;
}
