// Kernel nodes of graphs return their arguments and accept changed ones: kernels of a code object, also in
// a graph that is part of another.
#include "check.h"

__global__ void add(int *to, const int *from, int n, char by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i] + by;
}

__global__ void multiply(int *to, const int *from, int n, char by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i] * by;
}

// The only node of a graph.
static hipGraphNode_t only_node(hipGraph_t graph) {
    hipGraphNode_t node = nullptr;
    size_t count = 1;
    CHECK(hipGraphGetNodes(graph, &node, &count));
    EXPECT(count == 1, "%zu nodes", count);
    return node;
}

static void run(hipGraph_t graph) {
    hipGraphExec_t exec;
    CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(exec, nullptr));
    CHECK(hipDeviceSynchronize());
    CHECK(hipGraphExecDestroy(exec));
}

static void expect(const Buffer<int> &out, size_t count, int (*f)(int)) {
    std::vector<int> got = out.host();
    for (size_t i = 0; i < got.size(); i++)
        EXPECT(got[i] == (i < count ? f((int)i) : 0), "[%zu] is %d", i, got[i]);
}

int main() {
    std::vector<int> numbers(256);
    for (int i = 0; i < 256; i++)
        numbers[i] = i;
    Buffer<int> in(numbers), out(256);
    int *to = out.device, n = 100;
    const int *from = in.device;
    char by = 5;
    void *arguments[] = { &to, &from, &n, &by };
    hipKernelNodeParams given = {}, told = {};
    given.func = (void *)add;
    given.gridDim = dim3(2);
    given.blockDim = dim3(64);
    given.kernelParams = arguments;
    hipGraph_t inner, outer, embedded;
    hipGraphNode_t node, child;
    CHECK(hipGraphCreate(&inner, 0));
    CHECK(hipGraphAddKernelNode(&node, inner, nullptr, 0, &given));
    CHECK(hipGraphCreate(&outer, 0));
    CHECK(hipGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    CHECK(hipMemset(out.device, 0, 256 * sizeof(int)));
    run(outer);
    expect(out, 100, [](int i) { return i + 5; });

    // Returned: the same kernel with the same arguments, as copies.
    CHECK(hipGraphChildGraphNodeGetGraph(child, &embedded));
    node = only_node(embedded);
    CHECK(hipGraphKernelNodeGetParams(node, &told));
    EXPECT(told.func == (void *)add && told.gridDim.x == 2 && told.blockDim.x == 64, "another launch");
    if (!told.kernelParams) {
        EXPECT(false, "no arguments are told");
        return finish();
    }
    EXPECT(*(int **)told.kernelParams[0] == to && *(const int **)told.kernelParams[1] == from &&
               *(int *)told.kernelParams[2] == 100 && *(char *)told.kernelParams[3] == 5,
           "other arguments");

    // Set to another kernel with half the threads.
    told.func = (void *)multiply;
    told.gridDim = dim3(1);
    CHECK(hipGraphKernelNodeSetParams(node, &told));
    CHECK(hipMemset(out.device, 0, 256 * sizeof(int)));
    run(outer);
    expect(out, 64, [](int i) { return i * 5; });
    CHECK(hipGraphDestroy(outer));
    CHECK(hipGraphDestroy(inner));
    return finish();
}
