/* A position buffer has 2 bytes per element where the kernel reads 4; the copy of the result
 * reports the fault.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=rope argument=pos site=rotate; messenger hipMemcpy site=download */
#include "case.h"

enum { COUNT = 4096 };

static float host[COUNT];

KERNEL(rope, { "x", 8, GRETA_SOFT_POINTER }, { "pos", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *x = ARG(float *, 0);
    const int32_t *pos = ARG(const int32_t *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        x[i] += (float)pos[i];
}

void rotate(float *x, int32_t *pos) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(rope, 1, NULL, &x, &pos, &count));
}

void download(const float *x) {
    CHECK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
}

int main(void) {
    const size_t bytes = COUNT * (BUG ? sizeof(int16_t) : sizeof(int32_t));
    void *x, *pos;
    KERNEL_ENTER(rope);
    CHECK(hipMalloc(&x, sizeof host));
    CHECK(hipMalloc(&pos, bytes));
    CHECK(hipMemset(x, 0, sizeof host));
    CHECK(hipMemset(pos, 0, bytes));
    rotate(x, pos);
    download(x);
    CHECK(hipFree(pos));
    CHECK(hipFree(x));
    return 0;
}
