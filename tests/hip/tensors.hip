// Kernels for tensors.c, which loads them as a code object.
#include <hip/hip_runtime.h>

extern "C" __global__ void scale(float *tensor, const float *by, const int *count) {
    for (int i = threadIdx.x; i < count[0]; i += blockDim.x)
        tensor[i] *= by[0]; // line 6
}

// Four elements at a time: the last store begins in the tensor and ends outside.
extern "C" __global__ void quads(float4 *tensor, const int *count) {
    int i = threadIdx.x;
    if (i < (count[2] + 3) / 4)
        tensor[i] = float4{ 0, 0, 0, 0 }; // line 13
}

extern "C" __global__ void whole(float *arena, const int *count) {
    for (int i = threadIdx.x; i < count[1]; i += blockDim.x)
        arena[i] = 0;
}
