/* A memcpy node reads the second half of a buffer that has only one half.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipGraphAddMemcpyNode1D site=add_copy;
 *         messenger hipGraphAddMemcpyNode1D site=add_copy */
#include "case.h"

enum { HALF = 8192 };

void add_copy(hipGraph_t graph, void *to, const char *from) {
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from + HALF, HALF,
                                  hipMemcpyDeviceToDevice));
}

int main(void) {
    void *from, *to;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&from, BUG ? HALF : 2 * HALF));
    CHECK(hipMalloc(&to, HALF));
    CHECK(hipMemset(from, 0, BUG ? HALF : 2 * HALF));
    CHECK(hipDeviceSynchronize());
    CHECK(hipGraphCreate(&graph, 0));
    add_copy(graph, to, from);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(to));
    CHECK(hipFree(from));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
