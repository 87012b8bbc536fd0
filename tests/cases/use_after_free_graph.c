/* A graph is launched once more after a buffer that it works on was freed.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=count_up argument=counter site=capture;
 *         messenger hipStreamSynchronize site=replay */
#include "case.h"

KERNEL(count_up, { "counter", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        ++*ARG(uint32_t *, 0);
}

void capture(void *counter, hipStream_t stream, hipGraphExec_t *exec) {
    hipGraph_t graph;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    CHECK(LAUNCH(count_up, 1, stream, &counter));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
}

void replay(hipGraphExec_t exec, hipStream_t stream) {
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    void *counter;
    hipStream_t stream;
    hipGraphExec_t exec;
    KERNEL_ENTER(count_up);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&counter, 4));
    CHECK(hipMemset(counter, 0, 4));
    capture(counter, stream, &exec);
    replay(exec, stream);
    if (BUG)
        CHECK(hipFree(counter));
    replay(exec, stream);
    if (!BUG)
        CHECK(hipFree(counter));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
