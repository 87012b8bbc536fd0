// Addresses that no kernel may use: pointers [misaligned|host|null|wrapped|far]. Without an argument all is in order.
#include "check.h"

#include <string>

__global__ void count(char *counters, int offset) {
    atomicAdd((int *)(counters + offset), 1); // line 7
}

__global__ void copy(int *to, const int *from, int first) {
    to[threadIdx.x] = from[first + threadIdx.x]; // line 11
}

__global__ void shift(int *to, const int *from, unsigned first) {
    to[threadIdx.x] = from[first + threadIdx.x]; // line 15
}

int main(int argc, char **argv) {
    std::string bug = argc > 1 ? argv[1] : "";
    std::vector<int> host(64, 1);
    Buffer<int> in(host), out(64);
    count<<<1, 64>>>((char *)in.device, bug == "misaligned" ? 6 : 8);
    CHECK(hipDeviceSynchronize());
    copy<<<1, 60>>>(out.device, bug == "host" ? host.data() : bug == "null" ? nullptr : in.device, 3);
    CHECK(hipDeviceSynchronize());
    shift<<<1, 60>>>(out.device, in.device, bug == "wrapped" ? -1 : bug == "far" ? 1 << 22 : 1);
    CHECK(hipDeviceSynchronize());
    return finish();
}
