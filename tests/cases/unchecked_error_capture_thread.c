/* While one thread captures, another allocates. The capture is global, so that the allocation is
 * refused and the capture is invalid: the capturing thread finds that out at its end.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipMalloc site=allocate; messenger hipStreamEndCapture site=capture */
#include <pthread.h>

#include "case.h"

enum { BYTES = 4096 };

static void *spare;

void *allocate(void *unused) {
    (void)hipMalloc(&spare, BYTES);
    return unused;
}

void capture(void *device, hipStream_t stream, hipGraphExec_t *exec) {
    hipGraph_t graph;
    pthread_t thread;
    CHECK(hipStreamBeginCapture(stream, BUG ? hipStreamCaptureModeGlobal
                                            : hipStreamCaptureModeThreadLocal));
    CHECK(hipMemsetAsync(device, 0, BYTES, stream));
    if (pthread_create(&thread, NULL, allocate, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
}

int main(void) {
    void *device;
    hipStream_t stream;
    hipGraphExec_t exec;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipStreamCreate(&stream));
    capture(device, stream, &exec);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(spare));
    CHECK(hipFree(device));
    return 0;
}
