/* A kernel multiplies a row number by a stride in bytes and adds that to a pointer to floats: it
 * writes far away.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=put argument=table site=put_row; messenger hipStreamSynchronize site=main
 */
#include "case.h"

enum { ROWS = 64, ROW = 128 };

KERNEL(put, { "table", 8, GRETA_SOFT_POINTER }, { "row", 4, 0 }, { "stride", 4, 0 }) {
    float *at = ARG(float *, 0) + (size_t)ARG(uint32_t, 1) * ARG(uint32_t, 2);
    for (uint32_t i = 0; work->first == 0 && i < ROW; i++)
        at[i] = 1;
}

void put_row(float *table, uint32_t row, hipStream_t stream) {
    uint32_t stride = BUG ? ROW * sizeof(float) : ROW;
    CHECK(LAUNCH(put, 1, stream, &table, &row, &stride));
}

int main(void) {
    void *table;
    hipStream_t stream;
    KERNEL_ENTER(put);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&table, ROWS * ROW * sizeof(float)));
    put_row(table, ROWS - 1, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(table));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
