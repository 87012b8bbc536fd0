// The watchdog's cases, and that of a signal: a kernel that waits for a flag that nobody sets, and one
// with so many short groups that nobody would wait for all of them.
#include "check.h"

__global__ void waits(int *flag, int *out) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)
        ;
    out[0] = 1;
}

__global__ void brief(int *out) {
    out[threadIdx.x] = 1;
}

int main(int argc, char **argv) {
    Buffer<int> flag(std::vector<int>(1, argc > 1)), out(64);
    if (argc > 1 && !std::strcmp(argv[1], "many"))
        brief<<<0x7fffffff, 1>>>(out.device); // 2^32 threads would be refused
    else
        waits<<<2, 64>>>(flag.device, out.device);
    hipError_t r = hipDeviceSynchronize();
    std::printf("%s\n", hipGetErrorName(r));
    return r == hipSuccess ? 0 : 1;
}
