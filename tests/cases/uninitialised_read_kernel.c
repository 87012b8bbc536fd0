/* A kernel gets weights that were never uploaded: the upload went to another buffer.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit kernel=sum site=run; messenger none */
#include "case.h"

enum { COUNT = 300 };

KERNEL(sum, { "out", 8, GRETA_SOFT_POINTER }, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *out = ARG(float *, 0), total = 0;
    const float *in = ARG(const float *, 1);
    if (work->first)
        return;
    for (uint32_t i = 0; i < ARG(uint32_t, 2); i++)
        total += in[i];
    out[0] = total;
}

void run(void *out, void *weights) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, NULL, &out, &weights, &count));
}

int main(void) {
    static float host[COUNT];
    void *weights, *old, *out;
    float total;
    KERNEL_ENTER(sum);
    CHECK(hipMalloc(&weights, sizeof host));
    CHECK(hipMalloc(&old, sizeof host));
    CHECK(hipMalloc(&out, sizeof total));
    CHECK(hipMemcpy(BUG ? old : weights, host, sizeof host, hipMemcpyHostToDevice));
    run(out, weights);
    CHECK(hipMemcpy(&total, out, sizeof total, hipMemcpyDeviceToHost));
    CHECK(hipFree(weights));
    CHECK(hipFree(old));
    CHECK(hipFree(out));
    return 0;
}
