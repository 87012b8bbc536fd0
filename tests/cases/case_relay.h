/* case_relay.h - a buffer that one thread fills in its stream and another sums up in its own. Each
 * program says how the first tells the second that it may begin. With the bug it does so when the
 * work is only queued; the fixed program waits for the work first. */
#ifndef CASES_CASE_RELAY_H
#define CASES_CASE_RELAY_H

#include <pthread.h>

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float) };

static void *in, *out;
static hipStream_t first, second;

/* By the thread that fills, when the other may begin; by the one that sums up, until then. */
static void hand_over(void);
static void take_over(void);

static void *produce(void *unused) {
    CHECK(hipMemsetAsync(in, 0, BYTES, first));
    if (!BUG)
        CHECK(hipStreamSynchronize(first));
    hand_over();
    return unused;
}

static void reduce(void) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, second, &out, &in, &count));
}

static void *consume(void *unused) {
    take_over();
    reduce();
    return unused;
}

static int relay(void) {
    pthread_t thread[2];
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
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
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}

#endif
