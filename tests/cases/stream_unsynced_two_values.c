/* Two streams set one buffer to two values with the same kernel. Without its bug the program gives
 * each stream its half, once by a pointer and once by an offset from the buffer's start.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=paint site=color; messenger none */
#include "case.h"

enum { COUNT = 1024, HALF = COUNT / 2 };

KERNEL(paint, { "out", 8, GRETA_SOFT_POINTER }, { "offset", 4, 0 }, { "count", 4, 0 },
       { "value", 4, 0 }) {
    float *out = ARG(float *, 0);
    uint32_t offset = ARG(uint32_t, 1);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 2); i++)
        out[offset + i] = ARG(float, 3);
}

void color(float *out, uint32_t offset, uint32_t count, float value, hipStream_t stream) {
    CHECK(LAUNCH(paint, 1, stream, &out, &offset, &count, &value));
}

int main(void) {
    hipStream_t left, right;
    float *out;
    KERNEL_ENTER(paint);
    CHECK(hipStreamCreate(&left));
    CHECK(hipStreamCreate(&right));
    CHECK(hipMalloc((void **)&out, COUNT * sizeof *out));
#if BUG
    color(out, 0, COUNT, 1, left);
    color(out, 0, COUNT, 2, right);
#else
    color(out, 0, HALF, 1, left);
    color(out, HALF, HALF, 2, right);
    CHECK(hipDeviceSynchronize());
    color(out, 0, HALF, 3, left);
    color(out + HALF, 0, HALF, 4, right);
#endif
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    CHECK(hipStreamDestroy(left));
    CHECK(hipStreamDestroy(right));
    return 0;
}
