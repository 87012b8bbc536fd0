/* The memory of one device is sent to another while a copy that nobody has waited for fills it.
 * hipMemcpyPeer() waits for the work of both devices; hipMemcpyPeerAsync() does not.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpyPeerAsync site=hand_over; messenger none
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { BYTES = 8192 };

void hand_over(void *to, const void *from, hipStream_t stream) {
    if (BUG)
        CHECK(hipMemcpyPeerAsync(to, 1, from, 0, BYTES, stream));
    else
        CHECK(hipMemcpyPeer(to, 1, from, 0, BYTES));
}

int main(void) {
    hipStream_t stream;
    void *first, *source, *to;
    CHECK(hipSetDevice(0));
    CHECK(hipMalloc(&first, BYTES));
    CHECK(hipMalloc(&source, BYTES));
    CHECK(hipMemset(first, 1, BYTES));
    CHECK(hipMemcpy(source, first, BYTES, hipMemcpyDeviceToDevice));
    CHECK(hipSetDevice(1));
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&to, BYTES));
    hand_over(to, source, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(to));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(source));
    CHECK(hipFree(first));
    return 0;
}
