/* Every step allocates anew what it could keep; only the last one is freed.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipMalloc site=resize; messenger none */
#include "case.h"

static void *buffer;

void resize(size_t bytes) {
    if (!BUG && buffer)
        CHECK(hipFree(buffer));
    CHECK(hipMalloc(&buffer, bytes));
}

int main(void) {
    for (size_t step = 1; step <= 5; step++) {
        resize(step * 1000);
        CHECK(hipMemset(buffer, 0, step * 1000));
    }
    CHECK(hipFree(buffer));
    return 0;
}
