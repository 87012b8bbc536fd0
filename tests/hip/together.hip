// Groups of a cooperative launch wait for each other: barriers of the grid, more groups than there are cores.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

// Each round reads what another group wrote in the round before.
__global__ void rounds(int *a, int *b, int count) {
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank(), n = (int)grid.size();
    for (int k = 0; k < count; k++) {
        b[i] = a[(i + blockDim.x) % n] + 1;
        grid.sync();
        int *swap = a;
        a = b;
        b = swap;
    }
}

__global__ void valid(int *out) {
    out[blockIdx.x] = cg::this_grid().is_valid();
}

int main() {
    int blocks = 37, threads = 128, count = 9;
    Buffer<int> a(std::vector<int>(blocks * threads, 0)), b(blocks * threads), flag(1);
    void *arguments[] = {&a.device, &b.device, &count};
    CHECK(hipLaunchCooperativeKernel((void *)rounds, dim3(blocks), dim3(threads), arguments, 0, nullptr));
    for (int x : b.host())
        EXPECT(x == count, "%d, not %d", x, count);
    int fit, units;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&fit, rounds, threads, 0));
    CHECK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    hipError_t r = hipLaunchCooperativeKernel((void *)rounds, dim3(fit * units + 1), dim3(threads), arguments, 0,
                                              nullptr);
    EXPECT(r == hipErrorCooperativeLaunchTooLarge, "too many groups: %s", hipGetErrorName(r));
    (void)hipGetLastError();
    valid<<<1, 1>>>(flag.device);
    EXPECT(flag.host()[0] == 0, "a grid of an ordinary launch is valid");
    return finish();
}
