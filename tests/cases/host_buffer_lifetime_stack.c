/* A function uploads from a registered buffer on its stack and returns before the copy is done; the
 * next function writes there. The pages of a stack cannot be watched, and nothing is called to give
 * them back.
 *
 * Expect: verdict FINDINGS; hypothesis HOST_BUFFER_LIFETIME; culprit hipMemcpyAsync site=upload;
 *         messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 8192, PAGE = 4096 };

__attribute__((noinline)) void upload(void *device, hipStream_t stream) {
    _Alignas(PAGE) char host[BYTES];
    memset(host, 1, sizeof host);
    CHECK(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
    if (BUG)
        CHECK(hipMemcpyAsync(device, host, sizeof host, hipMemcpyHostToDevice, stream));
    else
        CHECK(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
    if (!BUG)
        CHECK(hipHostUnregister(host));
}

__attribute__((noinline)) int work(int value) {
    volatile char other[3 * BYTES];
    for (size_t i = 0; i < sizeof other; i++)
        other[i] = (char)value;
    return other[BYTES];
}

int main(void) {
    hipStream_t stream;
    void *device;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    upload(device, stream);
    int sum = work(2);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return sum != 2;
}
