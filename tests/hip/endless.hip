// A kernel that waits for a flag that nobody sets: the watchdog's case, and that of a signal.
#include "check.h"

__global__ void waits(int *flag, int *out) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)
        ;
    out[0] = 1;
}

int main(int argc, char **) {
    Buffer<int> flag(std::vector<int>(1, argc > 1)), out(1);
    waits<<<2, 64>>>(flag.device, out.device);
    hipError_t r = hipDeviceSynchronize();
    std::printf("%s\n", hipGetErrorName(r));
    return r == hipSuccess ? 0 : 1;
}
