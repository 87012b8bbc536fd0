/* One stream fills a buffer and writes the number of the round, another waits for that number and
 * reads the buffer. The wait of the second round is for the number of the first, which has been
 * there for long. The fixed twin waits for its own round.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=consume; messenger none */
#include "case.h"

enum { COUNT = 256, ROUNDS = 2 };

KERNEL(fill, { "numbers", 8, GRETA_SOFT_POINTER }, { "value", 4, GRETA_SOFT_VALUE }) {
    uint32_t *numbers = ARG(uint32_t *, 0);
    for (uint32_t i = 0; work->first == 0 && i < COUNT; i++)
        numbers[i] = ARG(uint32_t, 1);
}

KERNEL(sum, { "numbers", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "total", 8, GRETA_SOFT_POINTER }) {
    const uint32_t *numbers = ARG(uint32_t *, 0);
    uint32_t *total = ARG(uint32_t *, 1);
    for (uint32_t i = 0; work->first == 0 && i < COUNT; i++)
        *total += numbers[i];
}

static void produce(hipStream_t stream, void *numbers, void *flag, uint32_t round) {
    CHECK(LAUNCH(fill, 1, stream, &numbers, &round));
    CHECK(hipStreamWriteValue32(stream, flag, round, 0));
}

static void consume(hipStream_t stream, void *numbers, void *total, void *flag, uint32_t round) {
    CHECK(hipStreamWaitValue32(stream, flag, BUG ? 1 : round, hipStreamWaitValueGte, 0xffffffff));
    CHECK(LAUNCH(sum, 1, stream, &numbers, &total));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    hipStream_t a, b;
    void *numbers, *total, *flag;
    KERNEL_ENTER(fill);
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    CHECK(hipMalloc(&numbers, COUNT * sizeof(uint32_t)));
    CHECK(hipMalloc(&total, sizeof(uint32_t)));
    CHECK(hipExtMallocWithFlags(&flag, 8, hipMallocSignalMemory));
    CHECK(hipMemset(total, 0, sizeof(uint32_t)));
    CHECK(hipMemset(flag, 0, 8));
    CHECK(hipDeviceSynchronize());
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        produce(a, numbers, flag, round);
        consume(b, numbers, total, flag, round);
    }
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(flag));
    CHECK(hipFree(total));
    CHECK(hipFree(numbers));
    CHECK(hipStreamDestroy(a));
    CHECK(hipStreamDestroy(b));
    return 0;
}
