/* The error path frees the buffer, and the common end frees it again.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipFree site=finish;
 *         messenger hipFree site=finish */
#include "case.h"

static void *buffer;

void finish(void) {
    if (buffer)
        CHECK(hipFree(buffer));
    buffer = NULL;
}

static int compute(void) {
    CHECK(hipMalloc(&buffer, 1000));
    CHECK(hipMemset(buffer, 0, 1000));
    CHECK(hipFree(buffer));
    if (!BUG)
        buffer = NULL;
    return -1;
}

int main(void) {
    if (compute() < 0)
        finish();
    return 0;
}
