/* One thread frees a buffer and tells another so under a lock; the other sets the buffer to zero
 * all the same.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis USE_AFTER_FREE; culprit hipMemsetAsync site=consumer;
 *         messenger hipMemsetAsync site=consumer */
#include "case.h"

#include <pthread.h>

enum { BYTES = 5000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *buffer;
static int freed;

void *consumer(void *stream) {
    pthread_mutex_lock(&lock);
    while (!freed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (BUG)
        CHECK(hipMemsetAsync(buffer, 0, BYTES, stream));
    return NULL;
}

int main(void) {
    pthread_t thread;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&buffer, BYTES));
    CHECK(hipMemset(buffer, 1, BYTES));
    pthread_create(&thread, NULL, consumer, stream);
    CHECK(hipFree(buffer));
    pthread_mutex_lock(&lock);
    freed = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
