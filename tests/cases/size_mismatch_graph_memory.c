/* Memory of a graph that was put together by hand: a node sets twice as much as the node before it
 * allocates. In the fixed program the graph allocates, sets, copies and frees, and is launched
 * twice.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH;
 *         culprit hipGraphAddMemsetNode site=build; messenger hipGraphAddMemsetNode site=build
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4096 };

static hipGraphExec_t build(void *host) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t alloc, set, copy, release;
    hipMemAllocNodeParams memory = { .bytesize = BYTES };
    memory.poolProps.allocType = hipMemAllocationTypePinned;
    memory.poolProps.location.type = hipMemLocationTypeDevice;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
    const hipMemsetParams bytes = { .dst = memory.dptr,
                                    .value = 1,
                                    .pitch = BYTES,
                                    .elementSize = 1,
                                    .width = BUG ? 2 * BYTES : BYTES,
                                    .height = 1 };
    CHECK(hipGraphAddMemsetNode(&set, graph, &alloc, 1, &bytes));
    CHECK(hipGraphAddMemcpyNode1D(&copy, graph, &set, 1, host, memory.dptr, BYTES,
                                  hipMemcpyDeviceToHost));
    CHECK(hipGraphAddMemFreeNode(&release, graph, &copy, 1, memory.dptr));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

static void replay(hipGraphExec_t exec, hipStream_t stream) {
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    hipStream_t stream;
    unsigned char *host;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipHostMalloc((void **)&host, BYTES, hipHostMallocDefault));
    hipGraphExec_t exec = build(host);
    replay(exec, stream);
    replay(exec, stream);
    int wrong = host[BYTES - 1] != 1;
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipHostFree(host));
    CHECK(hipStreamDestroy(stream));
    return wrong;
}
