/* A launch records two events itself: one before the kernel begins, one when it is over. The other
 * stream waits for the first of them.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=fetch; messenger none */
#include "case.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < COUNT; i++)
        out[i] = (float)i;
}

void make(void *device, hipStream_t stream, hipEvent_t start, hipEvent_t stop) {
    CHECK(hipExtLaunchKernel(&fill_stub, (dim3){ 1, 1, 1 }, (dim3){ 64, 1, 1 },
                             (void *[]){ &device }, 0, stream, start, stop, 0));
}

void fetch(void *copy, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(copy, device, BYTES, hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    hipStream_t first, second;
    hipEvent_t start, stop;
    void *device, *copy;
    KERNEL_ENTER(fill);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMalloc(&copy, BYTES));
    make(device, first, start, stop);
    CHECK(hipStreamWaitEvent(second, BUG ? start : stop, 0));
    fetch(copy, device, second);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(copy));
    CHECK(hipFree(device));
    CHECK(hipEventDestroy(start));
    CHECK(hipEventDestroy(stop));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}
