/* A graph downloads its result into pinned memory; the host reads it after the launch returned,
 * which is not when the graph is done.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit site=look; messenger none
 * Run:    --watch-host */
#include "case_graph.h"

enum { COUNT = 4096, BYTES = COUNT * sizeof(int) };

static int *result;
static void *device;
static volatile int seen;

void download(hipStream_t stream) {
    CHECK(hipMemsetAsync(device, 1, BYTES, stream));
    CHECK(hipMemcpyAsync(result, device, BYTES, hipMemcpyDeviceToHost, stream));
}

void look(void) {
    seen = result[COUNT - 1];
}

int main(void) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc((void **)&result, BYTES, 0));
    hipGraphExec_t exec = make_exec(stream, download);
    CHECK(hipGraphLaunch(exec, stream));
    if (!BUG)
        CHECK(hipStreamSynchronize(stream));
    look();
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipHostFree(result));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
