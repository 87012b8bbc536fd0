/* A function returns early when there is nothing to do, and keeps its scratch buffer.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipMalloc site=process; messenger none */
#include "case.h"

int process(size_t bytes) {
    void *scratch;
    CHECK(hipMalloc(&scratch, 4096));
    if (bytes == 0) {
        if (!BUG)
            CHECK(hipFree(scratch));
        return 0;
    }
    CHECK(hipMemset(scratch, 0, bytes));
    CHECK(hipFree(scratch));
    return 1;
}

int main(void) {
    for (size_t bytes = 0; bytes <= 4096; bytes += 1024)
        process(bytes);
    return 0;
}
