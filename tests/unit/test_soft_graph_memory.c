/* test_soft_graph_memory.c - memory that belongs to graphs: allocation and free nodes, captured
 * hipMallocAsync and hipFreeAsync. */
#include "test.h"

#include <string.h>

#include "support/soft_fixture.h"

enum { BYTES = 4096 };

/* ---- building blocks ------------------------------------------------------------------------- */

static hipGraph_t new_graph(void) {
    hipGraph_t g;
    OK(hip->hipGraphCreate(&g, 0));
    return g;
}

static hipMemAllocNodeParams wanted(size_t bytes) {
    return (hipMemAllocNodeParams){ .poolProps = { .allocType = hipMemAllocationTypePinned,
                                                   .location = { hipMemLocationTypeDevice, 0 } },
                                    .bytesize = bytes };
}

static hipGraphNode_t add_alloc(hipGraph_t g, int **out) {
    hipGraphNode_t n;
    hipMemAllocNodeParams p = wanted(BYTES);
    OK(hip->hipGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    *out = p.dptr;
    return n;
}

static hipGraphNode_t add_set(hipGraph_t g, hipGraphNode_t after, int *to, int value) {
    hipGraphNode_t n;
    hipMemsetParams p = {
        .dst = to, .elementSize = 4, .value = (unsigned)value, .width = 1, .height = 1
    };
    OK(hip->hipGraphAddMemsetNode(&n, g, &after, 1, &p));
    return n;
}

static hipGraphNode_t add_copy(hipGraph_t g, hipGraphNode_t after, int *to, const int *from) {
    hipGraphNode_t n;
    OK(hip->hipGraphAddMemcpyNode1D(&n, g, &after, 1, to, from, sizeof *to, hipMemcpyDefault));
    return n;
}

static hipGraphNode_t add_free(hipGraph_t g, hipGraphNode_t after, int *what) {
    hipGraphNode_t n;
    OK(hip->hipGraphAddMemFreeNode(&n, g, &after, 1, what));
    return n;
}

static hipGraphExec_t instantiate(hipGraph_t g, unsigned long long flags) {
    hipGraphExec_t x;
    OK(hip->hipGraphInstantiateWithFlags(&x, g, flags));
    return x;
}

static int read_int(const int *device) {
    int value;
    OK(hip->hipMemcpy(&value, device, sizeof value, hipMemcpyDeviceToHost));
    return value;
}

static uint64_t used_now(void) {
    uint64_t used = 1;
    OK(hip->hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &used));
    return used;
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool memory_lives_inside_a_launch(void) {
    int *inside = NULL, *outside = soft_device_ints(1);
    hipGraph_t g = new_graph();
    hipGraphNode_t last = add_alloc(g, &inside);
    last = add_set(g, last, inside, 7);
    last = add_copy(g, last, outside, inside);
    add_free(g, last, inside);
    hipGraphExec_t x = instantiate(g, 0);
    OK(hip->hipGraphDestroy(g));
    for (int i = 0; i < 3; i++) {
        OK(hip->hipMemset(outside, 0, sizeof *outside));
        OK(hip->hipGraphLaunch(x, NULL));
        MUST(read_int(outside) == 7);
        MUST(used_now() == 0);
    }
    OK(hip->hipGraphLaunch(x, NULL));
    OK(hip->hipGraphExecDestroy(x)); /* the launch may still be under way */
    OK(hip->hipDeviceSynchronize());
    uint64_t high = 0;
    OK(hip->hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &high));
    return high == BYTES && read_int(outside) == 7;
}

static void a_graph_can_allocate_and_free(void **state) {
    (void)state;
    soft_right(memory_lives_inside_a_launch);
}

static bool the_program_frees_what_a_launch_allocates(void) {
    int *inside = NULL;
    hipGraph_t g = new_graph();
    hipGraphNode_t first = add_alloc(g, &inside);
    add_set(g, first, inside, 11);
    hipGraphExec_t x = instantiate(g, 0);
    FAILS(hipErrorInvalidValue, hip->hipFree(inside)); /* no launch has given it to the program */
    for (int i = 0; i < 3; i++) {
        OK(hip->hipGraphLaunch(x, NULL));
        MUST(read_int(inside) == 11 && used_now() == BYTES);
        FAILS(hipErrorInvalidValue, hip->hipGraphLaunch(x, NULL));
        if (i == 1)
            OK(hip->hipFreeAsync(inside, NULL));
        else
            OK(hip->hipFree(inside));
    }
    OK(hip->hipDeviceSynchronize());
    MUST(used_now() == 0);
    FAILS(hipErrorInvalidValue, hip->hipFree(inside));
    OK(hip->hipGraphLaunch(x, NULL));
    OK(hip->hipGraphExecDestroy(x));
    OK(hip->hipGraphDestroy(g));
    MUST(read_int(inside) == 11); /* outlives the graph, because the program has it */
    OK(hip->hipFree(inside));
    return true;
}

static void memory_outlives_the_launch_until_it_is_freed(void **state) {
    (void)state;
    soft_right(the_program_frees_what_a_launch_allocates);
}

