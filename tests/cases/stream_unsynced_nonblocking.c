/* The default stream fills a buffer; a non-blocking stream does not wait for it by itself.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include "case_sum.h"

enum { COUNT = 4096 };

void reduce(void *out, void *in, hipStream_t stream) {
    uint32_t count = COUNT;
    CHECK(LAUNCH(sum, 1, stream, &out, &in, &count));
    CHECK(hipStreamSynchronize(stream));
}

int main(void) {
    hipStream_t stream;
    void *in, *out;
    KERNEL_ENTER(sum);
    CHECK(hipStreamCreateWithFlags(&stream, BUG ? hipStreamNonBlocking : hipStreamDefault));
    CHECK(hipMalloc(&in, COUNT * sizeof(float)));
    CHECK(hipMalloc(&out, sizeof(float)));
    CHECK(hipMemset(in, 0, COUNT * sizeof(float)));
    reduce(out, in, stream);
    CHECK(hipFree(in));
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
