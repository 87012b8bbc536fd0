/* Many small copies; prints what one costs, in ns of this thread's processor time and by the clock.
 * Arguments: how many, bytes, and `async` for asynchronous ones with a wait after every 1000. */
#include <string.h>
#include <time.h>

#include "program.h"

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 64;
    int async = argc > 3 && strcmp(argv[3], "async") == 0;
    void *device, *host;
    hipStream_t stream;
    CHECK(hipMalloc(&device, bytes));
    CHECK(hipHostMalloc(&host, bytes, 0));
    CHECK(hipStreamCreate(&stream));
    memset(host, 1, bytes);
    CHECK(hipMemcpy(device, host, bytes, hipMemcpyHostToDevice));
    double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    for (long i = 0; i < count; i++) {
        if (!async)
            CHECK(hipMemcpy(host, device, bytes, hipMemcpyDeviceToHost));
        else
            CHECK(hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, stream));
        if (async && i % 1000 == 999)
            CHECK(hipStreamSynchronize(stream));
    }
    CHECK(hipDeviceSynchronize());
    printf("%.1f %.1f\n", (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count,
           (now(CLOCK_MONOTONIC) - wall) / (double)count);
    CHECK(hipStreamDestroy(stream));
    CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    return 0;
}
