/* Each thread works on a part of its own size; one of them takes the size of the first part. The
 * main thread learns of it when all are done.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=square argument=x site=part; messenger hipDeviceSynchronize site=main */
#include "case.h"

#include <pthread.h>

enum { THREADS = 4, FIRST = 4000 };

KERNEL(square, { "x", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *x = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        x[i] *= x[i];
}

static void *buffer[THREADS];
static hipStream_t stream[THREADS];

static uint32_t count_of(int i) {
    return (uint32_t)(FIRST - 100 * i);
}

void *part(void *number) {
    int i = (int)(intptr_t)number;
    uint32_t count = BUG && i == 2 ? count_of(0) : count_of(i);
    hipMemsetAsync(buffer[i], 0, count_of(i) * sizeof(float), stream[i]);
    LAUNCH(square, 1, stream[i], &buffer[i], &count);
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    KERNEL_ENTER(square);
    for (int i = 0; i < THREADS; i++) {
        CHECK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
        CHECK(hipMalloc(&buffer[i], count_of(i) * sizeof(float)));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, part, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < THREADS; i++) {
        CHECK(hipFree(buffer[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    return 0;
}
