/* The pointer to the last layer's weights is computed with the number of layers instead of the
 * layer's number; the kernel that gets it faults, and the copy of the result reports that.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=norm argument=weight site=layer; messenger hipMemcpy site=main */
#include "case.h"

enum { LAYERS = 4, WIDTH = 1024 };

KERNEL(norm, { "x", 8, GRETA_SOFT_POINTER }, { "weight", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    float *x = ARG(float *, 0);
    const float *weight = ARG(const float *, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        x[i] *= weight[i];
}

void layer(float *x, const float *weights, int number) {
    const float *weight = weights + (size_t)number * WIDTH;
    uint32_t count = WIDTH;
    CHECK(LAUNCH(norm, 1, NULL, &x, &weight, &count));
}

int main(void) {
    static float host[WIDTH];
    void *x, *weights;
    KERNEL_ENTER(norm);
    CHECK(hipMalloc(&x, sizeof host));
    CHECK(hipMalloc(&weights, LAYERS * sizeof host));
    CHECK(hipMemset(x, 0, sizeof host));
    CHECK(hipMemset(weights, 0, LAYERS * sizeof host));
    for (int i = 0; i < LAYERS; i++)
        layer(x, weights, BUG && i == LAYERS - 1 ? LAYERS + 1 : i);
    CHECK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(weights));
    CHECK(hipFree(x));
    return 0;
}
