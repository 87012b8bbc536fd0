/* A graph uploads a pinned buffer. The buffer is refilled for the next replay while the one before
 * may still read it.
 *
 * Expect: verdict FINDINGS; hypothesis STAGING_REUSE; also STREAM_UNSYNCED;
 *         culprit site=refill; messenger none
 * Run:    --watch-host */
#include "case_graph.h"

enum { COUNT = 4096, BYTES = COUNT * sizeof(int) };

static int *staging;
static void *device;

void upload(hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, staging, BYTES, hipMemcpyHostToDevice, stream));
}

void refill(int round) {
    for (int i = 0; i < COUNT; i++)
        staging[i] = round;
}

int main(void) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc((void **)&staging, BYTES, 0));
    hipGraphExec_t exec = make_exec(stream, upload);
    for (int round = 0; round < 3; round++) {
        refill(round);
        CHECK(hipGraphLaunch(exec, stream));
        if (!BUG)
            CHECK(hipStreamSynchronize(stream));
    }
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipHostFree(staging));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
