/* The program asks three times whether a buffer is filled and goes on whatever the answer was: the
 * answer may have been yes this time. The fixed program asks until it is.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=fetch; messenger none */
#include "case.h"

enum { BYTES = 4096, TRIES = 3 };

static bool is_done(hipEvent_t filled) {
    return hipEventQuery(filled) == hipSuccess;
}

void settle(hipEvent_t filled) {
    for (int i = 0; (!BUG || i < TRIES) && !is_done(filled); i++)
        ;
}

void fetch(void *copy, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(copy, device, BYTES, hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    hipStream_t make, take;
    hipEvent_t filled;
    void *device, *copy;
    CHECK(hipStreamCreateWithFlags(&make, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&take, hipStreamNonBlocking));
    CHECK(hipEventCreate(&filled));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMalloc(&copy, BYTES));
    CHECK(hipMemsetAsync(device, 1, BYTES, make));
    CHECK(hipEventRecord(filled, make));
    settle(filled);
    fetch(copy, device, take);
    CHECK(hipDeviceSynchronize());
    /* What was waited for is done, and a query says so at once. */
    if (hipEventQuery(filled) != hipSuccess || hipStreamQuery(make) != hipSuccess)
        return 1;
    CHECK(hipFree(copy));
    CHECK(hipFree(device));
    CHECK(hipEventDestroy(filled));
    CHECK(hipStreamDestroy(take));
    CHECK(hipStreamDestroy(make));
    return 0;
}
