/* A kernel is captured into a graph with the count of the larger of two layers. The graph's launch
 * is fine, the wait for it is not.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=scale argument=x site=record_layer;
 *         messenger hipStreamSynchronize site=replay */
#include "case.h"

enum { LARGE = 3000, SMALL = 2000 };

KERNEL(scale, { "x", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *x = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        x[i] *= 2;
}

void record_layer(float *x, uint32_t count, hipStream_t stream) {
    CHECK(LAUNCH(scale, 1, stream, &x, &count));
}

void replay(hipGraphExec_t exec, hipStream_t stream) {
    for (int i = 0; i < 3; i++)
        CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    void *large, *small;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    KERNEL_ENTER(scale);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&large, LARGE * sizeof(float)));
    CHECK(hipMalloc(&small, SMALL * sizeof(float)));
    CHECK(hipMemset(large, 0, LARGE * sizeof(float)));
    CHECK(hipMemset(small, 0, SMALL * sizeof(float)));
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    record_layer(large, LARGE, stream);
    record_layer(small, BUG ? LARGE : SMALL, stream);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    replay(exec, stream);
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(small));
    CHECK(hipFree(large));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
