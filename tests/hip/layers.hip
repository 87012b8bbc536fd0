// What layers of networks are made of - convolution, softmax, attention - and the ways in which threads add up: shuffles, dynamic
// LDS, tiles of cooperative groups, atomics of every kind.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

enum { WAVE = 64 };

__device__ float wave_sum(float x) {
    for (int step = WAVE / 2; step; step /= 2)
        x += __shfl_xor(x, step);
    return x;
}
__device__ float wave_max(float x) {
    for (int step = WAVE / 2; step; step /= 2)
        x = fmaxf(x, __shfl_xor(x, step));
    return x;
}

// ---- convolution: a tile with its border in LDS ----
enum { SIDE = 40, RADIUS = 2, TILE = 16 };

__constant__ float weights[(2 * RADIUS + 1) * (2 * RADIUS + 1)];

__global__ void convolve(const float *in, float *out) {
    __shared__ float tile[TILE + 2 * RADIUS][TILE + 2 * RADIUS];
    int x0 = blockIdx.x * TILE - RADIUS, y0 = blockIdx.y * TILE - RADIUS;
    for (int y = threadIdx.y; y < TILE + 2 * RADIUS; y += TILE)
        for (int x = threadIdx.x; x < TILE + 2 * RADIUS; x += TILE) {
            bool inside = x0 + x >= 0 && x0 + x < SIDE && y0 + y >= 0 && y0 + y < SIDE;
            tile[y][x] = inside ? in[(y0 + y) * SIDE + x0 + x] : 0.0f;
        }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= SIDE || y >= SIDE)
        return;
    float sum = 0;
    for (int dy = 0; dy <= 2 * RADIUS; dy++)
        for (int dx = 0; dx <= 2 * RADIUS; dx++)
            sum += weights[dy * (2 * RADIUS + 1) + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
    out[y * SIDE + x] = sum;
}

static void check_convolution() {
    float w[25];
    std::vector<float> in(SIDE * SIDE);
    for (int i = 0; i < 25; i++)
        w[i] = (float)(i % 5 - 2);
    for (int i = 0; i < SIDE * SIDE; i++)
        in[i] = (float)(i * 37 % 11);
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), w, sizeof w));
    Buffer<float> from(in), to(SIDE * SIDE);
    dim3 grid((SIDE + TILE - 1) / TILE, (SIDE + TILE - 1) / TILE);
    convolve<<<grid, dim3(TILE, TILE)>>>(from.device, to.device);
    std::vector<float> out = to.host();
    for (int i = 0; i < SIDE * SIDE; i++) {
        float sum = 0;
        for (int d = 0; d < 25; d++) {
            int x = i % SIDE + d % 5 - 2, y = i / SIDE + d / 5 - 2;
            sum += x >= 0 && x < SIDE && y >= 0 && y < SIDE ? w[d] * in[y * SIDE + x] : 0;
        }
        EXPECT(out[i] == sum, "convolution at %d: %g, not %g", i, out[i], sum);
    }
}

// ---- softmax of rows: several waves, dynamic LDS ----
__global__ void softmax(float *rows, int n) {
    extern __shared__ float part[];
    float *row = rows + (size_t)blockIdx.x * n;
    int wave = threadIdx.x / WAVE, waves = blockDim.x / WAVE;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        most = fmaxf(most, row[i]);
    most = wave_max(most);
    if (threadIdx.x % WAVE == 0)
        part[wave] = most;
    __syncthreads();
    for (int i = 0; i < waves; i++)
        most = fmaxf(most, part[i]);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += row[i] = expf(row[i] - most);
    sum = wave_sum(sum);
    if (threadIdx.x % WAVE == 0)
        part[waves + wave] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < waves; i++)
        sum += part[waves + i];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        row[i] /= sum;
}

