// Products of matrices by MFMA, one kernel per type: c = a * b, 16 x 16 elements by one wave, k in steps. Small whole numbers,
// so that every sum is exact.
#include "check.h"

typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float2v __attribute__((ext_vector_type(2)));
typedef double double4v __attribute__((ext_vector_type(4)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef _Float16 half4v __attribute__((ext_vector_type(4)));
typedef short short4v __attribute__((ext_vector_type(4)));

enum { N = 16, K = 64 };

// Lane l has row (or column) l % 16 and the EACH elements of k from EACH * (l / 16) on.
template <class T, int EACH> __device__ void fetch(T *to, const T *from, int k) {
    int lane = threadIdx.x;
    for (int e = 0; e < EACH; e++)
        to[e] = from[lane % 16 * K + k + EACH * (lane / 16) + e];
}

// Element r of lane l is row 4 * (l / 16) + r, column l % 16.
template <class T, class V> __device__ void put(T *c, V sum) {
    for (int r = 0; r < 4; r++)
        c[(4 * (threadIdx.x / 16) + r) * N + threadIdx.x % 16] = sum[r];
}

__global__ void by_f32(const float *a, const float *b, float *c) {
    float4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 4) {
        float x, y;
        fetch<float, 1>(&x, a, k), fetch<float, 1>(&y, b, k);
        sum = __builtin_amdgcn_mfma_f32_16x16x4f32(x, y, sum, 0, 0, 0);
    }
    put(c, sum);
}

__global__ void by_f16(const _Float16 *a, const _Float16 *b, float *c) {
    float4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 16) {
        half4v x, y;
        fetch<_Float16, 4>((_Float16 *)&x, a, k), fetch<_Float16, 4>((_Float16 *)&y, b, k);
        sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sum, 0, 0, 0);
    }
    put(c, sum);
}

__global__ void by_bf16(const short *a, const short *b, float *c) {
    float4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 16) {
        short4v x, y;
        fetch<short, 4>((short *)&x, a, k), fetch<short, 4>((short *)&y, b, k);
        sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, sum, 0, 0, 0);
    }
    put(c, sum);
}

__global__ void by_i8(const signed char *a, const signed char *b, int *c) {
    int4v sum = {0, 0, 0, 0};
#if defined(__gfx942__)
    for (int k = 0; k < K; k += 32) {
        long x, y;
        fetch<signed char, 8>((signed char *)&x, a, k), fetch<signed char, 8>((signed char *)&y, b, k);
        sum = __builtin_amdgcn_mfma_i32_16x16x32_i8(x, y, sum, 0, 0, 0);
    }
#elif defined(__gfx90a__)
    for (int k = 0; k < K; k += 16) {
        int x, y;
        fetch<signed char, 4>((signed char *)&x, a, k), fetch<signed char, 4>((signed char *)&y, b, k);
        sum = __builtin_amdgcn_mfma_i32_16x16x16i8(x, y, sum, 0, 0, 0);
    }
#endif
    put(c, sum);
}

// For doubles, element r of lane l is row 4 * r + l / 16.
__global__ void by_f64(const double *a, const double *b, double *c) {
    double4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 4) {
        double x, y;
        fetch<double, 1>(&x, a, k), fetch<double, 1>(&y, b, k);
        sum = __builtin_amdgcn_mfma_f64_16x16x4f64(x, y, sum, 0, 0, 0);
    }
    for (int r = 0; r < 4; r++)
        c[(4 * r + threadIdx.x / 16) * N + threadIdx.x % 16] = sum[r];
}

#ifdef GFX942
__global__ void by_fp8(const unsigned char *a, const unsigned char *b, float *c) {
#ifdef __gfx942__
    float4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 32) {
        long x, y;
        fetch<unsigned char, 8>((unsigned char *)&x, a, k), fetch<unsigned char, 8>((unsigned char *)&y, b, k);
        sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, sum, 0, 0, 0);
    }
    put(c, sum);
#endif
}

__global__ void by_xf32(const float *a, const float *b, float *c) {
#ifdef __gfx942__
    float4v sum = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 8) {
        float2v x, y;
        fetch<float, 2>((float *)&x, a, k), fetch<float, 2>((float *)&y, b, k);
        sum = __builtin_amdgcn_mfma_f32_16x16x8_xf32(x, y, sum, 0, 0, 0);
    }
    put(c, sum);
#endif
}
#endif

// Numbers -1, 0, 1, 2; each type says how it writes them.
static int number(int i) { return (i * 7 + i / 5) % 4 - 1; }
static short as_bf16(int x) {
    float f = (float)x;
    unsigned u;
    memcpy(&u, &f, sizeof u);
    return (short)(u >> 16);
}
static unsigned char as_fp8(int x) { return (unsigned char)(x < 0 ? 0xc0 : x == 0 ? 0 : x == 1 ? 0x40 : 0x48); }

template <class T, class R>
static void check(const char *name, void (*kernel)(const T *, const T *, R *), T (*write)(int)) {
    std::vector<T> a(N * K), b(N * K); // b by columns
    for (int i = 0; i < N * K; i++) {
        a[i] = write(number(i));
        b[i] = write(number(i + 3));
    }
    Buffer<T> da(a), db(b);
    Buffer<R> dc(N * N);
    kernel<<<1, 64>>>(da.device, db.device, dc.device);
    std::vector<R> c = dc.host();
    for (int i = 0; i < N * N; i++) {
        int sum = 0;
        for (int k = 0; k < K; k++)
            sum += number(i / N * K + k) * number(i % N * K + k + 3);
        EXPECT(c[i] == (R)sum, "%s: element %d is %g, not %d", name, i, (double)c[i], sum);
    }
}

template <class T> static T plainly(int x) { return (T)x; }

int main() {
    check<float, float>("f32", by_f32, plainly<float>);
    check<_Float16, float>("f16", by_f16, plainly<_Float16>);
    check<short, float>("bf16", by_bf16, as_bf16);
    check<signed char, int>("i8", by_i8, plainly<signed char>);
    check<double, double>("f64", by_f64, plainly<double>);
#ifdef GFX942
    check<unsigned char, float>("fp8", by_fp8, as_fp8);
    check<float, float>("xf32", by_xf32, plainly<float>);
#else
    (void)as_fp8;
#endif
    return finish();
}
