/* Rows and columns are exchanged: the transposition walks over the longer side in the shorter
 * direction.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SHAPE_MISMATCH; also UPSTREAM_KERNEL_FAULT SIZE_MISMATCH;
 *         culprit kernel=transpose argument=in site=turn; messenger hipStreamSynchronize site=main
 */
#include "case.h"

enum { ROWS = 50, COLUMNS = 200 };

KERNEL(transpose, { "out", 8, GRETA_SOFT_POINTER },
       { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }, { "rows", 4, 0 }, { "columns", 4, 0 }) {
    float *out = ARG(float *, 0);
    const float *in = ARG(const float *, 1);
    uint32_t rows = ARG(uint32_t, 2), columns = ARG(uint32_t, 3);
    for (uint32_t c = 0; work->first == 0 && c < columns; c++)
        for (uint32_t r = 0; r < rows; r++)
            out[c * rows + r] = in[r * COLUMNS + c];
}

void turn(void *out, void *in, uint32_t rows, uint32_t columns, hipStream_t stream) {
    CHECK(LAUNCH(transpose, 1, stream, &out, &in, &rows, &columns));
}

int main(void) {
    const size_t bytes = sizeof(float) * ROWS * COLUMNS;
    void *in, *out;
    hipStream_t stream;
    KERNEL_ENTER(transpose);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&in, bytes));
    CHECK(hipMalloc(&out, bytes));
    CHECK(hipMemsetAsync(in, 0, bytes, stream));
    if (BUG)
        turn(out, in, COLUMNS, ROWS, stream);
    else
        turn(out, in, ROWS, COLUMNS, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(out));
    CHECK(hipFree(in));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