static void check_softmax() {
    const int rows = 3, n = 777;
    std::vector<float> in(rows * n);
    for (int i = 0; i < rows * n; i++)
        in[i] = (float)(i * 131 % 97) / 10 - 5;
    Buffer<float> data(in);
    softmax<<<rows, 256, 2 * 4 * sizeof(float)>>>(data.device, n);
    std::vector<float> out = data.host();
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += exp((double)in[r * n + i]);
        for (int i = 0; i < n; i++) {
            double want = exp((double)in[r * n + i]) / sum;
            EXPECT(fabs(out[r * n + i] - want) < 1e-6, "softmax %d,%d: %g, not %g", r, i, out[r * n + i], want);
        }
    }
}

// ---- attention: one wave per query, keys one after the other, the sum rescaled as the maximum grows ----
enum { HEAD = 64, KEYS = 50, QUERIES = 3 };

__global__ void attend(const float *q, const float *k, const float *v, float *out) {
    float mine = q[blockIdx.x * HEAD + threadIdx.x], most = -INFINITY, sum = 0, value = 0;
    for (int j = 0; j < KEYS; j++) {
        float score = wave_sum(mine * k[j * HEAD + threadIdx.x]) * 0.125f;
        float next = fmaxf(most, score), old = __expf(most - next), now = __expf(score - next);
        sum = sum * old + now;
        value = value * old + now * v[j * HEAD + threadIdx.x];
        most = next;
    }
    out[blockIdx.x * HEAD + threadIdx.x] = value / sum;
}

static void check_attention() {
    std::vector<float> q(QUERIES * HEAD), k(KEYS * HEAD), v(KEYS * HEAD);
    for (size_t i = 0; i < q.size(); i++)
        q[i] = (float)(i * 29 % 13) / 6 - 1;
    for (size_t i = 0; i < k.size(); i++) {
        k[i] = (float)(i * 17 % 19) / 9 - 1;
        v[i] = (float)(i * 5 % 23) / 11 - 1;
    }
    Buffer<float> dq(q), dk(k), dv(v), out(QUERIES * HEAD);
    attend<<<QUERIES, HEAD>>>(dq.device, dk.device, dv.device, out.device);
    std::vector<float> found = out.host();
    for (int i = 0; i < QUERIES; i++)
        for (int d = 0; d < HEAD; d++) {
            double sum = 0, value = 0;
            for (int j = 0; j < KEYS; j++) {
                double score = 0;
                for (int e = 0; e < HEAD; e++)
                    score += (double)q[i * HEAD + e] * k[j * HEAD + e];
                sum += exp(score / 8);
                value += exp(score / 8) * v[j * HEAD + d];
            }
            EXPECT(fabs(found[i * HEAD + d] - value / sum) < 1e-4, "attention %d,%d: %g, not %g", i, d,
                   found[i * HEAD + d], value / sum);
        }
}

// ---- atomics ----
struct Totals {
    int add, most, least, bits, swapped, counted;
    unsigned wrapped;
    unsigned long long wide;
    float single_sum;
    double double_sum;
    int by_hand;
};

__global__ void count(Totals *t, int *last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int local;
    if (threadIdx.x == 0)
        local = 0;
    __syncthreads();
    atomicAdd(&local, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&t->counted, local);
    atomicAdd(&t->add, i);
    atomicMax(&t->most, i);
    atomicMin(&t->least, -i);
    atomicOr(&t->bits, 1 << i % 20);
#ifdef GFX942 // atomicInc of these headers is an intrinsic that clang 19 does not have
    atomicAdd(&t->wrapped, 1);
#else
    atomicInc(&t->wrapped, 9);
#endif
    atomicAdd(&t->wide, 1ull << 33);
    atomicAdd(&t->single_sum, 1.0f);
    atomicAdd(&t->double_sum, 0.5);
    last[i] = atomicExch(&t->swapped, i);
    int old = t->by_hand, seen;
    do {
        seen = old;
        old = atomicCAS(&t->by_hand, seen, seen + 3);
    } while (old != seen);
}

