/* The device has no room for a buffer, nobody checks, and a kernel gets the null pointer.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         also INVALID_POINTER UPSTREAM_KERNEL_FAULT; culprit hipMalloc site=prepare;
 *         messenger hipDeviceSynchronize site=main */
#include "case.h"

enum { COUNT = 256 };

KERNEL(scale, { "out", 8, GRETA_SOFT_POINTER }, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    const float *in = ARG(const float *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        out[i] = 2 * in[i];
}

void *prepare(size_t bytes) {
    void *memory = NULL;
    (void)hipMalloc(&memory, bytes);
    return memory;
}

void launch(void *out, void *in) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(scale, 1, NULL, &out, &in, &count));
}

int main(void) {
    KERNEL_ENTER(scale);
    void *in = prepare(COUNT * sizeof(float));
    void *out = prepare(BUG ? (size_t)1 << 50 : COUNT * sizeof(float));
    CHECK(hipMemset(in, 0, COUNT * sizeof(float)));
    launch(out, in);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    return 0;
}
