// Kernels that include nothing, for tests of what a code object holds: variables of all kinds, static
// ones too; relocations; LDS, scratch, hidden arguments, functions that are called.
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#endif

typedef int (*operation)(int);

__device__ __attribute__((used)) int counter = 42;
__device__ int zeros[100];
__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};
static __device__ int hidden[8] = {10, 20, 30, 40, 50, 60, 70, 80};
__device__ int *pointer = &zeros[3]; // needs a relocation

extern "C" __device__ __attribute__((noinline)) int twice(int x) {
    return 2 * x + hidden[x & 7];
}

extern "C" __global__ void simple(int *out, int n) {
    int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i < n)
        out[i] = twice(i) + counter + (int)factors[i & 3] + *pointer + zeros[i % 100];
}

extern "C" __global__ void lds(int *out) {
    __shared__ int tile[256];
    int i = __builtin_amdgcn_workitem_id_x(), j = __builtin_amdgcn_workitem_id_y();
    tile[i] = j;
    __builtin_amdgcn_s_barrier();
    out[i + __builtin_amdgcn_workgroup_id_y()] = tile[255 - i];
    hidden[i & 7]++;
}

extern "C" __global__ void scratch(int *out, int n) {
    volatile int local[32];
    for (int i = 0; i < 32; i++)
        local[i] = i * n;
    out[__builtin_amdgcn_workitem_id_x()] = local[n & 31];
}

// The compiler cannot tell which of the hidden arguments it reads.
extern "C" __global__ void sizes(int *out, int n) {
    const unsigned char *p = (const unsigned char *)__builtin_amdgcn_implicitarg_ptr();
    const unsigned char *q = (const unsigned char *)__builtin_amdgcn_dispatch_ptr();
    out[0] = p[n] + q[4] + (int)__builtin_amdgcn_workgroup_id_z();
}

// More values than the registers it may have: vector ones go to memory, scalar ones to lanes.
extern "C" __global__ __attribute__((amdgpu_num_vgpr(16), amdgpu_num_sgpr(24))) void crowded(int *out,
                                                                                            int n) {
    int mine[40], common[40], lane = __builtin_amdgcn_workitem_id_x();
    for (int i = 0; i < 40; i++) {
        mine[i] = out[lane * 40 + i];
        __asm__ volatile("s_mov_b32 %0, 0" : "=s"(common[i]));
    }
    __builtin_amdgcn_s_barrier();
    for (int i = 0; i < 40; i++)
        out[lane * n + i] = mine[i] + common[i];
}
