// What one group of a cooperative launch reads another has written: with a barrier of the grid between them (FIXED) and
// without (BUG).
#include "check.h"

#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void hands_over(int *a, int *b) {
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank(), n = (int)grid.size();
    a[i] = i;
#ifdef FIXED
    grid.sync();
#endif
    b[i] = a[(i + blockDim.x) % n];
}

int main() {
    const int blocks = 5, threads = 64;
    Buffer<int> a(std::vector<int>(blocks * threads, 0)), b(std::vector<int>(blocks * threads, 0));
    void *arguments[] = {&a.device, &b.device};
    CHECK(hipLaunchCooperativeKernel((void *)hands_over, dim3(blocks), dim3(threads), arguments, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    return finish();
}
