/* hipMemcpyDtoH with its pointers in the order of hipMemcpyHtoD's.
 *
 * Expect: verdict FINDINGS; hypothesis KIND_MISMATCH; culprit hipMemcpyDtoH site=fetch;
 *         messenger none */
#include "case.h"

static char host[512];

void fetch(void *device) {
    if (BUG)
        CHECK(hipMemcpyDtoH(device, host, sizeof host));
    else
        CHECK(hipMemcpyDtoH(host, device, sizeof host));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, sizeof host));
    CHECK(hipMemsetD8(device, 1, sizeof host));
    fetch(device);
    CHECK(hipFree(device));
    return 0;
}
