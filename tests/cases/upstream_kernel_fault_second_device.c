/* The second device fails; the first one, which has nothing to do with it, returns the error.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT; also SIZE_MISMATCH;
 *         culprit kernel=zero argument=out site=on_second;
 *         messenger hipMemcpyAsync site=on_first
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { BYTES = 6000 };

KERNEL(zero, { "out", 8, GRETA_SOFT_POINTER }, { "bytes", 8, 0 }) {
    if (work->first == 0)
        for (uint64_t i = 0; i < ARG(uint64_t, 1); i++)
            ARG(char *, 0)[i] = 0;
}

void on_second(void *out, hipStream_t stream, hipEvent_t done) {
    uint64_t bytes = BUG ? 2 * BYTES : BYTES;
    CHECK(hipSetDevice(1));
    CHECK(LAUNCH(zero, 1, stream, &out, &bytes));
    CHECK(hipEventRecord(done, stream));
}

void on_first(const void *in, hipStream_t stream, hipEvent_t done) {
    static char host[BYTES];
    CHECK(hipSetDevice(0));
    CHECK(hipStreamWaitEvent(stream, done, 0));
    CHECK(hipMemcpyAsync(host, in, BYTES, hipMemcpyDeviceToHost, stream));
}

int main(void) {
    void *memory[2];
    hipStream_t stream[2];
    hipEvent_t done;
    KERNEL_ENTER(zero);
    for (int i = 0; i < 2; i++) {
        CHECK(hipSetDevice(i));
        CHECK(hipStreamCreate(&stream[i]));
        CHECK(hipMalloc(&memory[i], BYTES));
        CHECK(hipMemset(memory[i], 0, BYTES));
    }
    CHECK(hipEventCreateWithFlags(&done, hipEventDisableTiming));
    on_second(memory[1], stream[1], done);
    on_first(memory[0], stream[0], done);
    CHECK(hipStreamSynchronize(stream[0]));
    for (int i = 0; i < 2; i++) {
        CHECK(hipFree(memory[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    CHECK(hipEventDestroy(done));
    return 0;
}
