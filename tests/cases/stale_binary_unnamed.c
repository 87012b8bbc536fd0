/* Binaries of the expected commit state what they were built from; the one that runs is older than
 * that and states nothing.
 *
 * Expect: verdict INCONCLUSIVE; hypothesis STALE_BINARY; culprit none; messenger none
 * Run:    --expect-commit=c0ffee0c0ffee0 */
#include "case.h"

#if !BUG
extern const char gcore_program_commit[];
const char gcore_program_commit[] = "c0ffee0c0ffee0";
#endif

int main(void) {
    static char host[512];
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(hipMemset(device, 0, sizeof host));
    CHECK(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(device));
    return 0;
}
