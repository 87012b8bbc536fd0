/* A pool of the program's own hands out blocks of one allocation, which it frees when it is
 * destroyed. With the bug the pool grows by a second block and forgets the first.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipMalloc site=grow; messenger none */
#include "case.h"

static char *base;
static size_t size, used;

void grow(size_t bytes) {
    if (base && !BUG)
        CHECK(hipFree(base));
    CHECK(hipMalloc((void **)&base, bytes));
    size = bytes;
    used = 0;
}

void *take(size_t bytes) {
    if (used + bytes > size)
        grow(2 * (size + bytes));
    used += bytes;
    return base + used - bytes;
}

int main(void) {
    for (int round = 0; round < 3; round++) {
        CHECK(hipMemset(take((size_t)4096 << round), 0, (size_t)4096 << round));
        CHECK(hipDeviceSynchronize());
    }
    CHECK(hipFree(base));
    return 0;
}
