/* The last batch is smaller than the others, and the softmax is launched for a full one.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SHAPE_MISMATCH;
 *         also UPSTREAM_KERNEL_FAULT SIZE_MISMATCH;
 *         culprit kernel=softmax argument=scores site=last_batch;
 *         messenger hipEventSynchronize site=main */
#include "case.h"

enum { BATCH = 32, REST = 20, CLASSES = 100 };

KERNEL(softmax, { "scores", 8, GRETA_SOFT_POINTER }, { "batch", 4, 0 }, { "classes", 4, 0 },
       { "scale", 4, 0 }) {
    uint32_t batch = ARG(uint32_t, 1), classes = ARG(uint32_t, 2);
    for (uint64_t b = work->first; b < work->last && b < batch; b++)
        for (uint32_t c = 0; c < classes; c++)
            ARG(float *, 0)[b * classes + c] *= ARG(float, 3);
}

void last_batch(void *scores, uint32_t batch, hipStream_t stream) {
    uint32_t classes = CLASSES;
    float scale = 0.5f;
    CHECK(LAUNCH(softmax, batch, stream, &scores, &batch, &classes, &scale));
}

int main(void) {
    const size_t bytes = sizeof(float) * REST * CLASSES;
    void *scores;
    hipStream_t stream;
    hipEvent_t done;
    KERNEL_ENTER(softmax);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipEventCreate(&done));
    CHECK(hipMallocAsync(&scores, bytes, stream));
    CHECK(hipMemsetAsync(scores, 0, bytes, stream));
    last_batch(scores, BUG ? BATCH : REST, stream);
    CHECK(hipEventRecord(done, stream));
    CHECK(hipEventSynchronize(done));
    CHECK(hipFreeAsync(scores, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipEventDestroy(done));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
