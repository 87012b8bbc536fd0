/* A kernel runs into its own assertion; waiting for an event of another stream reports it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT; culprit kernel=check site=verify;
 *         messenger hipStreamSynchronize site=main */
#include "case.h"

KERNEL(check, { "value", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }) {
    if (work->first == 0 && *ARG(const uint32_t *, 0) != 7)
        __builtin_trap();
}

void verify(void *value, hipStream_t stream) {
    CHECK(LAUNCH(check, 1, stream, &value));
}

int main(void) {
    uint32_t host = BUG ? 6 : 7;
    void *value;
    hipStream_t stream;
    KERNEL_ENTER(check);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&value, sizeof host));
    CHECK(hipMemcpy(value, &host, sizeof host, hipMemcpyHostToDevice));
    verify(value, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(value));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
