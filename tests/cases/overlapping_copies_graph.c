/* Two nodes of a graph copy to one place, and no edge orders them.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipGraphAddMemcpyNode1D site=build; messenger none */
#include "case.h"

enum { BYTES = 2048 };

hipGraph_t build(void *to, void *a, void *b) {
    hipGraph_t graph;
    hipGraphNode_t first, second;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemcpyNode1D(&first, graph, NULL, 0, to, a, BYTES, hipMemcpyDeviceToDevice));
    CHECK(hipGraphAddMemcpyNode1D(&second, graph, BUG ? NULL : &first, BUG ? 0 : 1, to, b, BYTES,
                                  hipMemcpyDeviceToDevice));
    return graph;
}

int main(void) {
    void *memory[3];
    hipGraphExec_t exec;
    for (int i = 0; i < 3; i++) {
        CHECK(hipMalloc(&memory[i], BYTES));
        CHECK(hipMemset(memory[i], i, BYTES));
    }
    CHECK(hipDeviceSynchronize());
    hipGraph_t graph = build(memory[0], memory[1], memory[2]);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphLaunch(exec, NULL));
    CHECK(hipDeviceSynchronize());
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        CHECK(hipFree(memory[i]));
    return 0;
}
