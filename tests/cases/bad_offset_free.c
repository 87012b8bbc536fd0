/* The pointer that walked through the buffer is freed instead of the one to its start.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipFree site=walk;
 *         messenger hipFree site=walk */
#include "case.h"

enum { STEP = 512, STEPS = 8 };

void walk(void) {
    void *start;
    CHECK(hipMalloc(&start, STEP * STEPS));
    char *at = start;
    for (int i = 0; i < STEPS; i++, at += STEP)
        CHECK(hipMemset(at, i, STEP));
    CHECK(hipFree(BUG ? at - STEP : start));
}

int main(void) {
    walk();
    return 0;
}
