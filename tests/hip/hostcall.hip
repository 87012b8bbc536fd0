// What kernels ask of the host: printf with every kind of argument, memory, and calls of functions. With
// an argument on the command line an assertion fails on the device.
#include "check.h"

#include <cassert>

typedef uint64_t pair __attribute__((ext_vector_type(2)));
extern "C" __device__ pair __ockl_call_host_function(uint64_t function, uint64_t a, uint64_t b,
                                                     uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                                                     uint64_t g);

__global__ void say(int n, const char *unused) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i == 0) {
        printf("plain text, no argument\n");
        int length = printf("%d %u %x %c %5.2f|%-6d|%06d|%s|%s|%%|%p\n", -n, 7u, 255, 'z', 2.5 * n, n, n,
                            "a string", n > 100 ? "x" : "one that is longer than a packet has room for",
                            (void *)0x1234);
        printf("%d characters, %lld %*d %.*f %e\n", length, 1ll << 40, 6, n, 1, 0.25, 1e10);
    }
    if (i >= 126)
        printf("thread %d of %d\n", i, (int)(blockDim.x * gridDim.x));
    if (unused)
        printf("%s", unused);
}

__global__ void allocate(int **out, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int *p = (int *)malloc(count * sizeof(int));
    for (int k = 0; k < count; k++)
        p[k] = i + k;
    out[i] = p;
}

__global__ void release(int **in, int *sum, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), s = 0;
    for (int k = 0; k < count; k++)
        s += in[i][k];
    sum[i] = s;
    free(in[i]);
}

__global__ void call(uint64_t function, uint64_t *out) {
    uint64_t i = threadIdx.x;
    pair r = __ockl_call_host_function(function, i, 2, 3, 0, 0, 0, 0);
    out[i] = r.x + r.y;
}

__global__ void insist(int n) {
    assert(n == 4);
}

static void host_function(uint64_t *out, const uint64_t *in) {
    out[0] = in[0] * in[1];
    out[1] = in[2];
}

static void memory(int count) {
    Buffer<int *> pointers(128);
    Buffer<int> sums(128);
    allocate<<<2, 64>>>(pointers.device, count);
    release<<<2, 64>>>(pointers.device, sums.device, count);
    std::vector<int> got = sums.host();
    for (int i = 0; i < 128; i++)
        EXPECT(got[i] == count * i + count * (count - 1) / 2, "%d: %d", i, got[i]);
}

int main(int argc, char **) {
    say<<<2, 64>>>(42, nullptr);
    CHECK(hipDeviceSynchronize());
    memory(5);
    memory(1000); // a block of its own
    Buffer<uint64_t> results(64);
    call<<<1, 64>>>((uint64_t)&host_function, results.device);
    std::vector<uint64_t> got = results.host();
    for (uint64_t i = 0; i < 64; i++)
        EXPECT(got[i] == 2 * i + 3, "%d: %d", (int)i, (int)got[i]);
    if (argc > 1) {
        insist<<<1, 1>>>(3);
        printf("asserted: %s\n", hipGetErrorName(hipDeviceSynchronize()));
    }
    return finish();
}
