/* A captured branch is joined at the end, but what it makes is read in the middle.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=capture; messenger none */
#include "case.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(float) };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

hipGraph_t capture(hipStream_t main_stream, hipStream_t branch, void *made, void *copy) {
    hipEvent_t fork, join;
    hipGraph_t graph;
    uint32_t count = COUNT;
    CHECK(hipEventCreate(&fork));
    CHECK(hipEventCreate(&join));
    CHECK(hipStreamBeginCapture(main_stream, hipStreamCaptureModeGlobal));
    CHECK(hipEventRecord(fork, main_stream));
    CHECK(hipStreamWaitEvent(branch, fork, 0));
    CHECK(LAUNCH(fill, 1, branch, &made, &count));
    CHECK(hipEventRecord(join, branch));
    if (!BUG)
        CHECK(hipStreamWaitEvent(main_stream, join, 0));
    CHECK(hipMemcpyAsync(copy, made, BYTES, hipMemcpyDeviceToDevice, main_stream));
    if (BUG)
        CHECK(hipStreamWaitEvent(main_stream, join, 0));
    CHECK(hipStreamEndCapture(main_stream, &graph));
    CHECK(hipEventDestroy(fork));
    CHECK(hipEventDestroy(join));
    return graph;
}

int main(void) {
    hipStream_t main_stream, branch;
    hipGraphExec_t exec;
    void *made, *copy;
    KERNEL_ENTER(fill);
    CHECK(hipStreamCreate(&main_stream));
    CHECK(hipStreamCreate(&branch));
    CHECK(hipMalloc(&made, BYTES));
    CHECK(hipMalloc(&copy, BYTES));
    CHECK(hipMemset(made, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    hipGraph_t graph = capture(main_stream, branch, made, copy);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphLaunch(exec, main_stream));
    CHECK(hipStreamSynchronize(main_stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(made));
    CHECK(hipFree(copy));
    CHECK(hipStreamDestroy(branch));
    CHECK(hipStreamDestroy(main_stream));
    return 0;
}
