// Data races within a launch, one kernel each, and their fixed twins (-DFIXED): between waves in
// LDS, between workgroups in device memory, between lanes of one instruction, a missing fence.
// -DONLY=n runs one of them. Correct code follows: reductions, a histogram, the last
// block that adds up, a spin lock, a flag.
#include <hip/hip_runtime.h>

#include <cstdio>

#ifdef FIXED
#define BARRIER() __syncthreads()
#define FENCE()   __threadfence()
#define ADD(p, x) atomicAdd(p, x)
#else
#define BARRIER()
#define FENCE()
#define ADD(p, x) (*(p) += (x))
#endif

// The next wave's element is read without waiting for it.
__global__ void neighbour(const int *in, int *out) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    tile[i] = in[i];
    BARRIER();
    out[i] = tile[(i + 64) % 256];
}

// Every block adds to the same number.
__global__ void total(const int *in, int *sum) {
    if (threadIdx.x == 0)
        ADD(sum, in[blockIdx.x]);
}

// All lanes store to the same place.
__global__ void winner(const int *in, int *out) {
#ifdef FIXED
    out[threadIdx.x] = in[threadIdx.x];
#else
    out[threadIdx.x / 2] = in[threadIdx.x];
#endif
}

// The block that comes last adds up what the others have stored.
__global__ void last_block(const int *in, int *parts, unsigned *count, int *sum) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = in[blockIdx.x];
        FENCE();
        last = atomicAdd(count, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int s = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            s += parts[i];
        *sum = s;
    }
}

// ---- correct code ----

__global__ void reduce(const int *in, int *out) {
    __shared__ int part[256];
    int i = threadIdx.x;
    part[i] = in[i];
    __syncthreads();
    for (int step = 128; step; step /= 2) {
        if (i < step)
            part[i] += part[i + step];
        __syncthreads();
    }
    if (i == 0)
        atomicAdd(out, part[0]);
}

__global__ void histogram(const int *in, int *bins) {
    __shared__ int own[16];
    if (threadIdx.x < 16)
        own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&own[in[threadIdx.x] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void locked(int *lock, int *value) {
    if (threadIdx.x != 0)
        return;
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence();
    *value = *value + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Any thread that finds something raises the flag.
__global__ void raised(const int *in, int *flag) {
    if (in[threadIdx.x] > 3)
        *flag = 1;
}

__global__ void bytes(unsigned char *out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned char)threadIdx.x;
}

// Every block adds to a variable of the module; not correct either.
__device__ int tallied;
__global__ void tally(const int *in) {
    if (threadIdx.x == 0)
        ADD(&tallied, in[blockIdx.x]);
}

int main() {
    int host[256], *in, *out;
    for (int i = 0; i < 256; i++)
        host[i] = i;
    if (hipMalloc(&in, sizeof host) != hipSuccess || hipMalloc(&out, 4 * sizeof host) != hipSuccess ||
        hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice) != hipSuccess ||
        hipMemset(out, 0, 4 * sizeof host) != hipSuccess)
        return 1;
#if !defined(ONLY) || ONLY == 1
    neighbour<<<1, 256>>>(in, out);
#endif
#if !defined(ONLY) || ONLY == 2
    total<<<8, 64>>>(in, out);
#endif
#if !defined(ONLY) || ONLY == 3
    winner<<<1, 64>>>(in, out);
#endif
#if !defined(ONLY) || ONLY == 4
    last_block<<<8, 64>>>(in, out + 512, (unsigned *)out + 600, out + 601);
#endif
#ifndef ONLY
    reduce<<<4, 256>>>(in, out + 700);
    histogram<<<4, 256>>>(in, out + 704);
    locked<<<8, 64>>>(out + 800, out + 801);
    raised<<<8, 256>>>(in, out + 1000);
    bytes<<<3, 65>>>((unsigned char *)(out + 900));
    if (hipMemcpyToSymbol(HIP_SYMBOL(tallied), host, sizeof tallied) != hipSuccess)
        return 1;
    tally<<<8, 64>>>(in);
#endif
    if (hipDeviceSynchronize() != hipSuccess)
        return 1;
    if (hipFree(in) != hipSuccess || hipFree(out) != hipSuccess)
        return 1;
    printf("PASS\n");
    return 0;
}
