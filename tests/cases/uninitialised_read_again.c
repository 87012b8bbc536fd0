/* A buffer is freed and allocated anew; what had been in it is gone.
 *
 * Expect: verdict FINDINGS; hypothesis UNINITIALISED_READ;
 *         culprit hipMemcpy site=save; messenger none */
#include "case.h"

enum { SMALL = 2048, LARGE = 4096 };

void save(void *host, const void *device, size_t bytes) {
    CHECK(hipMemcpy(host, device, bytes, hipMemcpyDeviceToHost));
}

int main(void) {
    static char host[LARGE];
    void *device, *larger;
    CHECK(hipMalloc(&device, SMALL));
    CHECK(hipMemset(device, 1, SMALL));
    save(host, device, SMALL);
    CHECK(hipMalloc(&larger, LARGE));
    if (!BUG) {
        CHECK(hipMemset(larger, 0, LARGE));
        CHECK(hipMemcpy(larger, device, SMALL, hipMemcpyDeviceToDevice));
    }
    CHECK(hipFree(device));
    save(host, larger, LARGE);
    CHECK(hipFree(larger));
    return 0;
}
