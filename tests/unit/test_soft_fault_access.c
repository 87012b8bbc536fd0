/* Bad accesses: what becomes a fault, and what the observer is told about it. */
#include "test.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/soft_fixture.h"

/* ---- the observer -------------------------------------------------------------------------- */

static struct {
    _Atomic int count;
    struct greta_soft_fault fault;
    char operation[64], argument[64];
    pthread_t thread;
    void *user;
} seen;

static void note_fault(const struct greta_soft_fault *f, void *user) {
    seen.fault = *f;
    strncpy(seen.operation, f->operation ? f->operation : "(null)", sizeof seen.operation - 1);
    strncpy(seen.argument, f->argument_name ? f->argument_name : "(null)",
            sizeof seen.argument - 1);
    seen.thread = pthread_self();
    seen.user = user;
    atomic_fetch_add(&seen.count, 1);
}

static void watch(void) {
    soft_observe_faults(note_fault, &seen);
}

#define SAME(found, expected)                                                                      \
    ((uint64_t)(found) == (uint64_t)(expected)                                                     \
         ? (void)0                                                                                 \
         : soft_fail(__FILE__, __LINE__, "%s: expected 0x%" PRIx64 ", found 0x%" PRIx64, #found,   \
                     (uint64_t)(expected), (uint64_t)(found)))

/* Touches a byte, expects a fault there, and puts the device in order again. */
static void touch_and_see(void *at, int64_t offset, bool write) {
    atomic_store(&seen.count, 0);
    soft_touch(NULL, at, offset, write);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    MUST(atomic_load(&seen.count) == 1);
    MUST(!strcmp(seen.operation, "test_touch"));
    MUST(!strcmp(seen.argument, "at"));
    MUST(seen.fault.argument == 0);
    SAME(seen.fault.address, (uint64_t)(uintptr_t)at + (uint64_t)offset);
    SAME(seen.fault.kind, write ? GRETA_SOFT_FAULT_WRITE : GRETA_SOFT_FAULT_READ);
    OK(hip->hipDeviceReset());
}

static void expect_allocation(const void *base, uint64_t size, bool freed) {
    SAME(seen.fault.allocation_base, (uintptr_t)base);
    SAME(seen.fault.allocation_size, size);
    SAME(seen.fault.allocation_freed, freed);
}

/* ---- around a block ------------------------------------------------------------------------ */

