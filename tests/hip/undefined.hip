// Values that nothing has defined, one kernel each, and their fixed twins (-DFIXED): device memory
// that is stored elsewhere, LDS that decides a branch, a private variable that becomes an address.
// Copying undefined bytes without using them is no bug.
#include <hip/hip_runtime.h>

#include <cstdio>

struct mixed {
    char kind;
    int value;
};

__global__ void copies(const int *in, int *out) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
}

__global__ void branches(const int *in, int *out) {
    __shared__ int tile[256];
    int i = threadIdx.x;
#ifdef FIXED
    tile[i] = in[i];
#else
    if (i < 200)
        tile[i] = in[i];
#endif
    __syncthreads();
    if (tile[255 - i] > 100)
        out[i] = 1;
    else
        out[i] = 2;
}

__global__ void indexes(const int *in, int *out, int n) {
    int order[8];
#ifdef FIXED
    for (int k = 0; k < 8; k++)
        order[k] = k;
#else
    for (int k = 1; k < 8; k++)
        order[in[k] & 7] = k;
#endif
    out[order[n & 7] & 255] = n;
}

__global__ void unused(const int *in, int *out) {
    __shared__ int tile[512];
    int i = threadIdx.x, kept = tile[i + 256];
    tile[i] = in[i];
    __syncthreads();
    tile[i + 256] = kept;
    out[i] = tile[255 - i] + (tile[i + 256] ^ tile[i + 256]);
}

__global__ void padded(const int *in, mixed *out) {
    mixed m;
    m.kind = (char)in[threadIdx.x];
    m.value = in[threadIdx.x];
    out[threadIdx.x] = m;
}

int main() {
    int host[256], *in, *out, *fresh;
    for (int i = 0; i < 256; i++)
        host[i] = i;
    if (hipMalloc(&in, sizeof host) != hipSuccess || hipMalloc(&out, 2 * sizeof host) != hipSuccess ||
        hipMalloc(&fresh, sizeof host) != hipSuccess ||
        hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice) != hipSuccess)
        return 1;
#ifdef FIXED
    if (hipMemset(fresh, 0, sizeof host) != hipSuccess)
        return 1;
#endif
    copies<<<1, 256>>>(fresh, out);
    branches<<<1, 256>>>(in, out);
    indexes<<<1, 64>>>(in, out, 8);
    unused<<<1, 256>>>(in, out);
    padded<<<1, 256>>>(in, (mixed *)out);
    if (hipDeviceSynchronize() != hipSuccess)
        return 1;
    if (hipFree(in) != hipSuccess || hipFree(out) != hipSuccess || hipFree(fresh) != hipSuccess)
        return 1;
    printf("PASS\n");
    return 0;
}
