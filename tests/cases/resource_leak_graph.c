/* A graph is captured and instantiated; the program destroys the graph and assumes that this
 * destroys its executable twin, too.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipGraphInstantiate site=build; messenger none */
#include "case.h"

hipGraphExec_t build(hipStream_t stream, void *memory) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMemsetAsync(memory, 7, 1024, stream));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

int main(void) {
    hipStream_t stream;
    void *memory;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&memory, 1024));
    hipGraphExec_t exec = build(stream, memory);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    if (!BUG)
        CHECK(hipGraphExecDestroy(exec));
    CHECK(hipFree(memory));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
