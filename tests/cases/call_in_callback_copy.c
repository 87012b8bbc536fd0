/* A callback of a stream queues the next upload itself, into another stream; the fixed twin lets
 * the callback only say that the buffer is free, and the main thread queues the upload.
 *
 * Expect: verdict FINDINGS; hypothesis CALL_IN_CALLBACK;
 *         culprit hipMemcpyAsync site=refill line=20; messenger none
 * Run:    --watch-host */
#include <stdatomic.h>

#include "case.h"

enum { BYTES = 8192 };

static hipStream_t copies;
static void *device, *host;
static atomic_bool is_free;

void refill(hipStream_t stream, hipError_t status, void *data) {
    (void)stream, (void)data;
    if (BUG && status == hipSuccess)
        CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, copies));
    else if (status != hipSuccess)
        fprintf(stderr, "%s\n",
                hipGetErrorString(status)); /* not a call that callbacks must avoid */
    atomic_store(&is_free, true);
}

int main(void) {
    hipStream_t work;
    void *other;
    CHECK(hipStreamCreateWithFlags(&work, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&copies, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMalloc(&other, BYTES));
    CHECK(hipHostMalloc(&host, BYTES, hipHostMallocDefault));
    memset(host, 1, BYTES);
    CHECK(hipMemsetAsync(other, 0, BYTES, work));
    CHECK(hipStreamAddCallback(work, refill, NULL, 0));
    CHECK(hipStreamSynchronize(work));
    if (!atomic_load(&is_free))
        return 3;
    if (!BUG)
        CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, copies));
    CHECK(hipStreamSynchronize(copies));
    CHECK(hipHostFree(host));
    CHECK(hipFree(other));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(copies));
    CHECK(hipStreamDestroy(work));
    return 0;
}
