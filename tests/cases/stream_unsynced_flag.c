/* A buffer goes from thread to thread by an atomic flag, which nobody records and which says only
 * that the work was queued. The producer waits for it later, so that it depends on how the threads
 * happen to run whether the consumer's kernel was launched after that: found, or undecided, but
 * never ruled out. The fixed program starts the consumer when the producer has ended, and hands
 * over an event.
 *
 * Expect: verdict FINDINGS|INCONCLUSIVE; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float) };

static void *in, *out;
static hipStream_t first, second;
static hipEvent_t ready;
static atomic_int queued;

void *produce(void *unused) {
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipEventRecord(ready, first));
    atomic_store(&queued, 1);
    CHECK(hipStreamSynchronize(first));
    return unused;
}

void reduce(void) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, second, &out, &in, &count));
}

void *consume(void *unused) {
    while (!atomic_load(&queued))
        sched_yield();
    if (!BUG)
        CHECK(hipStreamWaitEvent(second, ready, 0));
    reduce();
    return unused;
}

int main(void) {
    pthread_t thread[2];
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    CHECK(hipMalloc(&in, BYTES));
    CHECK(hipMalloc(&out, sizeof(float)));
    if (pthread_create(&thread[0], NULL, produce, NULL) != 0)
        return 1;
    if (!BUG)
        pthread_join(thread[0], NULL);
    if (pthread_create(&thread[1], NULL, consume, NULL) != 0)
        return 1;
    if (BUG)
        pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipEventDestroy(ready));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}
