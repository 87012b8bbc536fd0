/* A stream waits for a value in memory that another stream writes later, so that the wait is queued
 * before the write. The write comes too early; in the fixed twin it comes after the work.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemsetAsync site=produce; messenger none */
#include "case.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(float) };

static void consume(hipStream_t stream, void *flag, void *to, void *from) {
    CHECK(hipStreamWaitValue32(stream, flag, 1, hipStreamWaitValueGte, 0xffffffff));
    CHECK(hipMemcpyAsync(to, from, BYTES, hipMemcpyDeviceToDevice, stream));
}

static void produce(hipStream_t stream, void *flag, void *data) {
    if (BUG)
        CHECK(hipStreamWriteValue32(stream, flag, 1, 0));
    CHECK(hipMemsetAsync(data, 1, BYTES, stream));
    if (!BUG)
        CHECK(hipStreamWriteValue32(stream, flag, 1, 0));
}

int main(void) {
    hipStream_t a, b;
    void *data, *copy, *flag;
    CHECK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    CHECK(hipMalloc(&data, BYTES));
    CHECK(hipMalloc(&copy, BYTES));
    CHECK(hipExtMallocWithFlags(&flag, 8, hipMallocSignalMemory));
    CHECK(hipMemset(flag, 0, 8));
    CHECK(hipMemset(data, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    consume(b, flag, copy, data);
    produce(a, flag, data);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(flag));
    CHECK(hipFree(copy));
    CHECK(hipFree(data));
    CHECK(hipStreamDestroy(a));
    CHECK(hipStreamDestroy(b));
    return 0;
}
