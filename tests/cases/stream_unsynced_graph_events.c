/* A node of a graph records an event that another stream waits for. With its bug the node comes
 * before the one whose result is read. A second graph begins with a node that waits for the copy.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=fetch; messenger none */
#include "case.h"

enum { BYTES = 4096 };

static hipGraphNode_t add_set(hipGraph_t graph, const hipGraphNode_t *after, void *device) {
    hipMemsetParams set = { 0 };
    hipGraphNode_t node;
    set.dst = device;
    set.elementSize = 1;
    set.width = BYTES;
    set.height = 1;
    set.pitch = BYTES;
    CHECK(hipGraphAddMemsetNode(&node, graph, after, after ? 1 : 0, &set));
    return node;
}

static hipGraphExec_t finish(hipGraph_t graph) {
    hipGraphExec_t exec;
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

hipGraphExec_t make_first(void *device, hipEvent_t filled) {
    hipGraph_t graph;
    hipGraphNode_t set, record;
    CHECK(hipGraphCreate(&graph, 0));
    if (BUG) {
        CHECK(hipGraphAddEventRecordNode(&record, graph, NULL, 0, filled));
        add_set(graph, &record, device);
    } else {
        set = add_set(graph, NULL, device);
        CHECK(hipGraphAddEventRecordNode(&record, graph, &set, 1, filled));
    }
    return finish(graph);
}

hipGraphExec_t make_second(void *device, hipEvent_t fetched) {
    hipGraph_t graph;
    hipGraphNode_t wait;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddEventWaitNode(&wait, graph, NULL, 0, fetched));
    add_set(graph, &wait, device);
    return finish(graph);
}

void fetch(void *copy, const void *device, hipStream_t stream) {
    CHECK(hipMemcpyAsync(copy, device, BYTES, hipMemcpyDeviceToDevice, stream));
}

int main(void) {
    hipStream_t make, take;
    hipEvent_t filled, fetched;
    void *device, *copy;
    CHECK(hipStreamCreateWithFlags(&make, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&take, hipStreamNonBlocking));
    CHECK(hipEventCreate(&filled));
    CHECK(hipEventCreate(&fetched));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMalloc(&copy, BYTES));
    hipGraphExec_t first = make_first(device, filled), second = make_second(device, fetched);
    CHECK(hipGraphLaunch(first, make));
    CHECK(hipStreamWaitEvent(take, filled, 0));
    fetch(copy, device, take);
    CHECK(hipEventRecord(fetched, take));
    CHECK(hipGraphLaunch(second, make));
    CHECK(hipDeviceSynchronize());
    CHECK(hipGraphExecDestroy(first));
    CHECK(hipGraphExecDestroy(second));
    CHECK(hipFree(copy));
    CHECK(hipFree(device));
    CHECK(hipEventDestroy(filled));
    CHECK(hipEventDestroy(fetched));
    CHECK(hipStreamDestroy(make));
    CHECK(hipStreamDestroy(take));
    return 0;
}
