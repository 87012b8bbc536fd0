/* Two threads work on one buffer, each in its own default stream. A thread that ends has not waited
 * for what it queued.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <pthread.h>

#include "case_sum.h"

enum { COUNT = 2048 };

static void *in, *out;

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void *produce(void *unused) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(fill, 1, hipStreamPerThread, &in, &count));
    if (!BUG)
        CHECK(hipStreamSynchronize(hipStreamPerThread));
    return unused;
}

void reduce(void) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, hipStreamPerThread, &out, &in, &count));
}

int main(void) {
    pthread_t thread;
    KERNEL_ENTER(fill);
    KERNEL_ENTER(sum);
    CHECK(hipMalloc(&in, COUNT * sizeof(float)));
    CHECK(hipMalloc(&out, sizeof(float)));
    if (pthread_create(&thread, NULL, produce, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    reduce();
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    return 0;
}
