/* A kernel gets weights that were never uploaded: the upload went to another buffer.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit kernel=sum site=run; messenger none */
#include "case_sum.h"

enum { COUNT = 300 };

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
