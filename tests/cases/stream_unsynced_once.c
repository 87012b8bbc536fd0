/* Whichever thread comes first fills a table, once. With its bug the fill is only queued, in a
 * stream that the other thread's kernel does not wait for. In the fixed twin it is over when
 * pthread_once returns.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <pthread.h>

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float), THREADS = 2 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *table;
static hipStream_t filler;

void fill(void) {
    CHECK(hipMalloc(&table, BYTES));
    CHECK(hipMemsetAsync(table, 0, BYTES, filler));
    if (!BUG)
        CHECK(hipStreamSynchronize(filler));
}

void reduce(hipStream_t stream, void *out) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, stream, &out, &table, &count));
}

void *work(void *unused) {
    hipStream_t stream;
    void *out;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipMalloc(&out, sizeof(float)));
    pthread_once(&once, fill);
    reduce(stream, out);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(stream));
    return unused;
}

int main(void) {
    pthread_t thread[THREADS];
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&filler, hipStreamNonBlocking));
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(table));
    CHECK(hipStreamDestroy(filler));
    return 0;
}
