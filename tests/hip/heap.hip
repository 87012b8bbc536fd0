// Memory that kernels allocate for themselves: heap [past|before|freed|twice|foreign|lost]. Without an argument all is in order.
#include "check.h"

#include <string>

__global__ void numbers(int *out, int count, int first, int last) {
    int *p = (int *)malloc(count * sizeof(int)), sum = 0;
    for (int i = 0; i < count; i++)
        p[i] = i + threadIdx.x;
    for (int i = first; i < last; i++)
        sum += p[i]; // line 11
    out[threadIdx.x] = sum;
    free(p);
}

__device__ int *kept[64];
__global__ void keep(int count) {
    kept[threadIdx.x] = new int[count];
    for (int i = 0; i < count; i++)
        kept[threadIdx.x][i] = i;
}
__global__ void use(int *out, bool early) {
    if (early)
        delete[] kept[threadIdx.x];
    out[threadIdx.x] = kept[threadIdx.x][1]; // line 25
    if (!early)
        delete[] kept[threadIdx.x];
}
__global__ void again(int *foreign) {
    void *p = malloc(24);
    free(p);
    if (foreign)
        free(foreign); // line 33
    else
        free(p); // line 35
}

__global__ void lose(int *out) {
    int *p = (int *)malloc(24), *q = (int *)malloc(40); // line 39
    p[0] = q[0] = threadIdx.x;
    out[threadIdx.x] = p[0] + q[0];
    free(q);
}

int main(int argc, char **argv) {
    std::string bug = argc > 1 ? argv[1] : "";
    const int n = 64, sizes[] = { 1, 10, 700, 5000, 100000 };
    Buffer<int> out(n);
    for (int size : sizes) {
        numbers<<<1, n>>>(out.device, size, bug == "before" ? -1 : 0, bug == "past" ? size + 1 : size);
        CHECK(hipDeviceSynchronize());
        std::vector<int> sums = out.host();
        for (int t = 0; t < n; t++)
            EXPECT(sums[t] == (int)((long)size * (size - 1) / 2 + (long)size * t), "%d numbers of thread %d", size, t);
    }
    for (int round = 0; round < 40; round++) { // more than one chunk of the heap, freed by another kernel
        keep<<<1, n>>>(200);
        use<<<1, n>>>(out.device, bug == "freed");
    }
    CHECK(hipDeviceSynchronize());
    if (bug == "twice" || bug == "foreign")
        again<<<1, n>>>(bug == "foreign" ? out.device : nullptr);
    if (bug == "lost")
        for (int round = 0; round < 3; round++)
            lose<<<1, n>>>(out.device);
    CHECK(hipDeviceSynchronize());
    return finish();
}
