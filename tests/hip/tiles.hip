// tiles.hip - LDS and barriers: tiled GEMM, scan, histogram with atomics, bitonic sort.
#include "check.h"

#include <algorithm>

template <int T> __global__ void gemm(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[T][T], tile_b[T][T];
    int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += T) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < T; i++)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern __shared__ int dynamic[];

__global__ void scan(const int *in, int *out, int n) {
    int t = threadIdx.x;
    dynamic[t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int d = 1; d < (int)blockDim.x; d *= 2) {
        int before = t >= d ? dynamic[t - d] : 0;
        __syncthreads();
        dynamic[t] += before;
        __syncthreads();
    }
    if (t < n)
        out[t] = dynamic[t];
}

__global__ void histogram(const unsigned char *in, unsigned *counts, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

__global__ void bitonic(int *data, int j, int k) {
    unsigned i = threadIdx.x + blockDim.x * blockIdx.x, other = i ^ j;
    if (other <= i)
        return;
    bool up = (i & k) == 0;
    if ((data[i] > data[other]) == up) {
        int t = data[i];
        data[i] = data[other];
        data[other] = t;
    }
}

static void check_gemm() {
    const int n = 64;
    std::vector<float> a(n * n), b(n * n);
    for (auto &x : a)
        x = rand() % 7 - 3;
    for (auto &x : b)
        x = rand() % 5 - 2;
    Buffer<float> da(a), db(b), dc(n * n);
    gemm<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(da.device, db.device, dc.device, n);
    CHECK(hipGetLastError());
    auto c = dc.host();
    for (int i = 0; i < n * n; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += a[i / n * n + k] * b[k * n + i % n];
        EXPECT(c[i] == sum, "gemm %d: %g instead of %g", i, c[i], sum);
    }
}

static void check_scan() {
    const int n = 1000;
    std::vector<int> in(n);
    for (auto &x : in)
        x = rand() % 100;
    Buffer<int> from(in), to(n);
    scan<<<1, 1024, 1024 * sizeof(int)>>>(from.device, to.device, n);
    auto out = to.host();
    for (int i = 0, sum = 0; i < n; i++) {
        sum += in[i];
        EXPECT(out[i] == sum, "scan %d: %d instead of %d", i, out[i], sum);
    }
}

static void check_histogram() {
    std::vector<unsigned char> bytes(100000);
    std::vector<unsigned> expected(256);
    for (auto &x : bytes)
        expected[x = rand()]++;
    Buffer<unsigned char> in(bytes);
    Buffer<unsigned> counts(std::vector<unsigned>(256));
    histogram<<<20, 256>>>(in.device, counts.device, (int)bytes.size());
    EXPECT(counts.host() == expected, "the histogram differs");
}

static void check_sort() {
    const int n = 4096;
    std::vector<int> data(n);
    for (auto &x : data)
        x = rand();
    Buffer<int> d(data);
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j; j /= 2)
            bitonic<<<n / 256, 256>>>(d.device, j, k);
    std::sort(data.begin(), data.end());
    EXPECT(d.host() == data, "not sorted");
}

int main() {
    check_gemm();
    check_scan();
    check_histogram();
    check_sort();
    return finish();
}
