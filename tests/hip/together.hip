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

// An ordinary launch: every group waits for the one after it, as programs do that know their GPU.
__global__ void chain(int *done, int *out) {
    int next = (int)blockIdx.x + 1;
    if (threadIdx.x == 0) {
        while (next < (int)gridDim.x && !__hip_atomic_load(&done[next], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT))
            ;
        out[blockIdx.x] = next < (int)gridDim.x ? out[next] + 1 : 1;
        __hip_atomic_store(&done[blockIdx.x], 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    }
}

// Groups that merely take long: each gets several turns.
__global__ void lengthy(unsigned *out, int rounds) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < rounds; i++)
        x = x * 1664525u + 1013904223u;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static void wait_without_cooperation() {
    int blocks = 50, rounds = 1500000;
    Buffer<int> done(std::vector<int>(blocks, 0)), out(blocks);
    chain<<<blocks, 64>>>(done.device, out.device);
    CHECK(hipDeviceSynchronize());
    EXPECT(out.host()[0] == blocks, "%d groups of a chain, not %d", out.host()[0], blocks);
    Buffer<unsigned> ends(5 * 64);
    lengthy<<<5, 64>>>(ends.device, rounds);
    std::vector<unsigned> ended = ends.host();
    for (unsigned i = 0; i < ended.size(); i += 63) {
        unsigned x = i;
        for (int k = 0; k < rounds; k++)
            x = x * 1664525u + 1013904223u;
        EXPECT(ended[i] == x, "thread %u: %u, not %u", i, ended[i], x);
    }
}

int main() {
    wait_without_cooperation();
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
