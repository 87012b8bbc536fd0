/* A smoothing kernel also writes the element before its first one. The buffer does not fill its
 * page, so that no guard catches it: only the pattern in front of the buffer shows the write.
 *
 * Expect: verdict FINDINGS; hypothesis BAD_OFFSET; culprit kernel=smooth site=smooth_all;
 *         messenger none */
#include "case.h"

enum { COUNT = 250 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

KERNEL(smooth, { "data", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }, { "radius", 4, 0 }) {
    float *data = ARG(float *, 0);
    int first = -ARG(int, 2), count = (int)ARG(uint32_t, 1);
    for (int i = first; work->first == 0 && i < count; i++)
        data[i] = i < 0 ? 0 : data[i] * 0.5F;
}

void fill_all(float *data) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(fill, 1, NULL, &data, &count));
}

void smooth_all(float *data) {
    uint32_t count = COUNT;
    int radius = BUG ? 1 : 0;
    CHECK(LAUNCH(smooth, 1, NULL, &data, &count, &radius));
}

int main(void) {
    float *data, host[COUNT];
    KERNEL_ENTER(fill);
    KERNEL_ENTER(smooth);
    CHECK(hipMalloc((void **)&data, COUNT * sizeof *data));
    fill_all(data);
    smooth_all(data);
    fill_all(data);
    CHECK(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(data));
    return host[3] == 3.0F ? 0 : 1;
}
