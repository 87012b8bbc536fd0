/* One pointer of a table was never set.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=clear_rows argument=row site=clear;
 *         messenger hipStreamSynchronize site=main */
#include "case.h"

enum { ROWS = 5, ROW = 2048 };

KERNEL(clear_rows, { "row", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        memset(ARG(void *, 0), 0, ROW);
}

void clear(void **row, int count, hipStream_t stream) {
    for (int i = 0; i < count; i++)
        CHECK(LAUNCH(clear_rows, 1, stream, &row[i]));
}

int main(void) {
    void *row[ROWS];
    hipStream_t stream;
    KERNEL_ENTER(clear_rows);
    CHECK(hipStreamCreate(&stream));
    memset(row, 0xa5, sizeof row);
    for (int i = 0; i < ROWS - 1; i++)
        CHECK(hipMalloc(&row[i], ROW));
    clear(row, BUG ? ROWS : ROWS - 1, stream);
    CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < ROWS - 1; i++)
        CHECK(hipFree(row[i]));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
