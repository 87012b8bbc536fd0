// math.hip - arithmetic against the host: f32 and f64 functions, integer division, halves.
#include "check.h"

#include <hip/hip_fp16.h>

enum { N = 1000, F32 = 12, F64 = 6, INTS = 8 };

__global__ void f32(const float *x, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v = x[i], *o = out + i * F32;
    o[0] = sinf(v);
    o[1] = cosf(v);
    o[2] = expf(v);
    o[3] = logf(fabsf(v));
    o[4] = sqrtf(fabsf(v));
    o[5] = powf(fabsf(v), 1.7f);
    o[6] = tanhf(v);
    o[7] = atan2f(v, 2.0f);
    o[8] = v / 3.1f;
    o[9] = fmodf(v, 0.7f);
    o[10] = rsqrtf(fabsf(v));
    o[11] = erff(v);
}

__global__ void f64(const double *x, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    double v = x[i], *o = out + i * F64;
    o[0] = sin(v);
    o[1] = exp(v);
    o[2] = log(fabs(v));
    o[3] = sqrt(fabs(v));
    o[4] = v / 3.1;
    o[5] = pow(fabs(v), 0.3);
}

__global__ void ints(const int *a, const int *b, long long *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    int x = a[i], y = b[i];
    long long *o = out + i * INTS;
    o[0] = x / y;
    o[1] = x % y;
    o[2] = (unsigned)x / (unsigned)y;
    o[3] = (long long)x * 1234567891011LL / y;
    o[4] = __popc(x);
    o[5] = __clz(x);
    o[6] = __ffs(x);
    o[7] = __mulhi(x, y);
}

__global__ void halves(const float *x, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    __half h = __float2half(x[i]);
    __half2 pair = __hadd2(__halves2half2(h, h), __float2half2_rn(1.5f));
    out[i] = __half2float(__low2half(pair)) * __half2float(h);
}

static bool close(double a, double b, double relative, double absolute) {
    return (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= relative * std::fabs(b) ||
           std::fabs(a - b) < absolute;
}

static void check_f32(const std::vector<float> &x, const Buffer<float> &dx) {
    Buffer<float> out(N * F32);
    f32<<<4, 256>>>(dx.device, out.device);
    auto r = out.host();
    for (int i = 0; i < N; i++) {
        double v = x[i], m = std::fabs(v);
        const double expected[F32] = { std::sin(v),  std::cos(v),        std::exp(v),
                                       std::log(m),  std::sqrt(m),       std::pow(m, (double)1.7f),
                                       std::tanh(v), std::atan2(v, 2.0), v / (double)3.1f,
                                       std::fmod(v, (double)0.7f), 1 / std::sqrt(m), std::erf(v) };
        for (int k = 0; k < F32; k++)
            EXPECT(close(r[i * F32 + k], expected[k], 2e-6, 1e-6), "f32 %d of %g: %g instead of %g", k, v,
                   r[i * F32 + k], expected[k]);
    }
}

static void check_f64() {
    std::vector<double> x(N);
    for (int i = 0; i < N; i++)
        x[i] = (i - N / 2) * 0.0371;
    Buffer<double> dx(x), out(N * F64);
    f64<<<4, 256>>>(dx.device, out.device);
    auto r = out.host();
    for (int i = 0; i < N; i++) {
        double v = x[i], m = std::fabs(v);
        const double expected[F64] = { std::sin(v), std::exp(v), std::log(m),
                                       std::sqrt(m), v / 3.1,     std::pow(m, 0.3) };
        for (int k = 0; k < F64; k++)
            EXPECT(close(r[i * F64 + k], expected[k], 1e-14, 1e-15), "f64 %d of %g: %.17g instead of %.17g",
                   k, v, r[i * F64 + k], expected[k]);
    }
}

static void check_ints() {
    std::vector<int> a(N), b(N);
    for (int i = 0; i < N; i++) {
        a[i] = rand() - rand();
        b[i] = rand() % 1000 - 500;
        b[i] += b[i] == 0;
    }
    Buffer<int> da(a), db(b);
    Buffer<long long> out(N * INTS);
    ints<<<4, 256>>>(da.device, db.device, out.device);
    auto r = out.host();
    for (int i = 0; i < N; i++) {
        const long long expected[INTS] = { a[i] / b[i],
                                           a[i] % b[i],
                                           (unsigned)a[i] / (unsigned)b[i],
                                           (long long)a[i] * 1234567891011LL / b[i],
                                           __builtin_popcount(a[i]),
                                           a[i] ? __builtin_clz(a[i]) : 32,
                                           __builtin_ffs(a[i]),
                                           (long long)a[i] * b[i] >> 32 };
        for (int k = 0; k < INTS; k++)
            EXPECT(r[i * INTS + k] == expected[k], "integer %d of %d, %d: %lld instead of %lld", k, a[i], b[i],
                   r[i * INTS + k], expected[k]);
    }
}

int main() {
    std::vector<float> x(N);
    for (int i = 0; i < N; i++)
        x[i] = (i - N / 2) * 0.037f;
    Buffer<float> dx(x), dh(N);
    check_f32(x, dx);
    check_f64();
    check_ints();
    halves<<<4, 256>>>(dx.device, dh.device);
    auto h = dh.host();
    for (int i = 0; i < N; i++)
        EXPECT(close(h[i], (x[i] + 1.5) * x[i], 0.01, 0.01), "half of %g: %g", x[i], h[i]);
    return finish();
}
