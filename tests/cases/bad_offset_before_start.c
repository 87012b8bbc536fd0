/* A halo of one row is copied from before the first row.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipMemcpy site=copy_halo;
 *         messenger hipMemcpy site=copy_halo */
#include "case.h"

enum { ROW = 640, ROWS = 32 };

static char halo[ROW];

void copy_halo(const char *grid, int row) {
    CHECK(hipMemcpy(halo, grid + (row - 1) * ROW, ROW, hipMemcpyDeviceToHost));
}

int main(void) {
    void *grid;
    CHECK(hipMalloc(&grid, ROW * ROWS));
    CHECK(hipMemset(grid, 0, ROW * ROWS));
    for (int row = BUG ? 0 : 1; row < ROWS; row++)
        copy_halo(grid, row);
    CHECK(hipFree(grid));
    return 0;
}
