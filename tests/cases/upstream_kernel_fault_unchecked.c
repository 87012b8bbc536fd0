/* The first of many launches is the bad one; no launch is checked, and the last download reports
 * the fault.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT; also BAD_OFFSET;
 *         culprit kernel=scatter argument=out site=first_step; messenger hipMemcpy site=download */
#include "case.h"

enum { COUNT = 1024 };

KERNEL(scatter, { "out", 8, GRETA_SOFT_POINTER }, { "at", 8, 0 }) {
    if (work->first == 0)
        ARG(float *, 0)[ARG(int64_t, 1)] = 1;
}

KERNEL(step, { "x", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        ARG(float *, 0)[0] += 1;
}

void first_step(void *x) {
    int64_t at = BUG ? -5000 : 5;
    (void)LAUNCH(scatter, 1, NULL, &x, &at);
}

void download(const void *x) {
    static float host[COUNT];
    CHECK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
}

int main(void) {
    void *x, *y;
    KERNEL_ENTER(scatter);
    KERNEL_ENTER(step);
    CHECK(hipMalloc(&x, COUNT * sizeof(float)));
    CHECK(hipMalloc(&y, COUNT * sizeof(float)));
    CHECK(hipMemset(x, 0, COUNT * sizeof(float)));
    CHECK(hipMemset(y, 0, COUNT * sizeof(float)));
    first_step(x);
    for (int i = 0; i < 20; i++)
        (void)LAUNCH(step, 1, NULL, &y);
    download(y);
    CHECK(hipFree(y));
    CHECK(hipFree(x));
    return 0;
}
