/* An upload is refused for its direction and nobody checks; the old contents are downloaded.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipMemcpy site=upload; messenger hipMemcpy site=download */
#include "case.h"

enum { BYTES = 640 };

void upload(void *device, const void *host, int kind) {
    (void)hipMemcpy(device, host, BYTES, (hipMemcpyKind)kind);
}

void download(void *host, const void *device) {
    CHECK(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
}

int main(void) {
    static char host[BYTES];
    void *device;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemset(device, 0, BYTES));
    upload(device, host, BUG ? 77 : hipMemcpyHostToDevice);
    download(host, device);
    CHECK(hipFree(device));
    return 0;
}
