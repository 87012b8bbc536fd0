/* test_soft_graph.c - graphs built by hand: nodes, edges, launches, updates. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/soft_fixture.h"

/* ---- building blocks ----------------------------------------------------------------------- */

static hipFunction_t function(const char *name) {
    static hipModule_t module;
    hipFunction_t f;
    if (!module)
        OK(hip->hipModuleLoadData(&module, "GRETASFT"));
    OK(hip->hipModuleGetFunction(&f, module, name));
    return f;
}

static hipKernelNodeParams kernel_params(const char *name, void **args) {
    dim3 one = { 1, 1, 1 };
    return (hipKernelNodeParams){
        .func = function(name), .gridDim = one, .blockDim = one, .kernelParams = args
    };
}

static hipGraph_t new_graph(void) {
    hipGraph_t g;
    OK(hip->hipGraphCreate(&g, 0));
    return g;
}

/* *to = *to * times + plus, after `after` (NULL: a root). */
static hipGraphNode_t add_fold(hipGraph_t g, hipGraphNode_t after, int *to, int times, int plus) {
    hipGraphNode_t n;
    void *args[] = { &to, &times, &plus };
    hipKernelNodeParams p = kernel_params("test_fold", args);
    OK(hip->hipGraphAddKernelNode(&n, g, &after, after ? 1 : 0, &p));
    return n;
}

static hipGraphNode_t add_empty(hipGraph_t g, hipGraphNode_t after) {
    hipGraphNode_t n;
    OK(hip->hipGraphAddEmptyNode(&n, g, &after, after ? 1 : 0));
    return n;
}

static hipGraphExec_t instantiate(hipGraph_t g) {
    hipGraphExec_t x;
    OK(hip->hipGraphInstantiate(&x, g, NULL, NULL, 0));
    return x;
}

static int read_int(const int *device) {
    int value;
    OK(hip->hipMemcpy(&value, device, sizeof value, hipMemcpyDeviceToHost));
    return value;
}

static int launch_and_read(hipGraphExec_t x, int *device) {
    hipStream_t s = soft_blocking_stream();
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(device);
}

/* ---- order --------------------------------------------------------------------------------- */

/* Created back to front: only the edges make the result right. */
static bool edges_decide(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    hipGraphNode_t third = add_fold(g, NULL, a, 10, 3), second = add_fold(g, NULL, a, 10, 2),
                   first = add_fold(g, NULL, a, 10, 1);
    OK(hip->hipGraphAddDependencies(g, (hipGraphNode_t[]){ first, second },
                                    (hipGraphNode_t[]){ second, third }, 2));
    return launch_and_read(instantiate(g), a) == 123;
}

static bool creation_decides(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    add_fold(g, NULL, a, 10, 1);
    add_fold(g, NULL, a, 10, 2);
    return launch_and_read(instantiate(g), a) == 12;
}

static void nodes_run_in_the_order_of_their_edges(void **state) {
    (void)state;
    soft_right(edges_decide);
    soft_wrong(creation_decides);
    soft_expect(creation_decides, "GRETA_SOFT_SCHEDULE=fast");
}

/* A launch is complete before what follows it in its stream begins, and begins after what precedes
 * it; the next launch of the same graph likewise. */
static bool launches_are_stream_ordered(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    add_fold(g, add_fold(g, NULL, a, 10, 2), a, 10, 3);
    hipGraphExec_t x = instantiate(g);
    hipStream_t s = soft_free_stream();
    soft_fold(s, a, 10, 1);
    OK(hip->hipGraphLaunch(x, s));
    soft_fold(s, a, 10, 4);
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 123423;
}

static bool launches_in_two_streams_are_unordered(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph(), h = new_graph();
    add_fold(g, NULL, a, 10, 1);
    add_fold(h, NULL, a, 10, 2);
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    OK(hip->hipGraphLaunch(instantiate(g), s));
    OK(hip->hipGraphLaunch(instantiate(h), t));
    OK(hip->hipStreamSynchronize(t)); /* says nothing about s */
    int value = soft_peek(a);
    OK(hip->hipDeviceSynchronize());
    return value == 12;
}

static bool launches_of_one_exec_are_ordered(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    add_fold(g, add_fold(g, NULL, a, 10, 2), a, 10, 3);
    hipGraphExec_t x = instantiate(g);
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipGraphLaunch(x, t));
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(a) == 232323;
}

