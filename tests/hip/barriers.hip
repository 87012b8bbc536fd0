// Barriers that not all threads reach, and a twin (-DFIXED) that is right: threads that return early
// do not count.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void within_a_wave(const int *in, int *out) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    tile[i] = in[i];
#ifdef FIXED
    __syncthreads();
#else
    if (in[i] & 1)
        __syncthreads();
#endif
    out[i] = tile[255 - i];
}

__global__ void between_waves(const int *in, int *out) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    tile[i] = in[i];
#ifdef FIXED
    __syncthreads();
#else
    if (__builtin_amdgcn_readfirstlane(i) < 128) {
        tile[i] *= 2;
        __syncthreads();
        out[i] = tile[i ^ 1];
        return;
    }
    tile[i] *= 3;
    __syncthreads();
#endif
    out[i] = tile[i ^ 3] + 1;
}

__global__ void early(const int *in, int *out, int n) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    if (i >= n)
        return;
    tile[i] = in[i];
    __syncthreads();
    out[i] = tile[n - 1 - i];
}

int main() {
    int host[256], *in, *out;
    for (int i = 0; i < 256; i++)
        host[i] = i;
    if (hipMalloc(&in, sizeof host) != hipSuccess || hipMalloc(&out, sizeof host) != hipSuccess ||
        hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice) != hipSuccess)
        return 1;
    within_a_wave<<<1, 256>>>(in, out);
    between_waves<<<1, 256>>>(in, out);
    early<<<1, 256>>>(in, out, 100);
    if (hipDeviceSynchronize() != hipSuccess)
        return 1;
    if (hipFree(in) != hipSuccess || hipFree(out) != hipSuccess)
        return 1;
    printf("PASS\n");
    return 0;
}
