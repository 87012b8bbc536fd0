/* The program says what it was built from, and with its bug that is not what is expected.
 *
 * Expect: verdict INCONCLUSIVE; hypothesis STALE_BINARY; culprit none; messenger none
 * Run:    --expect-commit=89abcdef0123456789abcdef0123456789abcdef */
#include "case.h"

#define OLD "0123456789abcdef0123456789abcdef01234567"
#define NEW "89abcdef0123456789abcdef0123456789abcdef"

#if BUG
#define COMMIT OLD
#else
#define COMMIT NEW
#endif

extern const char gcore_program_commit[];
const char gcore_program_commit[] = COMMIT;

int main(void) {
    static char host[512];
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(hipMemset(device, 0, sizeof host));
    CHECK(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(device));
    return 0;
}
