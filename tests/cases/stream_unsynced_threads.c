/* One thread fills a buffer in its stream, another sums it up in its own. With its bug only a flag
 * between the threads says that the work was queued: that orders nothing on the device, however the
 * threads happen to run. The fixed program hands over an event.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <pthread.h>

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float) };

static void *in, *out;
static hipStream_t first, second;
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

void reduce(void) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, second, &out, &in, &count));
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
    pthread_t thread[2];
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    CHECK(hipMalloc(&in, BYTES));
    CHECK(hipMalloc(&out, sizeof(float)));
    if (pthread_create(&thread[0], NULL, produce, NULL) != 0 ||
        pthread_create(&thread[1], NULL, consume, NULL) != 0)
        return 1;
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
