/* A kernel gets a count that is one too large, and blocks begin at the start of a page, as with
 * most allocators: the write lands past the end of the buffer and before the guard page.
 *
 * Expect: verdict FINDINGS; hypothesis SIZE_MISMATCH; culprit kernel=fill site=fill_all;
 *         messenger none
 * Run:    GRETA_SOFT_CHECK=off */
#include "case.h"

enum { COUNT = 250 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void fill_all(float *data) {
    uint32_t count = COUNT + BUG;
    CHECK(LAUNCH(fill, 1, NULL, &data, &count));
}

int main(void) {
    float *data, host[COUNT];
    KERNEL_ENTER(fill);
    CHECK(hipMalloc((void **)&data, COUNT * sizeof *data));
    fill_all(data);
    CHECK(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(data));
    return host[3] == 3.0F ? 0 : 1;
}
