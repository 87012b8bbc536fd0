/* case_threads.h - a buffer that one thread fills in its stream and another sums up in its own. */
#ifndef CASES_CASE_THREADS_H
#define CASES_CASE_THREADS_H

#include <pthread.h>

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float) };

static void *in, *out;
static hipStream_t first, second;

static inline void reduce(void) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, second, &out, &in, &count));
}

static inline void open_both(void) {
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipMalloc(&in, BYTES));
    CHECK(hipMalloc(&out, sizeof(float)));
}

static inline void close_both(void) {
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
}

static inline pthread_t start(void *(*run)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        exit(1);
    return thread;
}

#endif
