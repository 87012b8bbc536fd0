// Two kernels on two streams; the second reads what the first writes. With FIXED an event orders
// them. With APART they work on different halves of one buffer. With PARTIAL only half of what the
// kernel reads was written before.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void twice(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t r = (call);                                                                     \
        if (r != hipSuccess) {                                                                     \
            printf("%s: %s\n", #call, hipGetErrorString(r));                                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main() {
    const int n = 1000;
    float *a, *b, *c;
    hipStream_t s, t;
    hipEvent_t done;
    CHECK(hipMalloc(&a, 2 * n * sizeof *a));
    CHECK(hipMalloc(&b, 2 * n * sizeof *b));
    CHECK(hipMalloc(&c, 2 * n * sizeof *c));
    CHECK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
    CHECK(hipEventCreate(&done));
#ifdef PARTIAL
    CHECK(hipMemset(a, 0, n / 2 * sizeof *a));
#else
    CHECK(hipMemset(a, 0, 2 * n * sizeof *a));
#endif
    CHECK(hipDeviceSynchronize());
    twice<<<4, 256, 0, s>>>(a, b, n);
#ifdef FIXED
    CHECK(hipEventRecord(done, s));
    CHECK(hipStreamWaitEvent(t, done, 0));
#endif
#ifdef APART
    twice<<<4, 256, 0, t>>>(a, b + n, n);
#elif !defined(PARTIAL)
    twice<<<4, 256, 0, t>>>(b, c, n);
#endif
    CHECK(hipDeviceSynchronize());
    CHECK(hipEventDestroy(done));
    CHECK(hipStreamDestroy(s));
    CHECK(hipStreamDestroy(t));
    CHECK(hipFree(a));
    CHECK(hipFree(b));
    CHECK(hipFree(c));
    printf("PASS\n");
    return 0;
}
