/* hipDeviceReset has freed the memory already.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipFree site=main;
 *         messenger hipFree site=main */
#include "case.h"

int main(void) {
    void *memory;
    CHECK(hipMalloc(&memory, 64));
    CHECK(hipMemset(memory, 0, 64));
    CHECK(hipDeviceReset());
    if (BUG)
        CHECK(hipFree(memory));
    return 0;
}
