/* A kernel of the second device reads memory of the first one, and nobody has given its device
 * access to that. Copies between the two need none.
 *
 * Expect: verdict FINDINGS|INCONCLUSIVE; hypothesis INVALID_POINTER;
 *         culprit kernel=add argument=from site=on_second; messenger none
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { COUNT = 1024, BYTES = COUNT * 4 };

KERNEL(add, { "to", 8, GRETA_SOFT_POINTER }, { "from", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "count", 4, 0 }) {
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        ARG(float *, 0)[i] += ARG(const float *, 1)[i];
}

void on_second(void *to, const void *from) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(add, 1, NULL, &to, &from, &count));
    CHECK(hipDeviceSynchronize());
}

int main(void) {
    void *memory[2];
    KERNEL_ENTER(add);
    for (int i = 0; i < 2; i++) {
        CHECK(hipSetDevice(i));
        CHECK(hipMalloc(&memory[i], BYTES));
        CHECK(hipMemset(memory[i], 0, BYTES));
        CHECK(hipDeviceSynchronize());
    }
    CHECK(hipMemcpyPeer(memory[1], 1, memory[0], 0, BYTES));
    CHECK(hipDeviceSynchronize());
    if (!BUG) {
        CHECK(hipDeviceEnablePeerAccess(0, 0));
        hipError_t again = hipDeviceEnablePeerAccess(0, 0);
        if (again != hipErrorPeerAccessAlreadyEnabled || hipGetLastError() != again)
            return 1;
    }
    on_second(memory[1], memory[0]);
    for (int i = 0; i < 2; i++) {
        CHECK(hipSetDevice(i));
        CHECK(hipFree(memory[i]));
    }
    return 0;
}