static void check_atomics() {
    const int n = 1000;
    Buffer<Totals> totals(std::vector<Totals>(1, Totals()));
    Buffer<int> last(n);
    count<<<n / 250, 250>>>(totals.device, last.device);
    Totals t = totals.host()[0];
    EXPECT(t.add == n * (n - 1) / 2 && t.most == n - 1 && t.least == 1 - n && t.bits == (1 << 20) - 1,
           "add %d, most %d, least %d, bits %x", t.add, t.most, t.least, t.bits);
#ifdef GFX942
    t.wrapped %= 10;
#endif
    EXPECT(t.wrapped == n % 10 && t.wide == (unsigned long long)n << 33 && t.counted == n, "wrapped %u, wide %llx",
           t.wrapped, t.wide);
    EXPECT(t.single_sum == n && t.double_sum == n * 0.5 && t.by_hand == 3 * n, "sums %g %g %d", t.single_sum,
           t.double_sum, t.by_hand);
    long sum = t.swapped; // every value but the last is handed on once, and the first 0
    for (int x : last.host())
        sum += x;
    EXPECT(sum == (long)n * (n - 1) / 2, "exchanged values add up to %ld", sum);
}

// ---- tiles, ballots, a switch, recursion, division, 16-bit types ----
__device__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }

__device__ int choose(int what, int x) {
    switch (what) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x / 7;
    case 3: return x % 11;
    case 4: return x << 2;
    case 5: return x ^ 0x55;
    case 9: return -x;
    default: return 0;
    }
}

__global__ void various(int *tiles, unsigned long long *ballots, int *chosen, float *halves, int *deep) {
    int i = threadIdx.x;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int sum = i;
    for (int step = tile.size() / 2; step; step /= 2)
        sum += tile.shfl_down(sum, step);
    if (tile.thread_rank() == 0)
        tiles[i / 16] = sum;
    if (i % WAVE == 0)
        ballots[i / WAVE] = 0;
    unsigned long long odd = __ballot(i % 3 == 0);
    if (i % WAVE == 1)
        ballots[i / WAVE] = odd;
    chosen[i] = choose(i % 11, 1000 - i * 13);
    _Float16 h = (_Float16)((float)i * 0.25f);
    halves[i] = (float)(h * h + (_Float16)1.5f);
    deep[i] = ackermann(1, i % 5);
}

static int chosen_here(int what, int x) {
    static int (*const table[])(int) = {[](int x) { return x + 1; }, [](int x) { return x * 3; }, [](int x) { return x / 7; },
                                        [](int x) { return x % 11; }, [](int x) { return x << 2; },
                                        [](int x) { return x ^ 0x55; }};
    return what < 6 ? table[what](x) : what == 9 ? -x : 0;
}

static void check_various() {
    const int n = 128;
    Buffer<int> tiles(n / 16), chosen(n), deep(n);
    Buffer<unsigned long long> ballots(n / WAVE);
    Buffer<float> halves(n);
    various<<<1, n>>>(tiles.device, ballots.device, chosen.device, halves.device, deep.device);
    std::vector<int> t = tiles.host(), c = chosen.host(), d = deep.host();
    std::vector<unsigned long long> b = ballots.host();
    std::vector<float> h = halves.host();
    for (int i = 0; i < n / 16; i++)
        EXPECT(t[i] == 16 * 16 * i + 120, "tile %d: %d", i, t[i]);
    for (int i = 0; i < n; i++) {
        EXPECT((b[i / WAVE] >> i % WAVE & 1) == (i % 3 == 0), "ballot of %d", i);
        EXPECT(c[i] == chosen_here(i % 11, 1000 - i * 13), "case %d: %d", i % 11, c[i]);
        EXPECT(fabsf(h[i] - ((float)i * i * 0.0625f + 1.5f)) <= (float)i * i * 0.0625f / 1024 + 0.001f, "half %d: %g", i,
               h[i]);
        EXPECT(d[i] == i % 5 + 2, "recursion %d: %d", i, d[i]);
    }
}

int main() {
    check_convolution();
    check_softmax();
    check_attention();
    check_atomics();
    check_various();
    return finish();
}
