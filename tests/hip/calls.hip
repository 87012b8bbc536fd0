// calls.hip - control flow: recursion, virtual functions, function pointers, switch, private arrays,
// device variables, and lanes that exchange values.
#include "check.h"

enum { N = 300, RESULTS = 4 };

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

struct Shape {
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
};
struct Rectangle : Shape {
    int a, b;
    __device__ Rectangle(int a, int b) : a(a), b(b) {}
    __device__ int area() const override { return a * b; }
};

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }

__device__ int counter = 5;
__constant__ int table[4] = { 3, 1, 4, 1 };

__global__ void calls(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    int (*function)(int, int) = i % 2 ? add : multiply;
    Square square(i);
    Rectangle rectangle(i, 3);
    const Shape *shape = i % 3 ? (const Shape *)&square : (const Shape *)&rectangle;
    int local[16], chosen;
    for (int k = 0; k < 16; k++)
        local[k] = k * i;
    switch (i % 5) {
    case 0: chosen = 11; break;
    case 1: chosen = local[i % 16]; break;
    case 2: chosen = -7; break;
    case 3: chosen = table[i % 4]; break;
    default: chosen = i;
    }
    out[i * RESULTS] = fibonacci(i % 12);
    out[i * RESULTS + 1] = shape->area();
    out[i * RESULTS + 2] = function(i, 7);
    out[i * RESULTS + 3] = chosen;
    atomicAdd(&counter, 1);
}

__global__ void lanes(int *sums, int *crossed, int *moved, int *any) {
    int t = threadIdx.x, v = t;
    for (int d = 32; d; d /= 2)
        v += __shfl_down(v, d);
    if (t % 64 == 0)
        sums[t / 64] = v;
    crossed[t] = __shfl_xor(t, 5);
    moved[t] = __shfl_up(t, 3);
    any[t] = __any(t == 70);
}

static int host_fibonacci(int n) {
    int a = 0, b = 1;
    while (n--) {
        int c = a + b;
        a = b;
        b = c;
    }
    return a;
}

static void check_calls() {
    static const int host_table[4] = { 3, 1, 4, 1 };
    Buffer<int> out(N * RESULTS);
    calls<<<3, 128>>>(out.device);
    CHECK(hipGetLastError());
    auto r = out.host();
    for (int i = 0; i < N; i++) {
        const int choices[5] = { 11, i % 16 * i, -7, host_table[i % 4], i };
        const int expected[RESULTS] = { host_fibonacci(i % 12), i % 3 ? i * i : i * 3,
                                        i % 2 ? i + 7 : i * 7, choices[i % 5] };
        for (int k = 0; k < RESULTS; k++)
            EXPECT(r[i * RESULTS + k] == expected[k], "result %d of %d: %d instead of %d", k, i,
                   r[i * RESULTS + k], expected[k]);
    }
    int counted = 0;
    CHECK(hipMemcpyFromSymbol(&counted, HIP_SYMBOL(counter), sizeof counted));
    EXPECT(counted == 5 + N, "the counter is %d", counted);
}

static void check_lanes() {
    Buffer<int> sums(4), crossed(256), moved(256), any(256);
    lanes<<<1, 256>>>(sums.device, crossed.device, moved.device, any.device);
    auto s = sums.host(), x = crossed.host(), m = moved.host(), a = any.host();
    for (int w = 0; w < 4; w++)
        EXPECT(s[w] == 64 * 63 / 2 + 64 * 64 * w, "sum of wave %d: %d", w, s[w]);
    for (int t = 0; t < 256; t++) {
        EXPECT(x[t] == (t ^ 5), "lane %d got %d", t, x[t]);
        EXPECT(m[t] == (t % 64 < 3 ? t : t - 3), "lane %d was given %d", t, m[t]);
        EXPECT(a[t] == (t / 64 == 1), "any of lane %d", t);
    }
}

int main() {
    check_calls();
    check_lanes();
    return finish();
}
