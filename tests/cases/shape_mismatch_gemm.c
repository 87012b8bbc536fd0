/* The configuration says that there are as many key heads as query heads; the file has a quarter of
 * them. The projection reads four times what the weights have; nobody checks launches, and the copy
 * of the logits, after other kernels, reports the fault.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SHAPE_MISMATCH; also UPSTREAM_KERNEL_FAULT SIZE_MISMATCH;
 *         culprit kernel=gemv argument=weight site=project; messenger hipMemcpy site=logits */
#include "case.h"

enum { WIDTH = 256, KV_WIDTH = 64 };

KERNEL(gemv, { "out", 8, GRETA_SOFT_POINTER },
       { "weight", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS }, { "rows", 4, 0 }, { "columns", 4, 0 }) {
    float *out = ARG(float *, 0);
    const float *weight = ARG(const float *, 1), *in = ARG(const float *, 2);
    uint32_t rows = ARG(uint32_t, 3), columns = ARG(uint32_t, 4);
    for (uint64_t r = work->first; r < work->last && r < rows; r++) {
        float sum = 0;
        for (uint32_t c = 0; c < columns; c++)
            sum += weight[r * columns + c] * in[c];
        out[r] = sum;
    }
}

void project(void *out, void *weight, void *in, uint32_t rows) {
    uint32_t columns = WIDTH;
    (void)LAUNCH(gemv, rows, NULL, &out, &weight, &in, &rows, &columns);
}

void logits(const void *out) {
    static float host[WIDTH];
    CHECK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
}

static void *weights(uint32_t rows, uint32_t columns) {
    void *w;
    CHECK(hipMalloc(&w, sizeof(float) * rows * columns));
    CHECK(hipMemset(w, 0, sizeof(float) * rows * columns));
    return w;
}

int main(void) {
    KERNEL_ENTER(gemv);
    void *x = weights(WIDTH, 1), *q = weights(WIDTH, 1), *k = weights(WIDTH, 1);
    void *wq = weights(WIDTH, WIDTH), *wk = weights(KV_WIDTH, WIDTH), *wo = weights(WIDTH, WIDTH);
    project(q, wq, x, WIDTH);
    project(k, wk, x, BUG ? WIDTH : KV_WIDTH);
    project(x, wo, q, WIDTH);
    logits(x);
    void *all[] = { x, q, k, wq, wk, wo };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(hipFree(all[i]));
    return 0;
}
