/* A buffer is enlarged by a new allocation; the kernel still gets the old one, and freeing the new
 * one reports the fault.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=accumulate argument=sum site=step; messenger hipFree site=main */
#include "case.h"

KERNEL(accumulate, { "sum", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *sum = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        sum[i] += 1;
}

struct buffer {
    void *memory;
    uint32_t count;
};

static void grow(struct buffer *b, uint32_t count) {
    CHECK(hipFree(b->memory));
    CHECK(hipMalloc(&b->memory, count * sizeof(float)));
    CHECK(hipMemset(b->memory, 0, count * sizeof(float)));
    b->count = count;
}

void step(void *sum, uint32_t count) {
    CHECK(LAUNCH(accumulate, 1, NULL, &sum, &count));
}

int main(void) {
    struct buffer b = { NULL, 0 };
    KERNEL_ENTER(accumulate);
    grow(&b, 100);
    void *sum = b.memory;
    step(sum, 100);
    grow(&b, 200);
    step(BUG ? sum : b.memory, 100);
    CHECK(hipFree(b.memory));
    return 0;
}
