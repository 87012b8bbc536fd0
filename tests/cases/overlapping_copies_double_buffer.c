/* The front buffer is read while the next frame is already copied into it: the swap is forgotten.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=next_frame; messenger none */
#include "case.h"

enum { BYTES = 64 << 10 };

void show(void *screen, const void *front, hipStream_t stream) {
    CHECK(hipMemcpyAsync(screen, front, BYTES, hipMemcpyDeviceToDevice, stream));
}

void next_frame(void *back, const void *scene, hipStream_t stream) {
    CHECK(hipMemcpyAsync(back, scene, BYTES, hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    void *screen, *scene, *buffer[2];
    hipStream_t shows, draws;
    CHECK(hipStreamCreate(&shows));
    CHECK(hipStreamCreate(&draws));
    CHECK(hipMalloc(&screen, BYTES));
    CHECK(hipMalloc(&scene, BYTES));
    CHECK(hipMemset(scene, 3, BYTES));
    for (int i = 0; i < 2; i++) {
        CHECK(hipMalloc(&buffer[i], BYTES));
        CHECK(hipMemset(buffer[i], i, BYTES));
    }
    CHECK(hipDeviceSynchronize());
    show(screen, buffer[0], shows);
    next_frame(buffer[BUG ? 0 : 1], scene, draws);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(screen));
    CHECK(hipFree(scene));
    CHECK(hipFree(buffer[0]));
    CHECK(hipFree(buffer[1]));
    CHECK(hipStreamDestroy(shows));
    CHECK(hipStreamDestroy(draws));
    return 0;
}
