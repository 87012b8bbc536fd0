/* A host node of a graph clears memory in another stream; the fixed twin does so after the graph.
 * The node gets its function only after the graph was instantiated.
 *
 * Expect: verdict FINDINGS; hypothesis CALL_IN_CALLBACK;
 *         culprit hipMemsetAsync site=clear line=17; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

static hipStream_t other;
static void *spare;

void clear(void *data) {
    (void)data;
    if (BUG)
        CHECK(hipMemsetAsync(spare, 0, BYTES, other));
}

void nothing(void *data) {
    (void)data;
}

int main(void) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t set, node;
    void *device;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMalloc(&spare, BYTES));
    CHECK(hipGraphCreate(&graph, 0));
    const hipMemsetParams bytes = {
        .dst = device, .value = 1, .pitch = BYTES, .elementSize = 1, .width = BYTES, .height = 1
    };
    CHECK(hipGraphAddMemsetNode(&set, graph, NULL, 0, &bytes));
    const hipHostNodeParams first = { nothing, NULL }, second = { clear, NULL };
    CHECK(hipGraphAddHostNode(&node, graph, &set, 1, &first));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphExecHostNodeSetParams(exec, node, &second));
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    if (!BUG)
        CHECK(hipMemsetAsync(spare, 0, BYTES, other));
    CHECK(hipStreamSynchronize(other));
    CHECK(hipFree(spare));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipStreamDestroy(other));
    return 0;
}
