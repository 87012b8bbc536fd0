/* The scope of a registered buffer on the stack ends before the upload from it is done. Its
 * function is inlined, so no return can be seen; that the buffer is never unregistered is. Whether
 * it lived long enough is not known and must not be ruled out.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK; undecided HOST_BUFFER_LIFETIME;
 *         culprit hipHostRegister; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 8192, PAGE = 4096 };

static inline __attribute__((always_inline)) void upload(void *device, hipStream_t stream) {
    _Alignas(PAGE) char host[BYTES];
    memset(host, 1, sizeof host);
    CHECK(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
    CHECK(hipMemcpyAsync(device, host, sizeof host, hipMemcpyHostToDevice, stream));
    if (!BUG) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipHostUnregister(host));
    }
}

static inline __attribute__((always_inline)) int work(int value) {
    _Alignas(PAGE) volatile char other[BYTES]; /* may be where the buffer was */
    for (size_t i = 0; i < sizeof other; i++)
        other[i] = (char)value;
    return other[BYTES / 2];
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
