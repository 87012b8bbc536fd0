// Kernels whose instructions are exact, within a documented error, or approximate. -DBRANCH: an
// approximate value, the clock, decides a branch; -DADDRESS: it becomes part of an address.
#include <cstdio>
#include <hip/hip_runtime.h>

__global__ void exact(int *a) {
    a[threadIdx.x] = a[threadIdx.x] * 3 + (int)threadIdx.x;
}

__global__ void precise(float *a) {
    a[threadIdx.x] = __expf(a[threadIdx.x]);
}

__global__ void timed(int *a) {
    long now = clock64();
#if defined(BRANCH)
    if (now & 1)
        a[0] = 1;
    else
        a[1] = 2;
#elif defined(ADDRESS)
    a[now & 63] = 1;
#else
    a[threadIdx.x] = (int)now;
#endif
}

int main() {
    int *a, host[64];
    float *b;
    if (hipMalloc((void **)&a, 256) || hipMalloc((void **)&b, 256) || hipMemset(a, 0, 256) ||
        hipMemset(b, 0, 256))
        return 1;
    exact<<<1, 64>>>(a);
    precise<<<1, 64>>>(b);
#if !defined(EXACT)
    timed<<<1, 64>>>(a);
#endif
    if (hipMemcpy(host, a, 256, hipMemcpyDeviceToHost) || hipFree(a) || hipFree(b))
        return 1;
    puts("PASS");
    return 0;
}
