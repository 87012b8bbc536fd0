/* A sliding window moves its tail to the front with one copy, whose two sides overlap.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES;
 *         culprit hipMemcpy site=slide; messenger none */
#include "case.h"

enum { BYTES = 4096, STEP = 1024 };

void slide(char *window, char *spare) {
    if (BUG) {
        CHECK(hipMemcpy(window, window + STEP, BYTES - STEP, hipMemcpyDeviceToDevice));
    } else {
        CHECK(hipMemcpy(spare, window + STEP, BYTES - STEP, hipMemcpyDeviceToDevice));
        CHECK(hipMemcpy(window, spare, BYTES - STEP, hipMemcpyDeviceToDevice));
    }
    CHECK(hipMemset(window + BYTES - STEP, 0, STEP));
}

int main(void) {
    char *window, *spare;
    CHECK(hipMalloc((void **)&window, BYTES));
    CHECK(hipMalloc((void **)&spare, BYTES));
    CHECK(hipMemset(window, 1, BYTES));
    for (int i = 0; i < 3; i++)
        slide(window, spare);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(window));
    CHECK(hipFree(spare));
    return 0;
}
