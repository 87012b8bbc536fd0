/* A buffer is registered by two callers; "already registered" is fine with both, but it stays the
 * last error and a later check reports it.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipHostRegister site=pin; messenger hipGetLastError site=upload
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 16 << 10 };

static char host[BYTES] __attribute__((aligned(4096)));

void pin(void) {
    hipError_t result = hipHostRegister(host, BYTES, hipHostRegisterDefault);
    if (result == hipErrorHostMemoryAlreadyRegistered && !BUG)
        (void)hipGetLastError();
    else if (result != hipSuccess && result != hipErrorHostMemoryAlreadyRegistered)
        exit(1);
}

int upload(void *device) {
    (void)hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, NULL);
    (void)hipStreamSynchronize(NULL);
    hipError_t result = hipGetLastError();
    if (result != hipSuccess)
        fprintf(stderr, "upload: %s\n", hipGetErrorString(result));
    return result != hipSuccess;
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, BYTES));
    pin();
    pin();
    int failed = upload(device);
    CHECK(hipHostUnregister(host));
    CHECK(hipFree(device));
    return failed;
}