static bool auto_free_allows_launches_again(void) {
    int *inside = NULL;
    hipGraph_t g = new_graph();
    hipGraphNode_t first = add_alloc(g, &inside);
    add_set(g, first, inside, 5);
    hipGraphExec_t x = instantiate(g, hipGraphInstantiateFlagAutoFreeOnLaunch);
    for (int i = 0; i < 3; i++)
        OK(hip->hipGraphLaunch(x, NULL));
    return read_int(inside) == 5 && used_now() == BYTES;
}

static void auto_free_on_launch_is_honoured(void **state) {
    (void)state;
    soft_right(auto_free_allows_launches_again);
}

static bool another_graph_may_free(void) {
    int *inside = NULL;
    hipGraph_t g = new_graph(), other = new_graph();
    hipGraphNode_t n;
    hipGraphNode_t first = add_alloc(g, &inside);
    add_set(g, first, inside, 3);
    OK(hip->hipGraphAddMemFreeNode(&n, other, NULL, 0, inside));
    hipGraphExec_t x = instantiate(g, 0), y = instantiate(other, 0);
    FAILS(hipErrorInvalidValue, hip->hipGraphLaunch(y, NULL));
    OK(hip->hipGraphLaunch(x, NULL));
    OK(hip->hipGraphLaunch(y, NULL));
    FAILS(hipErrorInvalidValue, hip->hipGraphLaunch(y, NULL));
    OK(hip->hipDeviceSynchronize());
    return used_now() == 0;
}

static void a_free_node_may_be_in_another_graph(void **state) {
    (void)state;
    soft_right(another_graph_may_free);
}

static bool use_after_the_free_node(void) {
    int *inside = NULL;
    hipGraph_t g = new_graph();
    hipGraphNode_t first = add_alloc(g, &inside);
    add_free(g, first, inside);
    hipGraphExec_t x = instantiate(g, 0);
    OK(hip->hipGraphLaunch(x, NULL));
    soft_store(NULL, inside, 1, 0);
    return hip->hipDeviceSynchronize() == hipErrorIllegalAddress;
}

static void memory_faults_after_the_free_node(void **state) {
    (void)state;
    soft_expect(use_after_the_free_node, NULL);
}

/* ---- capture --------------------------------------------------------------------------------- */

static bool captured_allocations_become_nodes(void) {
    int *inside = NULL, *outside = soft_device_ints(1);
    hipStream_t s = soft_free_stream();
    hipGraph_t g;
    OK(hip->hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    OK(hip->hipMallocAsync((void **)&inside, BYTES, s));
    OK(hip->hipMemsetAsync(inside, 1, sizeof *inside, s));
    OK(hip->hipMemcpyAsync(outside, inside, sizeof *inside, hipMemcpyDeviceToDevice, s));
    OK(hip->hipFreeAsync(inside, s));
    OK(hip->hipStreamEndCapture(s, &g));
    hipGraphNode_t nodes[4];
    size_t count = 4;
    OK(hip->hipGraphGetNodes(g, nodes, &count));
    MUST(count == 4);
    hipMemAllocNodeParams p;
    void *freed = NULL;
    OK(hip->hipGraphMemAllocNodeGetParams(nodes[0], &p));
    OK(hip->hipGraphMemFreeNodeGetParams(nodes[3], &freed));
    MUST(p.dptr == inside && p.bytesize == BYTES && freed == inside);
    hipGraphExec_t x = instantiate(g, 0);
    for (int i = 0; i < 2; i++) {
        OK(hip->hipGraphLaunch(x, s));
        OK(hip->hipStreamSynchronize(s));
    }
    return read_int(outside) == 0x01010101 && used_now() == 0;
}

static void allocations_can_be_captured(void **state) {
    (void)state;
    soft_right(captured_allocations_become_nodes);
}

static bool wrong_parameters(void) {
    hipGraph_t g = new_graph();
    hipGraphNode_t n;
    hipMemAllocNodeParams p = wanted(0);
    int *plain = soft_device_ints(1);
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemAllocNode(&n, g, NULL, 0, NULL));
    p = wanted(BYTES);
    p.poolProps.location.id = 99;
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    p = wanted(BYTES);
    p.accessDescCount = 1;
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemAllocNode(&n, NULL, NULL, 0, &p));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemFreeNode(&n, g, NULL, 0, plain));
    FAILS(hipErrorInvalidValue, hip->hipGraphAddMemFreeNode(&n, g, NULL, 0, NULL));
    FAILS(hipErrorInvalidValue, hip->hipGraphMemAllocNodeGetParams(NULL, &p));
    size_t count = 9;
    OK(hip->hipGraphGetNodes(g, NULL, &count));
    return count == 0;
}

static void parameters_are_checked(void **state) {
    (void)state;
    soft_expect(wrong_parameters, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_can_allocate_and_free),
        cmocka_unit_test(memory_outlives_the_launch_until_it_is_freed),
        cmocka_unit_test(auto_free_on_launch_is_honoured),
        cmocka_unit_test(a_free_node_may_be_in_another_graph),
        cmocka_unit_test(memory_faults_after_the_free_node),
        cmocka_unit_test(allocations_can_be_captured),
        cmocka_unit_test(parameters_are_checked),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
