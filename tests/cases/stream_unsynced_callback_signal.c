/* A callback tells the main thread by a condition variable that a download is done; with its bug it
 * is queued before the download. The callback's last act is to unlock, which a compiler makes a
 * jump: the call then returns to whoever ran the callback, and not to the program.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED; culprit site=look; messenger none
 * Run:    --watch-host */
#include <pthread.h>

#include "case.h"

enum { BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool done;

static void tell(hipStream_t stream, hipError_t status, void *data) {
    (void)stream;
    (void)status;
    (void)data;
    pthread_mutex_lock(&lock);
    done = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for_it(void) {
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

unsigned look(const unsigned char *host) {
    return host[BYTES - 1];
}

int main(void) {
    hipStream_t stream;
    void *device, *host;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc(&host, BYTES, hipHostMallocDefault));
    CHECK(hipMemsetAsync(device, 7, BYTES, stream));
    if (BUG)
        CHECK(hipStreamAddCallback(stream, tell, NULL, 0));
    CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
    if (!BUG)
        CHECK(hipStreamAddCallback(stream, tell, NULL, 0));
    wait_for_it();
    unsigned seen = look(host);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
    CHECK(hipStreamDestroy(stream));
    return BUG || seen == 7 ? 0 : 1;
}
