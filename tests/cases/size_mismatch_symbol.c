/* A table in device memory has 256 elements of float; the program copies as many doubles to it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; culprit hipMemcpyToSymbol site=set_table;
 *         messenger hipMemcpyToSymbol site=set_table */
#include "case.h"

enum { COUNT = 256 };

static char table; /* stands for the variable on the device, as in compiled HIP code */

void set_table(const void *values) {
    CHECK(hipMemcpyToSymbol(&table, values, COUNT * (BUG ? sizeof(double) : sizeof(float)), 0,
                            hipMemcpyHostToDevice));
}

int main(void) {
    static double values[COUNT];
    static char name[] = "table";
    __hipRegisterVar(NULL, &table, name, name, 0, COUNT * sizeof(float), 0, 0);
    set_table(values);
    CHECK(hipDeviceSynchronize());
    return 0;
}
