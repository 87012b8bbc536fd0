/* A buffer goes from thread to thread by an atomic flag, which nobody records and which says only
 * that the work was queued. The producer waits for it later, so that it depends on how the threads
 * happen to run whether the consumer's kernel was launched after that: found, or undecided, but
 * never ruled out. The fixed program starts the consumer when the producer has ended, and hands
 * over an event.
 *
 * Expect: verdict FINDINGS|INCONCLUSIVE; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <sched.h>
#include <stdatomic.h>

#include "case_threads.h"

static hipEvent_t ready;
static atomic_int queued;

void *produce(void *unused) {
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipEventRecord(ready, first));
    atomic_store(&queued, 1);
    CHECK(hipStreamSynchronize(first));
    return unused;
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
    open_both();
    CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    pthread_t producer = start(produce);
    if (!BUG)
        pthread_join(producer, NULL);
    pthread_t consumer = start(consume);
    if (BUG)
        pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    close_both();
    CHECK(hipEventDestroy(ready));
    return 0;
}
