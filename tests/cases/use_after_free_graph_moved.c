/* Between capture and replay a buffer grows: it is freed and allocated anew, and the graph still
 * has the old address. The fixed program gives the node its new parameters.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=fill argument=out site=capture; messenger hipStreamSynchronize site=main
 */
#include "case.h"

enum { COUNT = 256 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

static hipGraphNode_t node;

hipGraphExec_t capture(void *memory, hipStream_t stream, hipGraph_t *graph) {
    hipGraphExec_t exec;
    uint32_t count = COUNT;
    size_t nodes = 1;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(LAUNCH(fill, 1, stream, &memory, &count));
    CHECK(hipStreamEndCapture(stream, graph));
    CHECK(hipGraphGetNodes(*graph, &node, &nodes));
    CHECK(hipGraphInstantiate(&exec, *graph, NULL, NULL, 0));
    return exec;
}

void set(hipGraphExec_t exec, void *memory) {
    uint32_t count = COUNT;
    hipKernelNodeParams params = {
        .func = &fill_stub,
        .gridDim = { 1, 1, 1 },
        .blockDim = { 64, 1, 1 },
        .kernelParams = (void *[]){ &memory, &count },
    };
    CHECK(hipGraphExecKernelNodeSetParams(exec, node, &params));
}

int main(void) {
    void *memory;
    hipStream_t stream;
    hipGraph_t graph;
    KERNEL_ENTER(fill);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&memory, COUNT * sizeof(float)));
    hipGraphExec_t exec = capture(memory, stream, &graph);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(memory));
    CHECK(hipMalloc(&memory, 2 * COUNT * sizeof(float)));
    if (!BUG)
        set(exec, memory);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(memory));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
