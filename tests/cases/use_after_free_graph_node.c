/* A graph is built node by node; the source of its copy is freed before the second launch.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT;
 *         culprit hipGraphAddMemcpyNode1D site=build; messenger hipDeviceSynchronize site=launch */
#include "case.h"

enum { BYTES = 2048 };

hipGraphExec_t build(void *to, const void *from) {
    hipGraph_t graph;
    hipGraphNode_t node;
    hipGraphExec_t exec;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, BYTES, hipMemcpyDeviceToDevice));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

void launch(hipGraphExec_t exec) {
    CHECK(hipGraphLaunch(exec, NULL));
    CHECK(hipDeviceSynchronize());
}

int main(void) {
    void *from, *to;
    CHECK(hipMalloc(&from, BYTES));
    CHECK(hipMalloc(&to, BYTES));
    CHECK(hipMemset(from, 3, BYTES));
    hipGraphExec_t exec = build(to, from);
    launch(exec);
    if (BUG)
        CHECK(hipFree(from));
    launch(exec);
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipFree(to));
    if (!BUG)
        CHECK(hipFree(from));
    return 0;
}
