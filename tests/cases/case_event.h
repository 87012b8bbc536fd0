/* case_event.h - a buffer that one stream fills and another sums up, with an event between them.
 * The case says how: hand_over() has the buffer filled in the first stream and lets the second
 * wait. */
#ifndef CASES_CASE_EVENT_H
#define CASES_CASE_EVENT_H

#include "case_sum.h"

enum { COUNT = 512, BYTES = COUNT * sizeof(float) };

static void hand_over(void *in, hipEvent_t ready, hipStream_t first, hipStream_t second);

void reduce(void *out, void *in, hipStream_t stream) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, stream, &out, &in, &count));
}

int main(void) {
    hipStream_t first, second;
    hipEvent_t ready;
    void *in, *out;
    float total;
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreate(&ready));
    CHECK(hipMalloc(&in, BYTES));
    CHECK(hipMalloc(&out, sizeof total));
    hand_over(in, ready, first, second);
    reduce(out, in, second);
    CHECK(hipMemcpyAsync(&total, out, sizeof total, hipMemcpyDeviceToHost, second));
    CHECK(hipStreamSynchronize(second));
    CHECK(hipStreamSynchronize(first));
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipEventDestroy(ready));
    CHECK(hipStreamDestroy(first));
    CHECK(hipStreamDestroy(second));
    return 0;
}

#endif
