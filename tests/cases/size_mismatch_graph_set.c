/* The copy of an executable graph gets another destination, which is smaller than the first.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH;
 *         culprit hipGraphExecMemcpyNodeSetParams1D site=redirect;
 *         messenger hipGraphExecMemcpyNodeSetParams1D site=redirect */
#include "case.h"

enum { BYTES = 4096 };

void redirect(hipGraphExec_t exec, hipGraphNode_t node, void *dst, const void *src) {
    CHECK(hipGraphExecMemcpyNodeSetParams1D(exec, node, dst, src, BYTES, hipMemcpyDeviceToDevice));
}

int main(void) {
    void *from, *first, *second;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t node;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&from, BYTES));
    CHECK(hipMalloc(&first, BYTES));
    CHECK(hipMalloc(&second, BUG ? BYTES - 256 : BYTES));
    CHECK(hipMemset(from, 1, BYTES));
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, first, from, BYTES,
                                  hipMemcpyDeviceToDevice));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphLaunch(exec, stream));
    redirect(exec, node, second, from);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(from));
    CHECK(hipFree(first));
    CHECK(hipFree(second));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
