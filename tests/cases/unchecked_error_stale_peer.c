/* Peer access is enabled twice and "already enabled" is left lying; the check after a later launch
 * takes it for that launch's error.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipDeviceEnablePeerAccess site=connect; messenger hipGetLastError site=run
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { COUNT = 64 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

/* Called by each of two layers that need it. */
void connect(int peer) {
    hipError_t result = hipDeviceEnablePeerAccess(peer, 0);
    if (result != hipSuccess && result != hipErrorPeerAccessAlreadyEnabled)
        exit(1);
    if (!BUG && result == hipErrorPeerAccessAlreadyEnabled)
        (void)hipGetLastError();
}

int run(void *memory) {
    uint32_t count = COUNT;
    (void)LAUNCH(fill, 1, NULL, &memory, &count);
    hipError_t result = hipGetLastError();
    if (result != hipSuccess)
        fprintf(stderr, "fill: %s\n", hipGetErrorString(result));
    return result != hipSuccess;
}

int main(void) {
    void *memory;
    KERNEL_ENTER(fill);
    connect(1);
    connect(1);
    CHECK(hipMalloc(&memory, COUNT * sizeof(float)));
    int failed = run(memory);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return failed;
}
