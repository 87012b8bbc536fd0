/* One thread fills a buffer in its stream, another sums it up in its own. With its bug only a flag
 * between the threads says that the work was queued: that orders nothing on the device, however the
 * threads happen to run. The fixed program hands over an event.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case_threads.h"

static hipEvent_t ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queued;

void *produce(void *unused) {
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    CHECK(hipEventRecord(ready, first));
    pthread_mutex_lock(&lock);
    queued = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

void *consume(void *unused) {
    pthread_mutex_lock(&lock);
    while (!queued)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (!BUG)
        CHECK(hipStreamWaitEvent(second, ready, 0));
    reduce();
    return unused;
}

int main(void) {
    open_both();
    CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    pthread_t producer = start(produce), consumer = start(consume);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    close_both();
    CHECK(hipEventDestroy(ready));
    return 0;
}