static void launches_keep_their_place_in_the_stream(void **state) {
    (void)state;
    soft_right(launches_are_stream_ordered);
    soft_right(launches_of_one_exec_are_ordered);
    soft_wrong(launches_in_two_streams_are_unordered);
}

static bool exec_may_die_while_it_runs(void) {
    int *a = soft_device_ints(1);
    struct soft_gate gate = { 0 };
    hipGraph_t g = new_graph();
    hipGraphNode_t n = add_fold(g, NULL, a, 10, 1);
    add_fold(g, n, a, 10, 2);
    hipGraphExec_t x = instantiate(g);
    hipStream_t s = soft_free_stream();
    soft_gate_close(&gate, s);
    OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipGraphExecDestroy(x));
    OK(hip->hipGraphDestroy(g));
    FAILS(hipErrorInvalidValue, hip->hipGraphExecDestroy(x));
    FAILS(hipErrorInvalidValue, hip->hipGraphLaunch(x, s));
    FAILS(hipErrorIllegalState, hip->hipGraphDestroy(g));
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(s));
    return read_int(a) == 12;
}

static void a_graph_may_be_destroyed_while_it_runs(void **state) {
    (void)state;
    soft_right(exec_may_die_while_it_runs);
}

/* ---- kinds of nodes ------------------------------------------------------------------------ */

