// A kernel of a graph doubles the first half of a buffer, again and again, while another stream fills
// the second half. With RACY what it fills begins in the first half. With NODE, or NODE_RACY, the
// graph is not captured but made of a node; with CHILD the captured graph is a child of it twice.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void twice(float *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] *= 2;
}

__global__ void fill(float *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = i;
}

static void check(hipError_t r) {
    if (r == hipSuccess)
        return;
    printf("%s\n", hipGetErrorString(r));
    exit(1);
}

int main() {
    const int n = 1024;
#if defined RACY || defined NODE_RACY
    const int from = n / 2;
#else
    const int from = n;
#endif
    float *p;
    hipStream_t s, t;
    hipGraph_t graph;
    hipGraphExec_t replay;
    check(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    check(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
    check(hipMalloc(&p, 2 * n * sizeof *p));
    check(hipMemset(p, 0, 2 * n * sizeof *p));
    check(hipDeviceSynchronize());
#if defined NODE || defined NODE_RACY
    hipGraphNode_t node;
    int count = n;
    void *arguments[] = { &p, &count };
    hipKernelNodeParams what = {};
    what.func = (void *)twice;
    what.gridDim = dim3(n / 256);
    what.blockDim = dim3(256);
    what.kernelParams = arguments;
    check(hipGraphCreate(&graph, 0));
    check(hipGraphAddKernelNode(&node, graph, nullptr, 0, &what));
#else
    check(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    twice<<<n / 256, 256, 0, s>>>(p, n);
    check(hipStreamEndCapture(s, &graph));
#endif
#ifdef CHILD
    hipGraph_t child = graph;
    hipGraphNode_t first, second;
    check(hipGraphCreate(&graph, 0));
    check(hipGraphAddChildGraphNode(&first, graph, nullptr, 0, child));
    check(hipGraphAddChildGraphNode(&second, graph, &first, 1, child));
    check(hipGraphDestroy(child));
#endif
    check(hipGraphInstantiate(&replay, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 3; i++) {
        check(hipGraphLaunch(replay, s));
        fill<<<n / 256, 256, 0, t>>>(p + from, n);
    }
    check(hipDeviceSynchronize());
    check(hipFree(p));
    check(hipGraphExecDestroy(replay));
    check(hipGraphDestroy(graph));
    check(hipStreamDestroy(s));
    check(hipStreamDestroy(t));
    return 0;
}
