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

// Every thread goes to a buffer of its own choice, of which there are many, with elements of one byte,
// two and sixteen bytes side by side, and to LDS through a pointer that may be anything.
__global__ void gather(unsigned char *const *table, int tables, const short *add, float4 *out) {
    __shared__ int tile[256];
    int x = threadIdx.x, *at = &tile[255 - x];
    asm volatile("" : "+v"(at)); // LDS or not: the compiler cannot know
    *at = add[x];
    __syncthreads();
    unsigned char *bytes = table[blockIdx.x % tables];
    bytes[x] += 1;
    int sum = tile[x];
    for (int i = 0; i < tables; i++)
        sum += table[i][(x + i) % 256 + 256];
    out[blockIdx.x * 256 + x] = float4{ float(sum), float(bytes[x]), float(x), float(tile[x]) };
}

static void check_buffers() {
    const int buffers = 100;
    std::vector<unsigned char *> table;
    std::vector<unsigned char> bytes(512);
    std::vector<short> add(256);
    for (int x = 0; x < 256; x++)
        add[x] = short(100 - x), bytes[x] = bytes[256 + x] = (unsigned char)(x * 7);
    for (int i = 0; i < buffers; i++) {
        table.push_back(nullptr);
        CHECK(hipMalloc(&table[i], 512));
        CHECK(hipMemcpy(table[i], bytes.data(), 512, hipMemcpyHostToDevice));
    }
    Buffer<unsigned char *> d(table);
    Buffer<short> da(add);
    Buffer<float4> out(256 * buffers);
    gather<<<buffers, 256>>>(d.device, buffers, da.device, out.device);
    auto got = out.host();
    for (int i = 0; i < 256 * buffers; i++) {
        int x = i % 256, sum = add[255 - x];
        for (int n = 0; n < buffers; n++)
            sum += (unsigned char)((x + n) % 256 * 7);
        float4 g = got[i];
        EXPECT(g.x == sum && g.y == (unsigned char)(x * 7 + 1) && g.z == x && g.w == add[255 - x],
               "buffers %d: %g %g %g %g", i, g.x, g.y, g.z, g.w);
    }
    for (auto p : table)
        CHECK(hipFree(p));
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
    check_buffers();
    return finish();
}
