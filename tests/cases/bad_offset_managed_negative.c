/* Row numbers start with one in this kernel; called with row 0 it writes before managed memory.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=add_row argument=table site=add; messenger hipDeviceSynchronize site=main
 * Run:    --watch-host */
#include "case.h"

enum { ROWS = 16, ROW = 1024 };

KERNEL(add_row, { "table", 8, GRETA_SOFT_POINTER }, { "row", 4, 0 }) {
    float *at = ARG(float *, 0) + ((ptrdiff_t)ARG(int32_t, 1) - 1) * ROW;
    for (uint32_t i = 0; work->first == 0 && i < ROW; i++)
        at[i] += 1;
}

void add(float *table, int32_t row) {
    CHECK(LAUNCH(add_row, 1, NULL, &table, &row));
}

int main(void) {
    void *table;
    KERNEL_ENTER(add_row);
    CHECK(hipMallocManaged(&table, ROWS * ROW * sizeof(float), hipMemAttachGlobal));
    memset(table, 0, ROWS * ROW * sizeof(float));
    for (int32_t row = BUG ? 0 : 1; row <= ROWS - 1; row++)
        add(table, row);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(table));
    return 0;
}
