// Arrays in private memory: an index that leaves one comes into the next. Indices come from memory, so that the compiler
// knows nothing of them; arrays are too large for registers.
#include "check.h"

enum { N = 80 };

__global__ void bins(float *out, const int *index, const float *value) {
    float sum[N], count[N];
    for (int i = 0; i < N; i++)
        sum[i] = count[i] = 0;
    for (int i = 0; i < 8; i++)
        sum[index[threadIdx.x * 8 + i]] += value[i]; // line 12
    for (int i = 0; i < 8; i++)
        count[index[i]] += value[i];
    for (int i = 0; i < N; i++)
        out[threadIdx.x * N + i] = sum[i] - count[i];
}

__global__ void fill(int *out, const int *index, int n) {
    int first[N], second[N];
    for (int i = 0; i < N; i++)
        first[i] = second[i] = index[i];
    for (int i = 0; i < n; i++)
        first[i] += index[i % 8]; // line 24
    for (int i = 0; i < N; i++)
        out[threadIdx.x * N + i] = first[index[i % 8]] + second[index[(i + 1) % 8]];
}

// Indices of bytes are not scaled; these arrays begin 48 and 8 bytes apart.
__global__ void near_by(int *out, const unsigned char *index) {
    unsigned char letters[48], others[48];
    int r = 0;
    for (int i = 0; i < 48; i++)
        letters[i] = others[i] = index[i % 8];
    for (int i = 0; i < 8; i++)
        letters[index[threadIdx.x * 8 + i]]++; // line 36
    for (int i = 0; i < 48; i++)
        r += letters[i] * others[index[i % 8]];
    short few[4], next[4];
    for (int i = 0; i < 4; i++)
        few[i] = next[i] = (short)r;
    few[index[threadIdx.x * 8 + 6] & 7] += 2; // line 42
    out[threadIdx.x] = few[index[0] & 3] + next[index[1] & 3];
}

struct pair {
    int x[N], y[N];
};
__device__ int add(int *to, int at, int what) { return to[at] += what; }
__device__ __noinline__ int add_far(int *to, int at, int what) { return to[at] += what; }

// All of this is right, however it may look: pointers that are chosen, exchanged, passed and kept in tables, indices
// that begin before or behind an array, arrays that share a place, structures that are copied whole.
__global__ void in_order(int *out, const int *index, const pair *pairs, int n) {
    int a[N], b[N], t = threadIdx.x, r = 0;
    pair p = pairs[t % 2], q;
    int *table[2] = {a, b};
    for (int i = 0; i < N; i++)
        a[i] = i + index[i % 8], b[i] = -i;
    int *chosen = index[t] & 1 ? a : b;
    for (int i = 0; i < n; i++)
        r += chosen[index[i] % N] + table[index[i + 1] & 1][i];
    int *from = a, *to = b;
    for (int round = 0; round < n; round++) {
        for (int i = 0; i < N; i++)
            to[i] = from[(i + index[round]) % N] + 1;
        int *other = from;
        from = to, to = other;
    }
    for (int i = 0; i < n; i++) {
        int j = index[i] % 40;
        if (j & 1)
            a[j + 16] = r;
        else
            b[j + 16] = r;
        r += a[j + 40] + b[(j + 40) - 30] + a[N - 1 - j] + add(a, j, i) + add(b, j, i) + add_far(a, j, i) + add_far(b, j, i);
    }
    for (int *x = a + N - 1, k = n; x >= a && k; x--, k--)
        r += *x;
    const int *end = b;
    for (int k = 0; k < n; k++, end = k & 1 ? a : b)
        r += end[index[k] % N];
    q = p;
    auto [left, right] = q;
    for (int i = 0; i < n; i++)
        r += left[index[i] % N] - right[i] + q.x[index[i] % N] * p.y[i];
    if (n > 3) {
        int c[N];
        for (int i = 0; i < N; i++)
            c[i] = r * i;
        r += c[index[3] % N];
    } else {
        short d[2 * N];
        for (int i = 0; i < 2 * N; i++)
            d[i] = (short)(r + i);
        r += d[index[2] % N];
    }
    int grid[N / 8][8];
    for (int i = 0; i < N; i++)
        grid[i / 8][i % 8] = r + i;
    for (int i = 0; i < n; i++)
        r += grid[index[i] % (N / 8)][i % 8] + (&grid[0][0])[index[i] % N];
    unsigned char bytes[N], more[N];
    for (int i = 0; i < N; i++)
        bytes[i] = more[i] = (unsigned char)r;
    for (int i = 0; i < n; i++)
        r += bytes[index[i] % N] + more[index[i] % N];
    out[t] = r;
}

int main() {
    const int threads = 64;
    std::vector<int> index(threads * 8);
    for (size_t i = 0; i < index.size(); i++)
        index[i] = (int)(i * 7 % N);
    std::vector<float> value(8, 1.0f);
    std::vector<unsigned char> small(threads * 8);
    for (size_t i = 0; i < small.size(); i++)
        small[i] = (unsigned char)(i % 4);
    int n = N;
#ifdef BUG
    small[37 * 8 + 5] = 50;
    small[9 * 8 + 6] = 5;
    index[37 * 8 + 5] = N + 3; // thread 37
    n = N + 2;
#endif
    Buffer<int> indices(index), out(threads * N);
    Buffer<unsigned char> bytes(small);
    Buffer<float> values(value), floats(threads * N);
    Buffer<pair> pairs(std::vector<pair>(2));
    bins<<<1, threads>>>(floats.device, indices.device, values.device);
    fill<<<1, threads>>>(out.device, indices.device, n);
    near_by<<<1, threads>>>(out.device, bytes.device);
    in_order<<<1, threads>>>(out.device, indices.device, pairs.device, 7);
    CHECK(hipDeviceSynchronize());
    std::puts("PASS");
}
