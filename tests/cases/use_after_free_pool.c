/* A temporary buffer is given back to the pool one kernel too early, in the same stream.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=second argument=temporary site=second_pass;
 *         messenger hipStreamSynchronize site=main */
#include "case.h"

enum { BYTES = 2000 };

KERNEL(first, { "temporary", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        memset(ARG(void *, 0), 1, BYTES);
}

KERNEL(second, { "out", 8, GRETA_SOFT_POINTER },
       { "temporary", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }) {
    if (work->first == 0)
        memcpy(ARG(void *, 0), ARG(const void *, 1), BYTES);
}

void second_pass(void *out, void *temporary, hipStream_t stream) {
    CHECK(LAUNCH(second, 1, stream, &out, &temporary));
}

int main(void) {
    void *out, *temporary;
    hipStream_t stream;
    KERNEL_ENTER(first);
    KERNEL_ENTER(second);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&out, BYTES));
    CHECK(hipMallocAsync(&temporary, BYTES, stream));
    CHECK(LAUNCH(first, 1, stream, &temporary));
    if (BUG)
        CHECK(hipFreeAsync(temporary, stream));
    second_pass(out, temporary, stream);
    if (!BUG)
        CHECK(hipFreeAsync(temporary, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
