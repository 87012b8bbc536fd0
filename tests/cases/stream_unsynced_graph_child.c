/* A graph that is a node of another one fills a buffer, and a copy beside it reads the buffer
 * without depending on that node.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipGraphAddMemcpyNode1D site=compose; messenger none; findings 2 */
#include "case.h"

enum { BYTES = 4096 };

hipGraph_t fill(void *memory) {
    hipGraph_t graph;
    hipGraphNode_t first, second;
    hipMemsetParams half = { .dst = memory, .elementSize = 1, .height = 1, .value = 1 };
    half.width = BYTES / 2;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemsetNode(&first, graph, NULL, 0, &half));
    half.dst = (char *)memory + BYTES / 2;
    CHECK(hipGraphAddMemsetNode(&second, graph, &first, 1, &half));
    return graph;
}

hipGraph_t compose(void *out, void *memory) {
    hipGraph_t graph, child = fill(memory);
    hipGraphNode_t inner, copy;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddChildGraphNode(&inner, graph, NULL, 0, child));
    CHECK(hipGraphDestroy(child));
    CHECK(hipGraphAddMemcpyNode1D(&copy, graph, BUG ? NULL : &inner, BUG ? 0 : 1, out, memory,
                                  BYTES, hipMemcpyDeviceToDevice));
    return graph;
}

int main(void) {
    void *memory, *out;
    hipStream_t stream;
    hipGraphExec_t exec;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMalloc(&out, BYTES));
    CHECK(hipMemset(memory, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    hipGraph_t graph = compose(out, memory);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    for (int i = 0; i < 2; i++)
        CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipFree(memory));
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
