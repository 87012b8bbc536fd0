/* Two buffers take turns: while one is summed up, the other is filled. Events order both ways; with
 * its bug the program forgets that a buffer must have been read before it is filled again.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemsetAsync site=fill; messenger none */
#include "case_sum.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(float), ROUNDS = 6 };

static void *buffer[2], *out;
static hipStream_t filler, summer;
static hipEvent_t filled[2], summed[2];

void fill(int which, int again) {
    if (again && !BUG)
        CHECK(hipStreamWaitEvent(filler, summed[which], 0));
    CHECK(hipMemsetAsync(buffer[which], 0, BYTES, filler));
    CHECK(hipEventRecord(filled[which], filler));
}

void reduce(int which) {
    uint32_t count = COUNT;
    CHECK(hipStreamWaitEvent(summer, filled[which], 0));
    CHECK(LAUNCH(sum, 1, summer, &out, &buffer[which], &count));
    CHECK(hipEventRecord(summed[which], summer));
}

int main(void) {
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&filler, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithPriority(&summer, hipStreamNonBlocking, -1));
    CHECK(hipMalloc(&out, sizeof(float)));
    for (int i = 0; i < 2; i++) {
        CHECK(hipMalloc(&buffer[i], BYTES));
        CHECK(hipEventCreateWithFlags(&filled[i], hipEventDisableTiming));
        CHECK(hipEventCreateWithFlags(&summed[i], hipEventDisableTiming));
    }
    for (int round = 0; round < ROUNDS; round++) {
        fill(round % 2, round >= 2);
        reduce(round % 2);
    }
    CHECK(hipStreamSynchronize(summer));
    for (int i = 0; i < 2; i++) {
        CHECK(hipFree(buffer[i]));
        CHECK(hipEventDestroy(filled[i]));
        CHECK(hipEventDestroy(summed[i]));
    }
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(filler));
    CHECK(hipStreamDestroy(summer));
    return 0;
}
