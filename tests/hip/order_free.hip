// Races that do not matter, because a value that is read while it is stored is only compared and every order of the
// threads leaves the same bytes (FIXED), and races that look like them and do matter (BUG).
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != hipSuccess)                                                                  \
            exit(1);                                                                               \
    } while (0)

enum { NODES = 2000, EDGES = 4, THREADS = 256, BLOCKS = (NODES + THREADS - 1) / THREADS };

#ifndef BUG
// Any thread that finds a node stores the same new distance.
__global__ void levels(const int *edge, int *distance, int level, int *changed) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= NODES || distance[v] != level)
        return;
    for (int e = 0; e < EDGES; e++) {
        int u = edge[v * EDGES + e];
        if (distance[u] < 0) {
            distance[u] = level + 1;
            *changed = 1;
        }
    }
}

// The same with flags: every thread that raises one stores the same values after it.
__global__ void visits(const int *edge, const char *frontier, char *next, char *visited, int *cost, int level) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= NODES || !frontier[v])
        return;
    for (int e = 0; e < EDGES; e++) {
        int u = edge[v * EDGES + e];
        if (!visited[u]) {
            visited[u] = 1;
            next[u] = 1;
            cost[u] = level + 1;
        }
    }
}

// A thread that sees that the search is over need not go on.
__global__ void search(const int *in, int key, int *found) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (*found)
        return;
    if (i < NODES && in[i] == key)
        *found = 1;
}
#else
// A missing barrier: which threads see the flag depends on the order.
__global__ void flag(const int *in, int *out) {
    __shared__ int any;
    if (threadIdx.x == 0)
        any = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < NODES && in[i] == 3)
        any = 1;
    if (any)
        out[i] = 1;
}

// The thread that raises the flag first takes the node, but two may find it not raised yet.
__global__ void claims(const int *edge, int *owner, int *taken) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= NODES)
        return;
    int u = edge[v * EDGES];
    if (!taken[u]) {
        taken[u] = 1;
        owner[v] = u;
    }
}

// The same, but only the owners are counted: the count is right unless another thread comes between check and store.
__global__ void counts(const int *edge, int *taken, int *count) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= NODES)
        return;
    int u = edge[v * EDGES];
    if (!taken[u]) {
        taken[u] = 1;
        atomicAdd(count, 1);
    }
}

// The value that was read is stored: it depends on the order, though all inputs are equal.
__global__ void neighbour(const int *one, int *out) {
    __shared__ int line[THREADS];
    line[threadIdx.x] = one[0];
    out[blockIdx.x * THREADS + threadIdx.x] = line[(threadIdx.x + 64) % THREADS];
}

// A stencil in place.
__global__ void stencil(int *a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i + 1 < NODES)
        a[i] = a[i - 1] + a[i + 1];
}
#endif

static int *upload(const void *from, size_t bytes) {
    int *to;
    CHECK(hipMalloc(&to, bytes));
    CHECK(hipMemcpy(to, from, bytes, hipMemcpyHostToDevice));
    return to;
}

int main() {
    static int edge[NODES * EDGES], value[NODES * 2], result[NODES * 2];
    unsigned state = 1;
    for (int i = 0; i < NODES * EDGES; i++) {
        state = state * 1664525u + 1013904223u;
        edge[i] = (int)((state >> 8) % NODES);
    }
    int *edges = upload(edge, sizeof edge), *zeros = upload(value, sizeof value), *more = upload(value, sizeof value);
#ifndef BUG
    static char flags[NODES];
    memset(value, -1, sizeof value);
    value[0] = 0;
    flags[0] = 1;
    int *distance = upload(value, sizeof value);
    char *visited = (char *)upload(flags, sizeof flags), *frontier = (char *)upload(flags, sizeof flags);
    memset(flags, 0, sizeof flags);
    char *next = (char *)upload(flags, sizeof flags);
    int *cost = zeros;
    for (int level = 0, changed = 1; changed; level++) {
        changed = 0;
        CHECK(hipMemcpy(more, &changed, sizeof changed, hipMemcpyHostToDevice));
        levels<<<BLOCKS, THREADS>>>(edges, distance, level, more);
        visits<<<BLOCKS, THREADS>>>(edges, frontier, next, visited, cost, level);
        CHECK(hipMemcpy(frontier, next, NODES, hipMemcpyDeviceToDevice));
        CHECK(hipMemset(next, 0, NODES));
        CHECK(hipMemcpy(&changed, more, sizeof changed, hipMemcpyDeviceToHost));
    }
    search<<<BLOCKS, THREADS>>>(edges, edge[NODES / 2], more);
    CHECK(hipMemcpy(value, distance, NODES * sizeof *value, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(result, cost, NODES * sizeof *value, hipMemcpyDeviceToHost));
    for (int i = 1; i < NODES; i++)
        if ((value[i] < 0 ? 0 : value[i]) != result[i])
            return printf("node %d: %d and %d\n", i, value[i], result[i]), 1;
    CHECK(hipFree(distance));
    CHECK(hipFree(visited));
    CHECK(hipFree(frontier));
    CHECK(hipFree(next));
#else
    value[70] = 3;
    int *in = upload(value, sizeof value), *taken = upload(result, sizeof result);
    flag<<<BLOCKS, THREADS>>>(in, zeros);
    CHECK(hipMemset(taken, 0, NODES * sizeof *taken));
    claims<<<BLOCKS, THREADS>>>(edges, zeros, taken);
    CHECK(hipMemset(taken, 0, NODES * sizeof *taken));
    counts<<<BLOCKS, THREADS>>>(edges, taken, more);
    neighbour<<<2, THREADS>>>(edges, zeros);
    stencil<<<BLOCKS, THREADS>>>(in);
    CHECK(hipMemcpy(result, zeros, NODES * sizeof *result, hipMemcpyDeviceToHost));
    CHECK(hipFree(in));
    CHECK(hipFree(taken));
#endif
    CHECK(hipFree(edges));
    CHECK(hipFree(zeros));
    CHECK(hipFree(more));
    puts("PASS");
    return 0;
}
