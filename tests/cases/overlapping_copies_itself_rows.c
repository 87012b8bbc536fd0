/* The two halves of every row are swapped with a copy within the buffer; with a wrong width the
 * rows of source and destination overlap.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES;
 *         culprit hipMemcpy2DAsync site=shift; messenger none */
#include "case.h"

enum { PITCH = 512, ROWS = 8 };

void shift(char *rows, size_t width, hipStream_t stream) {
    CHECK(hipMemcpy2DAsync(rows + PITCH / 2, PITCH, rows, PITCH, width, ROWS,
                           hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    char *rows;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc((void **)&rows, PITCH * ROWS + PITCH));
    CHECK(hipMemsetAsync(rows, 1, PITCH * ROWS + PITCH, stream));
    shift(rows, BUG ? PITCH / 2 + 16 : PITCH / 2, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(rows));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
