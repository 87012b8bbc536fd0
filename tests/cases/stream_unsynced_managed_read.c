/* The host looks at managed memory while the kernel that fills it may still run.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit site=main; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { COUNT = 4096 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void start(float *values) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(fill, 1, NULL, &values, &count));
}

int main(void) {
    float *values;
    KERNEL_ENTER(fill);
    CHECK(hipMallocManaged((void **)&values, COUNT * sizeof *values, hipMemAttachGlobal));
    CHECK(hipMemset(values, 0, COUNT * sizeof *values));
    start(values);
    if (!BUG)
        CHECK(hipDeviceSynchronize());
    volatile float last = values[COUNT - 1];
    (void)last;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(values));
    return 0;
}
