/* hipMemset gets memory of malloc.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; culprit hipMemset site=clear;
 *         messenger hipMemset site=clear */
#include "case.h"

enum { BYTES = 10000 };

void clear(void *memory) {
    CHECK(hipMemset(memory, 0, BYTES));
}

int main(void) {
    void *host = malloc(BYTES), *device;
    CHECK(hipMalloc(&device, BYTES));
    clear(BUG ? host : device);
    CHECK(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
    CHECK(hipFree(device));
    free(host);
    return 0;
}
