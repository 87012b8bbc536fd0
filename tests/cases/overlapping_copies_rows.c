/* Two streams fill the left and the right columns of a matrix. Their rows interleave, which is fine
 * unless one of them is a column too wide.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpy2DAsync site=fill_columns; messenger none */
#include "case.h"

enum { ROWS = 40, COLUMNS = 64, HALF = COLUMNS / 2 };

void fill_columns(float *matrix, const float *from, size_t columns, hipStream_t stream) {
    size_t pitch = COLUMNS * sizeof(float);
    CHECK(hipMemcpy2DAsync(matrix, pitch, from, pitch, columns * sizeof(float), ROWS,
                           hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    const size_t bytes = (size_t)ROWS * COLUMNS * sizeof(float);
    hipStream_t left, right;
    float *matrix, *from;
    CHECK(hipStreamCreate(&left));
    CHECK(hipStreamCreate(&right));
    CHECK(hipMalloc((void **)&matrix, bytes));
    CHECK(hipMalloc((void **)&from, bytes));
    CHECK(hipMemset(from, 0, bytes));
    CHECK(hipDeviceSynchronize());
    fill_columns(matrix + HALF, from + HALF, HALF, right);
    fill_columns(matrix, from, BUG ? HALF + 1 : HALF, left);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(matrix));
    CHECK(hipFree(from));
    CHECK(hipStreamDestroy(left));
    CHECK(hipStreamDestroy(right));
    return 0;
}
