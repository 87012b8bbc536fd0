/* One thread's kernel fails; it is another thread, with good work in a stream of its own, that gets
 * the error.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UPSTREAM_KERNEL_FAULT; also SIZE_MISMATCH;
 *         culprit kernel=fill argument=out site=bad_thread; messenger hipMemcpy site=good_thread */
#include "case.h"

#include <pthread.h>

enum { COUNT = 2048 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        ARG(float *, 0)[i] = 1;
}

static void *buffer[2];

void *bad_thread(void *stream) {
    uint32_t count = BUG ? COUNT + 1 : COUNT;
    (void)LAUNCH(fill, 1, stream, &buffer[0], &count);
    return NULL;
}

void *good_thread(void *stream) {
    static float host[COUNT];
    uint32_t count = COUNT;
    (void)LAUNCH(fill, 1, stream, &buffer[1], &count);
    hipError_t e = hipMemcpy(host, buffer[1], sizeof host, hipMemcpyDeviceToHost);
    if (e != hipSuccess)
        fprintf(stderr, "good thread: %s\n", hipGetErrorString(e));
    return NULL;
}

int main(void) {
    pthread_t thread;
    hipStream_t stream[2];
    KERNEL_ENTER(fill);
    for (int i = 0; i < 2; i++) {
        CHECK(hipStreamCreate(&stream[i]));
        CHECK(hipMalloc(&buffer[i], COUNT * sizeof(float)));
    }
    pthread_create(&thread, NULL, bad_thread, stream[0]);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, good_thread, stream[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(hipFree(buffer[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    return 0;
}
