/* A cache has room for 4 heads; the kernel that fills it is told 6, in a graph that was made by
 * hand.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SHAPE_MISMATCH;
 *         also UPSTREAM_KERNEL_FAULT SIZE_MISMATCH;
 *         culprit kernel=store_heads argument=cache site=add_store;
 *         messenger hipStreamSynchronize site=main */
#include "case.h"

enum { HEADS = 4, HEAD = 128, POSITIONS = 10 };

KERNEL(store_heads, { "cache", 8, GRETA_SOFT_POINTER }, { "heads", 4, 0 }, { "head", 4, 0 },
       { "positions", 4, 0 }) {
    uint32_t heads = ARG(uint32_t, 1), head = ARG(uint32_t, 2), positions = ARG(uint32_t, 3);
    for (uint64_t i = 0; work->first == 0 && i < (uint64_t)heads * head * positions; i++)
        ARG(float *, 0)[i] = 0;
}

void add_store(hipGraph_t graph, void *cache, uint32_t heads) {
    static uint32_t given, head = HEAD, positions = POSITIONS;
    static void *to, *args[] = { &to, &given, &head, &positions };
    hipKernelNodeParams p = { .func = &store_heads_stub,
                              .gridDim = { 1, 1, 1 },
                              .blockDim = { 64, 1, 1 },
                              .kernelParams = args };
    hipGraphNode_t node;
    to = cache;
    given = heads;
    CHECK(hipGraphAddKernelNode(&node, graph, NULL, 0, &p));
}

int main(void) {
    void *cache;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    KERNEL_ENTER(store_heads);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&cache, sizeof(float) * HEADS * HEAD * POSITIONS));
    CHECK(hipGraphCreate(&graph, 0));
    add_store(graph, cache, BUG ? 6 : HEADS);
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(cache));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
