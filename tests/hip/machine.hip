// Kernels of few instructions, to run as machine code: nothing, barriers of all waves, a trap.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void nothing() {}

__global__ void barriers() {
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_s_barrier();
}

__global__ void bounded() __attribute__((amdgpu_flat_work_group_size(1, 128)));
__global__ void bounded() {}

__global__ void trapping() {
    __builtin_trap(); // here
}

__global__ void beyond(int *out) {
    out[threadIdx.x] = 7; // past the end
}

int main(int argc, char **argv) {
    if (argc > 2) {
        int *d;
        if (hipMalloc((void **)&d, 100 * sizeof *d))
            return 1;
        beyond<<<1, 128>>>(d);
        printf("%s %d\n", argv[2], hipDeviceSynchronize());
        return 0;
    }
    nothing<<<dim3(4, 3, 2), 256>>>();
    barriers<<<50, 1000, 1000>>>();
    printf("launched %d\n", hipGetLastError());
    printf("ran %d\n", hipDeviceSynchronize());
    bounded<<<1, 129>>>();
    printf("refused %d\n", hipGetLastError() != hipSuccess);
    if (argc > 1) {
        trapping<<<2, 64>>>();
        printf("trapped %d\n", hipDeviceSynchronize());
    }
    return 0;
}
