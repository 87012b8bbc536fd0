/* The buffer is freed in the order of the stream that made it, while another stream still reads it.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis USE_AFTER_FREE; also UPSTREAM_KERNEL_FAULT?;
 *         culprit hipFreeAsync site=release; messenger none or hipDeviceSynchronize site=main */
#include "case.h"

enum { BYTES = 4096 };

KERNEL(check, { "in", 8, GRETA_SOFT_POINTER | GRETA_SOFT_READS },
       { "out", 8, GRETA_SOFT_POINTER }) {
    if (work->first == 0)
        memcpy(ARG(void *, 1), ARG(const void *, 0), BYTES);
}

void release(void *buffer, hipStream_t stream) {
    CHECK(hipFreeAsync(buffer, stream));
}

int main(void) {
    void *buffer, *out;
    hipStream_t maker, reader;
    hipEvent_t made, read;
    KERNEL_ENTER(check);
    CHECK(hipStreamCreateWithFlags(&maker, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&reader, hipStreamNonBlocking));
    CHECK(hipEventCreate(&made));
    CHECK(hipEventCreate(&read));
    CHECK(hipMalloc(&out, BYTES));
    CHECK(hipMallocAsync(&buffer, BYTES, maker));
    CHECK(hipMemsetAsync(buffer, 1, BYTES, maker));
    CHECK(hipEventRecord(made, maker));
    CHECK(hipStreamWaitEvent(reader, made, 0));
    CHECK(LAUNCH(check, 1, reader, &buffer, &out));
    CHECK(hipEventRecord(read, reader));
    if (!BUG)
        CHECK(hipStreamWaitEvent(maker, read, 0));
    release(buffer, maker);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    CHECK(hipEventDestroy(read));
    CHECK(hipEventDestroy(made));
    CHECK(hipStreamDestroy(reader));
    CHECK(hipStreamDestroy(maker));
    return 0;
}
