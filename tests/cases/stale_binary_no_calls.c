/* A wrapper runs an old program that does not use the device at all.
 *
 * Expect: verdict INCONCLUSIVE; hypothesis STALE_BINARY; culprit none; messenger none
 * Run:    --expect-commit=abcdef0123456789 */
#include "case.h"

extern const char gcore_program_commit[];
const char gcore_program_commit[] = "abcdef0123456789";

int main(void) {
#if BUG
    puts("usage: no such option");
#else
    void *device;
    CHECK(hipMalloc(&device, 64));
    CHECK(hipFree(device));
#endif
    return 0;
}