static const size_t sizes[] = { 1, 2, 3, 4, 10, 100, 256, 1000, 4095, 4096, 4097, 40000, 3 << 20 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static bool one_byte_behind(void) {
    watch();
    for (size_t i = 0; i < SIZES; i++)
        for (int write = 0; write < 2; write++) {
            void *p;
            OK(hip->hipMalloc(&p, sizes[i]));
            soft_touch(NULL, p, 0, true); /* the ends of the block itself are fine */
            soft_touch(NULL, p, (int64_t)sizes[i] - 1, true);
            OK(hip->hipDeviceSynchronize());
            touch_and_see(p, (int64_t)sizes[i], write);
            expect_allocation(p, sizes[i], false);
        }
    return true;
}

static void one_byte_behind_a_block_faults(void **state) {
    (void)state;
    soft_expect(one_byte_behind, NULL);
    soft_expect(one_byte_behind, "GRETA_SOFT_SCHEDULE=lazy");
}

/* Blocks end at a page's end, so that what is before one is caught from the page on. */
static bool before_the_start(void) {
    watch();
    for (int write = 0; write < 2; write++) {
        void *p;
        OK(hip->hipMalloc(&p, 8192));
        touch_and_see(p, -1, write);
        expect_allocation(p, 8192, false);
        OK(hip->hipMalloc(&p, 100));
        touch_and_see(p, -4096, write);
        expect_allocation(p, 100, false);
    }
    return true;
}

/* The guard is at least as large as the block. */
static bool far_behind(void) {
    watch();
    void *p, *q;
    OK(hip->hipMalloc(&p, 1 << 20));
    OK(hip->hipMalloc(&q, 1 << 20));
    touch_and_see(p, (1 << 20) + (1 << 19), true);
    OK(hip->hipMalloc(&p, 100));
    OK(hip->hipMalloc(&q, 100));
    touch_and_see(p, 100 + 32768, false);
    return true;
}

static void a_byte_before_or_far_behind_a_block_faults(void **state) {
    (void)state;
    soft_expect(before_the_start, NULL);
    soft_expect(far_behind, NULL);
}

static bool unchecked_mode(void) {
    char *p;
    watch();
    OK(hip->hipMalloc((void **)&p, 1000));
    MUST((uintptr_t)p % 256 == 0);
    soft_touch(NULL, p, 1000, true); /* the rest of the page */
    soft_touch(NULL, p, 4095, true);
    OK(hip->hipDeviceSynchronize());
    touch_and_see(p, 4096, true);
    expect_allocation(p, 1000, false);
    OK(hip->hipMalloc((void **)&p, 1000));
    touch_and_see(p, -1, false);
    return true;
}

static void without_checked_mode_whole_pages_are_guarded(void **state) {
    (void)state;
    soft_expect(unchecked_mode, "GRETA_SOFT_CHECK=off");
}

/* ---- other bad pointers -------------------------------------------------------------------- */

static bool freed_blocks(void) {
    watch();
    for (int write = 0; write < 2; write++) {
        char *p, *q;
        hipStream_t s = soft_free_stream();
        OK(hip->hipMalloc((void **)&p, 1000));
        OK(hip->hipFree(p));
        touch_and_see(p, 10, write);
        expect_allocation(p, 1000, true);
        /* Freed for long, with much allocated since: still known. */
        OK(hip->hipMalloc((void **)&p, 1000));
        OK(hip->hipFree(p));
        for (int i = 0; i < 200; i++) {
            OK(hip->hipMalloc((void **)&q, 1000));
            if (i % 2)
                OK(hip->hipFree(q));
        }
        touch_and_see(p, 0, write);
        expect_allocation(p, 1000, true);
        /* By a stream. */
        s = soft_free_stream();
        OK(hip->hipMallocAsync((void **)&p, 1000, s));
        OK(hip->hipFreeAsync(p, s));
        OK(hip->hipStreamSynchronize(s));
        touch_and_see(p, 999, write);
        expect_allocation(p, 1000, true);
    }
    return true;
}

static void a_freed_block_faults(void **state) {
    (void)state;
    soft_expect(freed_blocks, NULL);
    soft_expect(freed_blocks, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(freed_blocks, "GRETA_SOFT_CHECK=off");
}

/* In the order of one stream: no schedule makes this right. */
static bool use_after_free_async(void) {
    hipStream_t s = soft_free_stream();
    int *p;
    watch();
    OK(hip->hipMallocAsync((void **)&p, 4, s));
    OK(hip->hipFreeAsync(p, s));
    soft_store(s, p, 1, 0);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    SAME(seen.fault.stream, (uintptr_t)s);
    expect_allocation(p, 4, true);
    return true;
}

static void use_behind_the_free_of_the_same_stream_faults(void **state) {
    (void)state;
    soft_right(use_after_free_async);
}

static int in_the_program;

static bool pageable_memory(void) {
    int on_stack = 0, *on_heap = calloc(1, sizeof(int));
    watch();
    for (int write = 0; write < 2; write++) {
        touch_and_see(&on_stack, 0, write);
        touch_and_see(on_heap, 1, write);
        touch_and_see(&in_the_program, 2, write);
    }
    MUST(on_stack == 0 && *on_heap == 0 && in_the_program == 0);
    free(on_heap);
    return true;
}

static void host_memory_that_is_not_pinned_faults(void **state) {
    (void)state;
    soft_expect(pageable_memory, NULL);
}

static bool null_pointers(void) {
    watch();
    for (int write = 0; write < 2; write++) {
        touch_and_see(NULL, 0, write);
        touch_and_see(NULL, 100, write);
    }
    return true;
}

/* No page table has an entry for it and the CPU does not say what it was. */
static bool wild_offsets(void) {
    watch();
    int *p = soft_device_ints(1);
    soft_touch(NULL, p, INT64_MIN, true);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    MUST(atomic_load(&seen.count) == 1);
    SAME(seen.fault.kind, GRETA_SOFT_FAULT_UNKNOWN);
    OK(hip->hipDeviceReset());
    touch_and_see((void *)0x123456789000, 0, true);                           /* nobody's address */
    touch_and_see((char *)soft_device_ints(1) + ((int64_t)1 << 30), 0, true); /* never allocated */
    return true;
}

static void null_and_wild_pointers_fault(void **state) {
    (void)state;
    soft_expect(null_pointers, NULL);
    soft_expect(wild_offsets, NULL);
}

/* ---- host memory that kernels may use ------------------------------------------------------ */

static bool host_memory_of_the_device(void) {
    char *pinned, *heap = calloc(1, 1000);
    watch();
    OK(hip->hipHostMalloc((void **)&pinned, 1000, 0));
    OK(hip->hipHostRegister(heap, 1000, hipHostRegisterDefault));
    soft_touch(NULL, pinned, 999, true);
    soft_touch(NULL, heap, 999, true);
    OK(hip->hipDeviceSynchronize());
    MUST(pinned[999] == 1 && heap[999] == 1);

    OK(hip->hipHostUnregister(heap));
    touch_and_see(heap, 0, true); /* the reset frees the pinned block, too */

    OK(hip->hipHostMalloc((void **)&pinned, 1000, 0));
    touch_and_see(pinned, 1000, true);
    expect_allocation(pinned, 1000, false);
    OK(hip->hipHostMalloc((void **)&pinned, 1000, 0));
    OK(hip->hipHostFree(pinned));
    touch_and_see(pinned, 0, false);
    free(heap);
    return true;
}

static bool managed_memory(void) {
    int *m = soft_managed_ints(10);
    watch();
    m[9] = 3;
    soft_fold(NULL, m + 9, 10, 4);
    OK(hip->hipDeviceSynchronize());
    MUST(m[9] == 34);
    touch_and_see(m, 40, true);
    expect_allocation(m, 40, false);
    return true;
}

static void pinned_registered_and_managed_memory_is_guarded_too(void **state) {
    (void)state;
    soft_expect(host_memory_of_the_device, NULL);
    soft_expect(managed_memory, NULL);
}

/* ---- what else the observer learns --------------------------------------------------------- */

static bool which_argument(void) {
    int *good, *gone;
    watch();
    good = soft_device_ints(1);
    gone = soft_device_ints(1);
    OK(hip->hipFree(gone));
    soft_tag(77);
    hipStream_t s = soft_free_stream();
    soft_move(s, good, gone, 0);
    soft_tag(78);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    MUST(!strcmp(seen.operation, "test_move"));
    MUST(seen.fault.argument == 1 && !strcmp(seen.argument, "from"));
    SAME(seen.fault.tag, 77);
    SAME(seen.fault.kind, GRETA_SOFT_FAULT_READ);
    SAME(seen.fault.stream, (uintptr_t)s);
    SAME(seen.fault.device, 0);
    MUST(seen.user == &seen);
    OK(hip->hipDeviceReset());

    good = soft_device_ints(1);
    soft_move(NULL, gone, good, 0);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    MUST(seen.fault.argument == 0 && !strcmp(seen.argument, "to"));
    SAME(seen.fault.tag, 78);
    SAME(seen.fault.stream, 0);
    return true;
}

/* Pointers that point beside their blocks. */
static bool which_of_two_arguments(void) {
    static const struct {
        int64_t first, second;
        int expected;
    } cases[] = { { -4096, 0, 0 }, { 0, -4096, 1 }, { 4096, 0, 0 }, { 0, 4096, 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *low, *high;
        watch();
        OK(hip->hipMalloc((void **)&low, 4096));
        OK(hip->hipMalloc((void **)&high, 4096));
        MUST(low < high);
        int *to = (int *)(low + cases[i].first), *from = (int *)(high + cases[i].second);
        soft_move(NULL, to, from, 0);
        FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
        MUST(seen.fault.argument == cases[i].expected);
        OK(hip->hipDeviceReset());
    }
    return true;
}

static bool which_device(void) {
    watch();
    OK(hip->hipSetDevice(1));
    int *p = soft_device_ints(1);
    soft_touch(NULL, p, 4, true);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    SAME(seen.fault.device, 1);
    return true;
}

static bool no_observer_any_more(void) {
    watch();
    soft_observe_faults(NULL, NULL);
    soft_touch(NULL, soft_device_ints(1), 4, true);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    return atomic_load(&seen.count) == 0;
}

static void the_observer_learns_operation_argument_and_tag(void **state) {
    (void)state;
    soft_expect(which_argument, NULL);
    soft_expect(which_argument, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(which_of_two_arguments, NULL);
    soft_expect(which_device, "GRETA_SOFT_DEVICES=2");
    soft_expect(no_observer_any_more, NULL);
}

/* ---- copies and fills ---------------------------------------------------------------------- */

static bool a_copy_from_memory_that_is_gone(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1024);
    watch();
    char *host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(host != MAP_FAILED);
    OK(hip->hipHostRegister(host, 4096, hipHostRegisterDefault));
    /* Gone as by munmap(), but so that nobody else can get the addresses meanwhile. */
    MUST(mmap(host, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == host);
    soft_tag(5);
    OK(hip->hipMemcpyAsync(x, host, 4096, hipMemcpyHostToDevice, s));
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(s));
    MUST(!strcmp(seen.operation, "hipMemcpyAsync"));
    SAME(seen.fault.argument, -1);
    SAME(seen.fault.tag, 5);
    SAME(seen.fault.kind, GRETA_SOFT_FAULT_READ);
    SAME(seen.fault.address & ~(uint64_t)4095, (uintptr_t)host);
    return true;
}

/* Whichever core comes to the hole: the address is the hole's, and it is told once. */
static bool a_large_copy_over_a_hole(void) {
    enum { SIZE = 9 << 20, HOLE = 5 << 20 };
    char *x = (char *)soft_device_ints(SIZE / sizeof(int));
    char *host = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(host != MAP_FAILED);
    MUST(mprotect(host + HOLE, 4096, PROT_NONE) == 0);
    for (int write = 0; write < 2; write++) {
        watch();
        atomic_store(&seen.count, 0);
        FAILS(hipErrorIllegalAddress, write ? hip->hipMemcpy(host, x, SIZE, hipMemcpyDeviceToHost)
                                            : hip->hipMemcpy(x, host, SIZE, hipMemcpyHostToDevice));
        MUST(atomic_load(&seen.count) == 1);
        SAME(seen.fault.kind, write ? GRETA_SOFT_FAULT_WRITE : GRETA_SOFT_FAULT_READ);
        SAME(seen.fault.address & ~(uint64_t)4095, (uintptr_t)host + HOLE);
        OK(hip->hipDeviceReset());
        x = (char *)soft_device_ints(SIZE / sizeof(int));
    }
    return true;
}

static bool a_fill_of_a_block_that_is_gone(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    char *p;
    watch();
    OK(hip->hipMallocAsync((void **)&p, 1000, a));
    OK(hip->hipStreamSynchronize(a));
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, b);
    OK(hip->hipMemsetAsync(p, 1, 1000, b));
    OK(hip->hipFreeAsync(p, a));
    OK(hip->hipStreamSynchronize(a));
    soft_gate_open(&gate);
    FAILS(hipErrorIllegalAddress, hip->hipStreamSynchronize(b));
    MUST(!strcmp(seen.operation, "hipMemsetAsync"));
    SAME(seen.fault.kind, GRETA_SOFT_FAULT_WRITE);
    expect_allocation(p, 1000, true);
    return true;
}

static void copies_and_fills_fault_like_kernels(void **state) {
    (void)state;
    soft_right(a_copy_from_memory_that_is_gone);
    soft_right(a_large_copy_over_a_hole);
    soft_right_waiting(a_fill_of_a_block_that_is_gone);
}

/* ---- many blocks at once ------------------------------------------------------------------- */

SOFT_UNCHECKED static void run_all_bad(const struct greta_soft_work *work, void *const *args) {
    volatile char *p = *(char **)args[0];
    for (uint64_t i = work->first; i < work->last; i++)
        p[i] = 1;
}

static bool every_block_faults(void) {
    static const struct greta_soft_param params[] = { { "p", sizeof(void *), GRETA_SOFT_POINTER } };
    static const struct greta_soft_kernel kernel = { "test_all_bad", run_all_bad, params, 1 };
    soft_kernel_add(&kernel, &kernel);
    watch();
    for (int round = 0; round < 20; round++) {
        char *p;
        OK(hip->hipMalloc((void **)&p, 4096));
        OK(hip->hipFree(p));
        atomic_store(&seen.count, 0);
        OK(hip->hipLaunchKernel(&kernel, (dim3){ 4096, 1, 1 }, (dim3){ 64, 1, 1 }, (void *[]){ &p },
                                0, NULL));
        FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
        MUST(atomic_load(&seen.count) == 1); /* one launch, one report */
        MUST(seen.fault.address - (uintptr_t)p < 4096);
        OK(hip->hipDeviceReset());
    }
    return true;
}

static void a_launch_whose_blocks_all_fault_is_one_fault(void **state) {
    (void)state;
    soft_expect(every_block_faults, "GRETA_SOFT_THREADS=4");
}

static void run_trap(const struct greta_soft_work *work, void *const *args) {
    (void)work, (void)args;
    __builtin_trap();
}

static bool a_kernel_traps(void) {
    static const struct greta_soft_param params[] = { { "p", sizeof(void *), GRETA_SOFT_POINTER } };
    static const struct greta_soft_kernel kernel = { "test_trap", run_trap, params, 1 };
    int *p = soft_device_ints(1);
    soft_kernel_add(&kernel, &kernel);
    watch();
    OK(hip->hipLaunchKernel(&kernel, (dim3){ 4, 1, 1 }, (dim3){ 64, 1, 1 }, (void *[]){ &p }, 0,
                            NULL));
    FAILS(hipErrorLaunchFailure, hip->hipDeviceSynchronize());
    FAILS(hipErrorLaunchFailure, hip->hipMalloc((void **)&p, 4)); /* it is sticky */
    MUST(atomic_load(&seen.count) == 1);
    MUST(!strcmp(seen.operation, "test_trap"));
    MUST(seen.fault.argument == -1);
    SAME(seen.fault.kind, GRETA_SOFT_FAULT_TRAP);
    SAME(seen.fault.allocation_size, 0);
    OK(hip->hipDeviceReset());
    soft_store(NULL, soft_device_ints(1), 1, 0);
    OK(hip->hipDeviceSynchronize());
    return true;
}

static void a_kernel_that_traps_has_failed(void **state) {
    (void)state;
    soft_expect(a_kernel_traps, NULL);
    soft_expect(a_kernel_traps, "GRETA_SOFT_SCHEDULE=lazy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_byte_behind_a_block_faults),
        cmocka_unit_test(a_byte_before_or_far_behind_a_block_faults),
        cmocka_unit_test(without_checked_mode_whole_pages_are_guarded),
        cmocka_unit_test(a_freed_block_faults),
        cmocka_unit_test(use_behind_the_free_of_the_same_stream_faults),
        cmocka_unit_test(host_memory_that_is_not_pinned_faults),
        cmocka_unit_test(null_and_wild_pointers_fault),
        cmocka_unit_test(pinned_registered_and_managed_memory_is_guarded_too),
        cmocka_unit_test(the_observer_learns_operation_argument_and_tag),
        cmocka_unit_test(copies_and_fills_fault_like_kernels),
        cmocka_unit_test(a_launch_whose_blocks_all_fault_is_one_fault),
        cmocka_unit_test(a_kernel_that_traps_has_failed),
    };
    return cmocka_run_group_tests_name("soft_fault_access", tests, soft_fixture_load, NULL);
}
