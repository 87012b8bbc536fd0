/* A result buffer is downloaded although nothing was ever written to it.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpy site=fetch; messenger none */
#include "case.h"

enum { BYTES = 1000 };

void fetch(void *host, const void *device) {
    CHECK(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
}

int main(void) {
    static char host[BYTES];
    void *device;
    CHECK(hipMalloc(&device, BYTES));
    if (!BUG)
        CHECK(hipMemset(device, 0, BYTES));
    fetch(host, device);
    CHECK(hipFree(device));
    return 0;
}
