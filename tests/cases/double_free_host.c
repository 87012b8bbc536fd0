/* Pinned memory is freed twice, by two threads one after the other.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipHostFree site=main;
 *         messenger hipHostFree site=main */
#include "case.h"

#include <pthread.h>

static void *staging;

static void *work_and_free(void *unused) {
    memset(staging, 1, 4096);
    CHECK(hipHostFree(staging));
    return unused;
}

int main(void) {
    pthread_t thread;
    CHECK(hipHostMalloc(&staging, 4096, 0));
    pthread_create(&thread, NULL, work_and_free, NULL);
    pthread_join(thread, NULL);
    if (BUG)
        CHECK(hipHostFree(staging));
    CHECK(hipDeviceSynchronize());
    return 0;
}
