/* Many small copies; prints what one costs, in ns of this thread's processor time and by the clock.
 * Arguments: how many, bytes, and words: `h2d` copies to the device, `both` alternates between the
 * two, else to the host; `pageable` uses memory of malloc, else pinned; `async` waits only after
 * every 1000. */
#include <string.h>
#include <time.h>

#include "program.h"

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int is_given(int argc, char **argv, const char *word) {
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 64;
    int async = is_given(argc, argv, "async"), pageable = is_given(argc, argv, "pageable");
    int both = is_given(argc, argv, "both"), h2d = is_given(argc, argv, "h2d") || both;
    void *device, *host = malloc(bytes);
    hipStream_t stream;
    CHECK(hipMalloc(&device, bytes));
    if (!pageable) {
        free(host);
        CHECK(hipHostMalloc(&host, bytes, 0));
    }
    CHECK(hipStreamCreate(&stream));
    memset(host, 1, bytes);
    CHECK(hipMemcpy(device, host, bytes, hipMemcpyHostToDevice));
    double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    for (long i = 0; i < count; i++) {
        void *dst = h2d ? device : host, *src = h2d ? host : device;
        hipMemcpyKind kind = h2d ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost;
        if (!async)
            CHECK(hipMemcpy(dst, src, bytes, kind));
        else
            CHECK(hipMemcpyAsync(dst, src, bytes, kind, stream));
        if (async && i % 1000 == 999)
            CHECK(hipStreamSynchronize(stream));
        h2d ^= both;
    }
    CHECK(hipDeviceSynchronize());
    printf("%.1f %.1f\n", (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count,
           (now(CLOCK_MONOTONIC) - wall) / (double)count);
    CHECK(hipStreamDestroy(stream));
    if (pageable)
        free(host);
    else
        CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    return 0;
}
