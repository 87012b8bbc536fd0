// Accesses through one argument that miss its allocation by so much that they land in another live one.
// The index comes from memory, so that nothing is known when the program is compiled.
#include "check.h"

__global__ void scatter(float *to, const float *other, const long *index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[index[i]] = other[i]; // line 8
}

__global__ void back(const float *from, float *out, const long *index) {
    out[threadIdx.x] = from[index[0] + threadIdx.x]; // line 12
}

// Pointers that a table holds, a pointer that is chosen, and one that starts before its buffer: all are valid.
__global__ void in_order(float **table, float *a, float *b, int n, int far) {
    float *chosen = n > far ? a : b, *shifted = a - far;
    int i = threadIdx.x;
    table[i % 2][i] = 1;
    chosen[i] = 2;
    shifted[far + i] += 3;
    for (float *p = (i & 1) ? a : b, *end = p + n; p < end; p += 64)
        p[i] += 1;
}

int main() {
    const int n = 256;
    Buffer<float> a(n), b(n);
    Buffer<float *> table(std::vector<float *>{ a.device, b.device });
    long distance = b.device - a.device;
    std::vector<long> index(n);
    for (int i = 0; i < n; i++)
        index[i] = i;
#ifdef BUG
    index[n - 1] = distance + 5;
#endif
    Buffer<long> indices(index);
    CHECK(hipMemset(a.device, 0, n * sizeof(float)));
    CHECK(hipMemset(b.device, 0, n * sizeof(float)));
    scatter<<<1, n>>>(a.device, b.device, indices.device, n);
#ifdef BUG
    index[0] = -distance;
#endif
    Buffer<long> start(index);
    back<<<1, 64>>>(b.device, a.device, start.device);
    in_order<<<1, 64>>>(table.device, a.device, b.device, n, 1 << 20);
    CHECK(hipDeviceSynchronize());
    std::puts("PASS");
}
