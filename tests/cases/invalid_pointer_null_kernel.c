/* An optional bias is not there, and the kernel that adds it is launched all the same.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=add_bias argument=bias site=project;
 *         messenger hipMemcpyAsync site=download */
#include "case.h"

enum { COUNT = 500 };

KERNEL(add_bias, { "x", 8, GRETA_SOFT_POINTER },
       { "bias", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }, { "count", 4, 0 }) {
    float *x = ARG(float *, 0);
    const float *bias = ARG(const float *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        x[i] += bias[i];
}

void project(float *x, const float *bias, hipStream_t stream) {
    uint32_t count = COUNT;
    if (bias || BUG)
        CHECK(LAUNCH(add_bias, 1, stream, &x, &bias, &count));
}

void download(const void *x, hipStream_t stream) {
    static float pageable[COUNT];
    CHECK(hipMemcpyAsync(pageable, x, sizeof pageable, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    void *x;
    hipStream_t stream;
    KERNEL_ENTER(add_bias);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&x, COUNT * sizeof(float)));
    CHECK(hipMemsetAsync(x, 0, COUNT * sizeof(float), stream));
    project(x, NULL, stream);
    download(x, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(x));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
