/* A table in device memory has four rows; the program counts them from 1 and copies the last one
 * past its end.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipMemcpyToSymbol site=set_row;
 *         messenger hipMemcpyToSymbol site=set_row */
#include "case.h"

enum { ROWS = 4, COLUMNS = 16 };

static char table; /* stands for the variable on the device, as in compiled HIP code */

void set_row(int row, const float *values) {
    CHECK(hipMemcpyToSymbol(&table, values, COLUMNS * sizeof(float),
                            (size_t)row * COLUMNS * sizeof(float), hipMemcpyHostToDevice));
}

int main(void) {
    static float values[COLUMNS];
    static char name[] = "table";
    __hipRegisterVar(NULL, &table, name, name, 0, ROWS * COLUMNS * sizeof(float), 0, 0);
    for (int row = 0; row < ROWS; row++)
        set_row(row + BUG, values);
    CHECK(hipDeviceSynchronize());
    return 0;
}
