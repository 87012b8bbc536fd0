/* Two devices exchange halves of a buffer by peer copies in streams of their own; with its bug both
 * write to the same half.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpyPeerAsync site=send; messenger none
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { HALF = 8192 };

void send(char *dst, char *src, hipStream_t stream) {
    CHECK(hipMemcpyPeerAsync(dst, 0, src, 1, HALF, stream));
}

int main(void) {
    char *whole, *part;
    hipStream_t stream[2];
    CHECK(hipSetDevice(1));
    CHECK(hipMalloc((void **)&part, 2 * HALF));
    CHECK(hipMemset(part, 1, 2 * HALF));
    CHECK(hipDeviceSynchronize());
    CHECK(hipSetDevice(0));
    CHECK(hipMalloc((void **)&whole, 2 * HALF));
    for (int i = 0; i < 2; i++)
        CHECK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
    send(whole, part, stream[0]);
    send(whole + (BUG ? HALF / 2 : HALF), part + HALF, stream[1]);
    for (int i = 0; i < 2; i++) {
        CHECK(hipStreamSynchronize(stream[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    CHECK(hipFree(whole));
    CHECK(hipFree(part));
    return 0;
}
