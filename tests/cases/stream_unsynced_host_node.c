/* A host node of a graph that was put together by hand reads what a copy node brings, and does not
 * depend on it.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit site=look; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

static volatile float seen;

void look(void *data) {
    seen = ((const float *)data)[7];
}

void add_nodes(hipGraph_t graph, void *host, const void *device) {
    hipGraphNode_t copy, node;
    hipHostNodeParams params = { look, host }, read = { NULL, NULL };
    CHECK(
        hipGraphAddMemcpyNode1D(&copy, graph, NULL, 0, host, device, BYTES, hipMemcpyDeviceToHost));
    CHECK(hipGraphAddHostNode(&node, graph, BUG ? NULL : &copy, BUG ? 0 : 1, &params));
    CHECK(hipGraphHostNodeGetParams(node, &read));
    if (read.fn != look || read.userData != host)
        exit(3);
}

int main(void) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    void *device, *host;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc(&host, BYTES, hipHostMallocDefault));
    CHECK(hipMemset(device, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    CHECK(hipGraphCreate(&graph, 0));
    add_nodes(graph, host, device);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
