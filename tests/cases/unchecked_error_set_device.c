/* A process of several chooses its device by its rank, and does not look whether there is such a
 * device: all that it does goes to the first one.
 *
 * Expect: verdict FINDINGS; hypothesis UNCHECKED_ERROR; culprit hipSetDevice site=choose_device;
 *         messenger none */
#include "case.h"

enum { BYTES = 4096 };

int choose_device(int rank) {
    (void)hipSetDevice(rank);
    return rank;
}

int main(void) {
    void *memory;
    int rank = choose_device(BUG ? 3 : 0);
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMemset(memory, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return rank < 0;
}