static void count_call(void *user) {
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static bool all_kinds_work(void) {
    enum { N = 64 };
    int *a = soft_device_ints(N), *b = soft_device_ints(N), *host = soft_pinned_ints(N);
    static int calls;
    calls = 0;
    hipGraph_t g = new_graph();
    hipGraphNode_t set, copy, back, call, empty;
    hipMemsetParams fill = { .dst = a, .elementSize = 4, .width = N, .height = 1, .value = 7 };
    OK(hip->hipGraphAddMemsetNode(&set, g, NULL, 0, &fill));
    OK(hip->hipGraphAddMemcpyNode1D(&copy, g, &set, 1, b, a, N * sizeof *a,
                                    hipMemcpyDeviceToDevice));
    empty = add_empty(g, copy);
    hipHostNodeParams host_params = { count_call, &calls };
    OK(hip->hipGraphAddHostNode(&call, g, &empty, 1, &host_params));
    hipMemcpy3DParms box = {
        .srcPtr = { b, N * sizeof *b, N, 1 },
        .dstPtr = { host, N * sizeof *host, N, 1 },
        .extent = { N * sizeof *b, 1, 1 },
        .kind = hipMemcpyDeviceToHost,
    };
    OK(hip->hipGraphAddMemcpyNode(&back, g, &call, 1, &box));
    hipGraphExec_t x = instantiate(g);
    hipStream_t s = soft_blocking_stream();
    for (int i = 0; i < 3; i++)
        OK(hip->hipGraphLaunch(x, s));
    OK(hip->hipStreamSynchronize(s));
    for (int i = 0; i < N; i++)
        MUST(host[i] == 7);
    return calls == 3;
}

static void every_kind_of_node_does_its_work(void **state) {
    (void)state;
    soft_right(all_kinds_work);
}

static bool events_order_graphs(void) {
    int *a = soft_device_ints(1);
    hipEvent_t done = soft_event();
    hipGraph_t producer = new_graph(), consumer = new_graph();
    hipGraphNode_t made, record, wait;
    made = add_fold(producer, NULL, a, 10, 1);
    OK(hip->hipGraphAddEventRecordNode(&record, producer, &made, 1, done));
    OK(hip->hipGraphAddEventWaitNode(&wait, consumer, NULL, 0, done));
    add_fold(consumer, wait, a, 10, 2);
    hipStream_t s = soft_free_stream(), t = soft_free_stream();
    OK(hip->hipGraphLaunch(instantiate(producer), s));
    OK(hip->hipGraphLaunch(instantiate(consumer), t));
    OK(hip->hipStreamSynchronize(t));
    OK(hip->hipEventSynchronize(done));
    OK(hip->hipEventQuery(done));
    return read_int(a) == 12;
}

static void event_nodes_order_launches(void **state) {
    (void)state;
    soft_right(events_order_graphs);
}

static bool children_are_part_of_the_order(void) {
    int *a = soft_device_ints(1);
    hipGraph_t inner = new_graph(), outer = new_graph(), embedded, none = new_graph();
    add_fold(inner, add_fold(inner, NULL, a, 10, 2), a, 10, 3);
    hipGraphNode_t first = add_fold(outer, NULL, a, 10, 1), child, hollow;
    OK(hip->hipGraphAddChildGraphNode(&child, outer, &first, 1, inner));
    OK(hip->hipGraphAddChildGraphNode(&hollow, outer, &child, 1, none));
    add_fold(outer, hollow, a, 10, 4);
    add_fold(inner, NULL, a, 0, 0); /* too late: the child is a copy */
    OK(hip->hipGraphChildGraphNodeGetGraph(child, &embedded));
    MUST(embedded != inner);
    size_t n = 0;
    OK(hip->hipGraphGetNodes(embedded, NULL, &n));
    MUST(n == 2);
    FAILS(hipErrorIllegalState, hip->hipGraphDestroy(embedded));
    OK(hip->hipGraphDestroy(inner));
    return launch_and_read(instantiate(outer), a) == 1234;
}

static bool a_graph_holds_a_copy_of_itself(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph(), embedded;
    hipGraphNode_t last = add_fold(g, add_fold(g, NULL, a, 10, 1), a, 10, 2), child;
    OK(hip->hipGraphAddChildGraphNode(&child, g, &last, 1, g));
    OK(hip->hipGraphChildGraphNodeGetGraph(child, &embedded));
    size_t n = 0, inner = 0;
    OK(hip->hipGraphGetNodes(g, NULL, &n));
    OK(hip->hipGraphGetNodes(embedded, NULL, &inner));
    MUST(n == 3 && inner == 2);
    return launch_and_read(instantiate(g), a) == 1212;
}

static void child_graphs_run_where_they_stand(void **state) {
    (void)state;
    soft_right(children_are_part_of_the_order);
    soft_right(a_graph_holds_a_copy_of_itself);
}

static bool a_launch_without_nodes_is_fine(void) {
    hipGraph_t g = new_graph();
    hipGraphExec_t x = instantiate(g);
    OK(hip->hipGraphLaunch(x, NULL));
    add_empty(g, add_empty(g, NULL));
    OK(hip->hipGraphLaunch(instantiate(g), hipStreamPerThread));
    OK(hip->hipGraphUpload(x, NULL));
    FAILS(hipErrorInvalidValue, hip->hipGraphLaunch(NULL, NULL));
    FAILS(hipErrorContextIsDestroyed, hip->hipGraphLaunch(x, (hipStream_t)&x));
    return true;
}

static void graphs_may_be_empty(void **state) {
    (void)state;
    soft_right(a_launch_without_nodes_is_fine);
}

/* ---- structure ----------------------------------------------------------------------------- */

static bool structure_can_be_read(void) {
    hipGraph_t g = new_graph();
    hipGraphNode_t a = add_empty(g, NULL), b = add_empty(g, a), c = add_empty(g, a), d, list[8];
    OK(hip->hipGraphAddEmptyNode(&d, g, (hipGraphNode_t[]){ b, c }, 2));
    size_t n = 0;
    OK(hip->hipGraphGetNodes(g, NULL, &n));
    MUST(n == 4);
    n = 8;
    OK(hip->hipGraphGetNodes(g, list, &n));
    MUST(n == 4 && list[0] == a && list[3] == d && !list[4] && !list[7]);
    n = 2;
    OK(hip->hipGraphGetNodes(g, list, &n));
    MUST(n == 2 && list[1] == b);
    n = 8;
    OK(hip->hipGraphGetRootNodes(g, list, &n));
    MUST(n == 1 && list[0] == a);
    hipGraphNode_t from[8], to[8];
    n = 8;
    OK(hip->hipGraphGetEdges(g, from, to, &n));
    MUST(n == 4 && from[0] == a && to[0] == b && from[3] == c && to[3] == d);
    FAILS(hipErrorInvalidValue, hip->hipGraphGetEdges(g, from, NULL, &n));
    n = 8;
    OK(hip->hipGraphNodeGetDependencies(d, list, &n));
    MUST(n == 2 && list[0] == b && list[1] == c);
    n = 8;
    OK(hip->hipGraphNodeGetDependentNodes(a, list, &n));
    MUST(n == 2);
    OK(hip->hipGraphDestroyNode(b));
    n = 8;
    OK(hip->hipGraphNodeGetDependencies(d, list, &n));
    MUST(n == 1 && list[0] == c);
    hipGraphNodeType type;
    FAILS(hipErrorInvalidValue, hip->hipGraphNodeGetType(b, &type));
    OK(hip->hipGraphNodeGetType(c, &type));
    return type == hipGraphNodeTypeEmpty;
}

static bool bad_edges_are_refused(void) {
    hipGraph_t g = new_graph(), h = new_graph();
    hipGraphNode_t a = add_empty(g, NULL), b = add_empty(g, a), other = add_empty(h, NULL), n;
    FAILS(hipErrorInvalidValue, hip->hipGraphAddDependencies(g, &a, &a, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddDependencies(g, &a, &b, 1)); /* is there */
    FAILS(hipErrorInvalidValue, hip->hipGraphAddDependencies(g, &a, &other, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphRemoveDependencies(g, &b, &a, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddDependencies(g, NULL, &a, 1));
    OK(hip->hipGraphAddDependencies(g, NULL, NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEmptyNode(&n, g, &other, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEmptyNode(&n, g, (hipGraphNode_t[]){ a, a }, 2));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEmptyNode(&n, g, NULL, 2));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEmptyNode(NULL, g, NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEmptyNode(&n, (hipGraph_t)&n, NULL, 0));
    OK(hip->hipGraphRemoveDependencies(g, &a, &b, 1));
    return true;
}

static bool circles_cannot_be_instantiated(void) {
    hipGraph_t g = new_graph();
    hipGraphNode_t a = add_empty(g, NULL), b = add_empty(g, a), c = add_empty(g, b);
    hipGraphExec_t x;
    char log[64] = "";
    OK(hip->hipGraphAddDependencies(g, &c, &a, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphInstantiate(&x, g, NULL, log, sizeof log));
    MUST(strstr(log, "circle"));
    OK(hip->hipGraphRemoveDependencies(g, &c, &a, 1));
    OK(hip->hipGraphInstantiateWithFlags(&x, g, 0));
    FAILS(hipErrorInvalidValue, hip->hipGraphInstantiateWithFlags(&x, g, 64));
    hipGraphInstantiateParams p = { .flags = 0 };
    OK(hip->hipGraphInstantiateWithParams(&x, g, &p));
    MUST(p.result_out == hipGraphInstantiateSuccess);
    FAILS(hipErrorInvalidValue, hip->hipGraphInstantiate(NULL, g, NULL, NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGraphInstantiate(&x, NULL, NULL, NULL, 0));
    return true;
}

static bool clones_are_independent(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph(), clone;
    hipGraphNode_t first = add_fold(g, NULL, a, 10, 1), second = add_fold(g, first, a, 10, 2),
                   found;
    OK(hip->hipGraphClone(&clone, g));
    OK(hip->hipGraphNodeFindInClone(&found, second, clone));
    MUST(found != second);
    FAILS(hipErrorInvalidValue, hip->hipGraphNodeFindInClone(&found, second, g));
    OK(hip->hipGraphDestroyNode(first));
    MUST(launch_and_read(instantiate(clone), a) == 12);
    OK(hip->hipGraphDestroy(g));
    FAILS(hipErrorInvalidValue, hip->hipGraphNodeFindInClone(&found, second, clone));
    return launch_and_read(instantiate(clone), a) == 1212;
}

static bool graphs_can_be_drawn(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph(), inner = new_graph();
    hipGraphNode_t first = add_fold(g, NULL, a, 10, 1), child;
    add_empty(inner, NULL);
    OK(hip->hipGraphAddChildGraphNode(&child, g, &first, 1, inner));
    char path[64], text[2048];
    int fd = memfd_create("dot", 0);
    MUST(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    OK(hip->hipGraphDebugDotPrint(g, path, 0));
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    MUST(n > 0);
    text[n] = 0;
    MUST(strstr(text, "digraph") && strstr(text, "test_fold") && strstr(text, "n0 -> n1;"));
    MUST(strstr(text, "subgraph") && strstr(text, "n2 [label=\"empty\"]"));
    FAILS(hipErrorInvalidValue, hip->hipGraphDebugDotPrint(g, NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGraphDebugDotPrint(NULL, path, 0));
    FAILS(hipErrorOperatingSystem, hip->hipGraphDebugDotPrint(g, "/nonexistent/graph.dot", 0));
    return true;
}

static void the_structure_is_checked_and_shown(void **state) {
    (void)state;
    soft_expect(graphs_can_be_drawn, NULL);
    soft_expect(structure_can_be_read, NULL);
    soft_expect(bad_edges_are_refused, NULL);
    soft_expect(circles_cannot_be_instantiated, NULL);
    soft_right(clones_are_independent);
}

/* ---- parameters ---------------------------------------------------------------------------- */

static bool is_same_box(const hipMemcpy3DParms *a, const hipMemcpy3DParms *b) {
    return a->srcArray == b->srcArray && a->dstArray == b->dstArray &&
           a->srcPtr.ptr == b->srcPtr.ptr && a->dstPtr.ptr == b->dstPtr.ptr &&
           a->dstPtr.pitch == b->dstPtr.pitch && a->dstPtr.ysize == b->dstPtr.ysize &&
           a->srcPos.x == b->srcPos.x && a->srcPos.y == b->srcPos.y &&
           a->extent.width == b->extent.width && a->extent.height == b->extent.height &&
           a->extent.depth == b->extent.depth && a->kind == b->kind;
}

static bool boxes_come_back_as_they_were_given(void) {
    enum { W = 4, H = 3 };
    const hipChannelFormatDesc ints = { 32, 0, 0, 0, hipChannelFormatKindSigned };
    int *to = soft_device_ints(W * H);
    hipArray_t array;
    OK(hip->hipMalloc3DArray(&array, &ints, (hipExtent){ W, H, 0 }, 0));
    const hipMemcpy3DParms given = { .srcArray = array,
                                     .srcPos = { 1, 1, 0 },
                                     .dstPtr = { to, W * sizeof *to, W, H },
                                     .extent = { 2, 2, 1 },
                                     .kind = hipMemcpyDeviceToDevice };
    hipMemcpy3DParms told = { 0 }, both = given;
    hipGraph_t g = new_graph(), clone;
    hipGraphNode_t copy, cloned;
    OK(hip->hipGraphAddMemcpyNode(&copy, g, NULL, 0, &given));
    OK(hip->hipGraphMemcpyNodeGetParams(copy, &told));
    MUST(is_same_box(&told, &given));
    OK(hip->hipGraphClone(&clone, g));
    OK(hip->hipGraphNodeFindInClone(&cloned, copy, clone));
    told = (hipMemcpy3DParms){ 0 };
    OK(hip->hipGraphMemcpyNodeGetParams(cloned, &told));
    MUST(is_same_box(&told, &given));
    OK(hip->hipGraphMemcpyNodeSetParams1D(copy, to, to + 4, 8, hipMemcpyDeviceToDevice));
    OK(hip->hipGraphMemcpyNodeGetParams(copy, &told));
    MUST(!told.srcArray && told.srcPtr.ptr == to + 4 && told.extent.width == 8);
    both.srcPtr = given.dstPtr; /* an array and a pointer */
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemcpyNode(&copy, g, NULL, 0, &both));
    return true;
}

static bool parameters_come_back(void) {
    int *a = soft_device_ints(8), *b = soft_device_ints(8);
    hipGraph_t g = new_graph();
    hipGraphNode_t kernel = add_fold(g, NULL, a, 3, 4), copy, set, call;
    hipKernelNodeParams k;
    OK(hip->hipGraphKernelNodeGetParams(kernel, &k));
    MUST(k.func == (void *)function("test_fold") && k.gridDim.x == 1);
    MUST(*(int **)k.kernelParams[0] == a && *(int *)k.kernelParams[1] == 3 &&
         *(int *)k.kernelParams[2] == 4);
    OK(hip->hipGraphAddMemcpyNode1D(&copy, g, NULL, 0, b, a, 32, hipMemcpyDeviceToDevice));
    hipMemcpy3DParms m;
    OK(hip->hipGraphMemcpyNodeGetParams(copy, &m));
    MUST(m.dstPtr.ptr == b && m.srcPtr.ptr == a && m.extent.width == 32 && m.extent.height == 1);
    MUST(m.kind == hipMemcpyDeviceToDevice);
    OK(hip->hipGraphMemcpyNodeSetParams(copy, &m)); /* what comes out can go in */
    hipMemsetParams fill = {
        .dst = a, .elementSize = 2, .width = 3, .height = 2, .pitch = 8, .value = 9
    };
    OK(hip->hipGraphAddMemsetNode(&set, g, NULL, 0, &fill));
    hipMemsetParams fill_out;
    OK(hip->hipGraphMemsetNodeGetParams(set, &fill_out));
    MUST(fill_out.dst == a && fill_out.pitch == 8 && fill_out.elementSize == 2);
    static int calls;
    hipHostNodeParams h = { count_call, &calls }, h_out;
    OK(hip->hipGraphAddHostNode(&call, g, NULL, 0, &h));
    OK(hip->hipGraphHostNodeGetParams(call, &h_out));
    MUST(h_out.fn == count_call && h_out.userData == &calls);
    FAILS(hipErrorInvalidValue, hip->hipGraphKernelNodeGetParams(copy, &k));
    FAILS(hipErrorInvalidValue, hip->hipGraphMemsetNodeSetParams(copy, &fill));
    hipKernelNodeAttrValue value = { .priority = -1 }, out = { .priority = 5 };
    OK(hip->hipGraphKernelNodeSetAttribute(kernel, hipLaunchAttributePriority, &value));
    OK(hip->hipGraphKernelNodeGetAttribute(kernel, hipLaunchAttributePriority, &out));
    MUST(out.priority == -1);
    FAILS(hipErrorInvalidValue,
          hip->hipGraphKernelNodeSetAttribute(copy, hipLaunchAttributePriority, &value));
    return true;
}

static bool bad_parameters_are_refused(void) {
    int *a = soft_device_ints(8), x = 0;
    hipGraph_t g = new_graph();
    hipGraphNode_t n;
    void *args[] = { &a, &x, &x };
    hipKernelNodeParams k = kernel_params("test_fold", args);
    k.func = NULL;
    FAILS(hipErrorInvalidValue, hip->hipGraphAddKernelNode(&n, g, NULL, 0, &k));
    k.func = &x;
    FAILS(hipErrorInvalidDeviceFunction, hip->hipGraphAddKernelNode(&n, g, NULL, 0, &k));
    k = kernel_params("test_fold", args);
    k.blockDim.x = 2000;
    FAILS(hipErrorInvalidConfiguration, hip->hipGraphAddKernelNode(&n, g, NULL, 0, &k));
    k = kernel_params("test_fold", NULL);
    FAILS(hipErrorInvalidValue, hip->hipGraphAddKernelNode(&n, g, NULL, 0, &k));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddKernelNode(&n, g, NULL, 0, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipGraphAddMemcpyNode1D(&n, g, NULL, 0, a, NULL, 4, hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue,
          hip->hipGraphAddMemcpyNode1D(&n, g, NULL, 0, a, &x, 64, hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemcpyNode(&n, g, NULL, 0, NULL));
    hipMemsetParams f = { .dst = a, .elementSize = 3, .width = 1, .height = 1 };
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemsetNode(&n, g, NULL, 0, &f));
    f = (hipMemsetParams){ .dst = a, .elementSize = 4, .width = 9, .height = 1 };
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemsetNode(&n, g, NULL, 0, &f));
    f = (hipMemsetParams){ .dst = a, .elementSize = 4, .width = 2, .height = 2, .pitch = 4 };
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemsetNode(&n, g, NULL, 0, &f));
    hipHostNodeParams h = { NULL, NULL };
    FAILS(hipErrorInvalidValue, hip->hipGraphAddHostNode(&n, g, NULL, 0, &h));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddEventRecordNode(&n, g, NULL, 0, (hipEvent_t)&x));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddChildGraphNode(&n, g, NULL, 0, NULL));
    size_t count = 9;
    OK(hip->hipGraphGetNodes(g, NULL, &count));
    return count == 0;
}

static void parameters_are_checked_and_kept(void **state) {
    (void)state;
    soft_expect(parameters_come_back, NULL);
    soft_expect(boxes_come_back_as_they_were_given, NULL);
    soft_expect(bad_parameters_are_refused, NULL);
}

/* ---- changing executable graphs ------------------------------------------------------------ */

static bool parameters_of_a_launch_can_change(void) {
    int *a = soft_device_ints(1), *b = soft_device_ints(1), times = 10, plus = 5;
    hipGraph_t g = new_graph();
    hipGraphNode_t n = add_fold(g, NULL, a, 10, 1), copy;
    OK(hip->hipGraphAddMemcpyNode1D(&copy, g, &n, 1, b, a, 4, hipMemcpyDeviceToDevice));
    hipGraphExec_t x = instantiate(g);
    hipStream_t s = soft_free_stream();
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, s);
    OK(hip->hipGraphLaunch(x, s)); /* keeps what it was launched with */
    hipKernelNodeParams k = kernel_params("test_fold", (void *[]){ &a, &times, &plus });
    OK(hip->hipGraphExecKernelNodeSetParams(x, n, &k));
    OK(hip->hipGraphLaunch(x, s));
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(s));
    MUST(read_int(a) == 15 && read_int(b) == 15);
    /* The graph itself is as it was. */
    MUST(launch_and_read(instantiate(g), a) == 151);
    hipGraph_t other = new_graph();
    FAILS(hipErrorInvalidValue,
          hip->hipGraphExecKernelNodeSetParams(x, add_fold(other, NULL, a, 1, 1), &k));
    FAILS(hipErrorInvalidValue, hip->hipGraphExecKernelNodeSetParams(x, copy, &k));
    FAILS(hipErrorInvalidValue, hip->hipGraphExecKernelNodeSetParams(NULL, n, &k));
    OK(hip->hipGraphExecMemcpyNodeSetParams1D(x, copy, a, b, 4, hipMemcpyDeviceToDevice));
    OK(hip->hipMemset(b, 0, 4));
    return launch_and_read(x, a) == 0;
}

static bool nodes_can_be_switched_off(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    hipGraphNode_t first = add_fold(g, NULL, a, 10, 1), second = add_fold(g, first, a, 10, 2),
                   empty = add_empty(g, second);
    hipGraphExec_t x = instantiate(g);
    unsigned on = 9;
    OK(hip->hipGraphNodeSetEnabled(x, first, 0));
    OK(hip->hipGraphNodeGetEnabled(x, first, &on));
    MUST(on == 0);
    MUST(launch_and_read(x, a) == 2);
    OK(hip->hipGraphNodeSetEnabled(x, first, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphNodeSetEnabled(x, empty, 0));
    return launch_and_read(x, a) == 212;
}

static bool updates_take_over_parameters(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph(), h = new_graph();
    add_fold(g, add_fold(g, NULL, a, 10, 1), a, 10, 2);
    add_fold(h, add_fold(h, NULL, a, 10, 5), a, 10, 6);
    hipGraphExec_t x = instantiate(g);
    hipGraphNode_t culprit = (hipGraphNode_t)&culprit;
    hipGraphExecUpdateResult result;
    OK(hip->hipGraphExecUpdate(x, h, &culprit, &result));
    MUST(!culprit && result == hipGraphExecUpdateSuccess);
    OK(hip->hipGraphDestroy(h));
    return launch_and_read(x, a) == 56;
}

static void check_update(hipGraphExec_t x, hipGraph_t h, hipGraphExecUpdateResult expected,
                         hipGraphNode_t expected_culprit) {
    hipGraphNode_t culprit = (hipGraphNode_t)&culprit;
    hipGraphExecUpdateResult result;
    FAILS(hipErrorGraphExecUpdateFailure, hip->hipGraphExecUpdate(x, h, &culprit, &result));
    MUST(result == expected && culprit == expected_culprit);
}

static bool updates_say_what_does_not_fit(void) {
    int *a = soft_device_ints(4), *host = soft_pinned_ints(4);
    hipGraph_t g = new_graph();
    hipGraphNode_t n = add_fold(g, NULL, a, 10, 1), copy;
    OK(hip->hipGraphAddMemcpyNode1D(&copy, g, &n, 1, a + 1, a, 4, hipMemcpyDeviceToDevice));
    hipGraphExec_t x = instantiate(g);

    hipGraph_t h = new_graph();
    check_update(x, h, hipGraphExecUpdateErrorTopologyChanged, NULL);
    n = add_fold(h, NULL, a, 10, 1);
    hipGraphNode_t last = add_empty(h, n);
    check_update(x, h, hipGraphExecUpdateErrorNodeTypeChanged, last);
    OK(hip->hipGraphDestroyNode(last));
    OK(hip->hipGraphAddMemcpyNode1D(&last, h, NULL, 0, a + 1, a, 4, hipMemcpyDeviceToDevice));
    check_update(x, h, hipGraphExecUpdateErrorTopologyChanged, last);
    OK(hip->hipGraphDestroyNode(last));
    OK(hip->hipGraphAddMemcpyNode1D(&last, h, &n, 1, host, a, 4, hipMemcpyDeviceToHost));
    check_update(x, h, hipGraphExecUpdateErrorParametersChanged, last);
    hipGraphNode_t culprit;
    hipGraphExecUpdateResult result;
    FAILS(hipErrorInvalidValue, hip->hipGraphExecUpdate(x, h, NULL, &result));
    FAILS(hipErrorInvalidValue, hip->hipGraphExecUpdate(NULL, h, &culprit, &result));
    return launch_and_read(x, a) == 1; /* as it was */
}

static bool children_can_be_updated(void) {
    int *a = soft_device_ints(1);
    hipGraph_t inner = new_graph(), outer = new_graph(), other = new_graph();
    add_fold(inner, NULL, a, 10, 2);
    add_fold(other, NULL, a, 10, 7);
    hipGraphNode_t child, first = add_fold(outer, NULL, a, 10, 1);
    OK(hip->hipGraphAddChildGraphNode(&child, outer, &first, 1, inner));
    hipGraphExec_t x = instantiate(outer);
    OK(hip->hipGraphExecChildGraphNodeSetParams(x, child, other));
    MUST(launch_and_read(x, a) == 17);
    add_fold(other, NULL, a, 10, 8);
    FAILS(hipErrorInvalidValue, hip->hipGraphExecChildGraphNodeSetParams(x, child, other));
    FAILS(hipErrorInvalidValue, hip->hipGraphExecChildGraphNodeSetParams(x, first, other));
    return true;
}

static void executable_graphs_can_be_changed(void **state) {
    (void)state;
    soft_right(parameters_of_a_launch_can_change);
    soft_right(nodes_can_be_switched_off);
    soft_right(updates_take_over_parameters);
    soft_expect(updates_say_what_does_not_fit, NULL);
    soft_right(children_can_be_updated);
}

/* ---- faults, objects ----------------------------------------------------------------------- */

static bool faults_in_graphs_are_sticky(void) {
    int *a = soft_device_ints(1);
    hipGraph_t g = new_graph();
    add_fold(g, NULL, a, 1, 1);
    hipGraphExec_t x = instantiate(g);
    OK(hip->hipFree(a));
    hipStream_t s = soft_free_stream();
    OK(hip->hipGraphLaunch(x, s));
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    FAILS(hipErrorIllegalAddress, hip->hipGraphLaunch(x, s));
    OK(hip->hipDeviceReset());
    int *b = soft_device_ints(1), one = 1;
    hipGraphNode_t n;
    size_t count = 1;
    OK(hip->hipGraphGetNodes(g, &n, &count));
    hipKernelNodeParams k = kernel_params("test_fold", (void *[]){ &b, &one, &one });
    OK(hip->hipGraphExecKernelNodeSetParams(x, n, &k));
    return launch_and_read(x, b) == 1;
}

static void a_node_that_faults_fails_the_device(void **state) {
    (void)state;
    soft_right(faults_in_graphs_are_sticky);
}

static bool objects_live_as_long_as_graphs(void) {
    static int destroyed;
    destroyed = 0;
    hipGraph_t g = new_graph(), clone;
    hipUserObject_t object;
    OK(hip->hipUserObjectCreate(&object, &destroyed, count_call, 1, hipUserObjectNoDestructorSync));
    OK(hip->hipGraphRetainUserObject(g, object, 1, hipGraphUserObjectMove));
    OK(hip->hipGraphClone(&clone, g));
    hipGraphExec_t x = instantiate(g);
    OK(hip->hipGraphDestroy(g));
    OK(hip->hipGraphReleaseUserObject(clone, object, 1));
    FAILS(hipErrorInvalidValue, hip->hipGraphReleaseUserObject(clone, object, 1));
    OK(hip->hipGraphDestroy(clone));
    MUST(destroyed == 0);
    OK(hip->hipUserObjectRetain(object, 2));
    OK(hip->hipGraphExecDestroy(x));
    MUST(destroyed == 0);
    OK(hip->hipUserObjectRelease(object, 2));
    MUST(destroyed == 1);
    FAILS(hipErrorInvalidValue, hip->hipUserObjectRelease(object, 1));
    FAILS(hipErrorInvalidValue,
          hip->hipUserObjectCreate(&object, NULL, NULL, 1, hipUserObjectNoDestructorSync));
    return true;
}

static void user_objects_are_destroyed_last(void **state) {
    (void)state;
    soft_expect(objects_live_as_long_as_graphs, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_run_in_the_order_of_their_edges),
        cmocka_unit_test(launches_keep_their_place_in_the_stream),
        cmocka_unit_test(a_graph_may_be_destroyed_while_it_runs),
        cmocka_unit_test(every_kind_of_node_does_its_work),
        cmocka_unit_test(event_nodes_order_launches),
        cmocka_unit_test(child_graphs_run_where_they_stand),
        cmocka_unit_test(graphs_may_be_empty),
        cmocka_unit_test(the_structure_is_checked_and_shown),
        cmocka_unit_test(parameters_are_checked_and_kept),
        cmocka_unit_test(executable_graphs_can_be_changed),
        cmocka_unit_test(a_node_that_faults_fails_the_device),
        cmocka_unit_test(user_objects_are_destroyed_last),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
