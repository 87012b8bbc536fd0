/* A worker queues an upload from its own buffer and ends, and its buffer with it; the main thread
 * waits too late.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=work;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include <pthread.h>

#include "case.h"

enum { BYTES = 64 << 10 };

static void *device;
static hipStream_t stream;

void *work(void *unused) {
    char *mine = malloc(BYTES);
    if (!mine)
        return NULL;
    memset(mine, 4, BYTES);
    CHECK(hipHostRegister(mine, BYTES, 0));
    CHECK(hipMemcpyAsync(device, mine, BYTES, hipMemcpyHostToDevice, stream));
    if (!BUG) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipHostUnregister(mine));
    }
    free(mine);
    return unused;
}

int main(void) {
    pthread_t thread;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
