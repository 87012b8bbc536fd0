/* A helper allocates scratch memory on first use, which is in the middle of a capture: it fails
 * there, and the capture with it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipMalloc site=scratch; messenger hipStreamEndCapture site=capture */
#include "case.h"

enum { BYTES = 4096 };

static void *memory;

void *scratch(void) {
    if (!memory)
        (void)hipMalloc(&memory, BYTES);
    return memory;
}

void capture(void *device, hipStream_t stream, hipGraphExec_t *exec) {
    hipGraph_t graph;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMemsetAsync(device, 0, BYTES, stream));
    void *place = scratch();
    if (place)
        CHECK(hipMemcpyAsync(place, device, BYTES, hipMemcpyDeviceToDevice, stream));
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
    if (!BUG)
        (void)scratch();
    capture(device, stream, &exec);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(memory));
    CHECK(hipFree(device));
    return 0;
}
