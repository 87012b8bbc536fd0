/* Memory of a graph: the kernel is captured after the free of what it works on. In the fixed
 * program the graph allocates, works and frees, and is launched twice.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=count_up argument=counter site=capture;
 *         messenger hipStreamSynchronize site=replay */
#include "case.h"

KERNEL(count_up, { "counter", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        *ARG(uint32_t *, 0) = 1;
}

void capture(hipStream_t stream, hipGraphExec_t *exec) {
    void *counter;
    hipGraph_t graph;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    CHECK(hipMallocAsync(&counter, 4, stream));
    if (BUG)
        CHECK(hipFreeAsync(counter, stream));
    CHECK(LAUNCH(count_up, 1, stream, &counter));
    if (!BUG)
        CHECK(hipFreeAsync(counter, stream));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
}

void replay(hipGraphExec_t exec, hipStream_t stream) {
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    hipStream_t stream;
    hipGraphExec_t exec;
    KERNEL_ENTER(count_up);
    CHECK(hipStreamCreate(&stream));
    capture(stream, &exec);
    replay(exec, stream);
    replay(exec, stream);
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
