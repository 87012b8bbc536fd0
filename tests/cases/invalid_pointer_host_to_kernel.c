/* The kernel gets the host's array instead of the device's copy of it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=sum argument=in site=launch_sum; messenger hipDeviceSynchronize site=main
 */
#include "case.h"

enum { COUNT = 1000 };

KERNEL(sum, { "out", 8, GRETA_SOFT_POINTER }, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *out = ARG(float *, 0), total = 0;
    const float *in = ARG(const float *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        total += in[i];
    *out = total;
}

void launch_sum(float *out, const float *in) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, NULL, &out, &in, &count));
}

int main(void) {
    float *host = calloc(COUNT, sizeof *host);
    void *in, *out;
    KERNEL_ENTER(sum);
    CHECK(hipMalloc(&in, COUNT * sizeof *host));
    CHECK(hipMalloc(&out, sizeof *host));
    CHECK(hipMemcpy(in, host, COUNT * sizeof *host, hipMemcpyHostToDevice));
    launch_sum(out, BUG ? host : in);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    CHECK(hipFree(in));
    free(host);
    return 0;
}
