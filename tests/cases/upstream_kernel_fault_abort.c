/* As ROCr does by default, the device ends the process at the fault: the call that was waiting
 * never returns.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT; also INVALID_POINTER;
 *         culprit kernel=store argument=out site=launch;
 *         messenger none or hipDeviceSynchronize site=main or hipLaunchKernel site=launch
 * Run:    GRETA_SOFT_FAULT=abort */
#include "case.h"

KERNEL(store, { "out", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        *ARG(float *, 0) = 1;
}

void launch(void *out) {
    CHECK(LAUNCH(store, 1, NULL, &out));
}

int main(void) {
    void *out;
    KERNEL_ENTER(store);
    CHECK(hipMalloc(&out, 4));
    launch(BUG ? NULL : out);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    return 0;
}
