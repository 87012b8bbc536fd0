/* What copies, fills, allocations and frees wait for: one test per rule, under every schedule. */
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/soft_fixture.h"

enum { SLOW = 300 }; /* microseconds */

/* ---- pageable memory ----------------------------------------------------------------------- */

static bool pageable_read(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), value = 0;
    soft_store(s, x, 7, SLOW);
    OK(hip->hipMemcpyAsync(&value, x, sizeof value, hipMemcpyDeviceToHost, s));
    return value == 7; /* complete, though nothing was waited for */
}

static bool pageable_write(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), value = 7;
    soft_store(s, x, 1, SLOW);
    OK(hip->hipMemcpyAsync(x, &value, sizeof value, hipMemcpyHostToDevice, s));
    value = 8; /* the copy has it already */
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x) == 7;
}

static bool pageable_read_from_the_wrong_stream(void) {
    hipStream_t s = soft_free_stream(), other = soft_free_stream();
    int *x = soft_device_ints(1), value = 0;
    soft_store(s, x, 7, SLOW);
    OK(hip->hipMemcpyAsync(&value, x, sizeof value, hipMemcpyDeviceToHost, other));
    return value == 7;
}

static void a_pageable_async_copy_is_complete_when_it_returns(void **state) {
    (void)state;
    soft_right(pageable_read);
    soft_right(pageable_write);
    soft_wrong(pageable_read_from_the_wrong_stream);
}

/* ---- pinned memory ------------------------------------------------------------------------- */

static int *registered_ints(size_t count) {
    int *p = calloc(count, sizeof *p);
    MUST(p);
    OK(hip->hipHostRegister(p, count * sizeof *p, hipHostRegisterDefault));
    return p;
}

static bool read_pinned(int *out, bool wait) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1);
    soft_store(s, x, 7, 0);
    OK(hip->hipMemcpyAsync(out, x, sizeof *out, hipMemcpyDeviceToHost, s));
    if (wait)
        OK(hip->hipStreamSynchronize(s));
    return soft_racy_load(out) == 7;
}
static bool read_pinned_after_waiting(void) {
    return read_pinned(soft_pinned_ints(1), true);
}
static bool read_pinned_early(void) {
    return read_pinned(soft_pinned_ints(1), false);
}
static bool read_pinned_after_sleeping(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *out = soft_pinned_ints(1);
    soft_store(s, x, 7, 0);
    OK(hip->hipMemcpyAsync(out, x, sizeof *out, hipMemcpyDeviceToHost, s));
    usleep(300000); /* is no synchronisation, however well it works on a fast device */
    return soft_racy_load(out) == 7;
}
static bool read_registered_after_waiting(void) {
    return read_pinned(registered_ints(1), true);
}
static bool read_registered_early(void) {
    return read_pinned(registered_ints(1), false);
}

static void a_pinned_destination_is_not_filled_before_a_wait(void **state) {
    (void)state;
    soft_right(read_pinned_after_waiting);
    soft_wrong(read_pinned_early);
    soft_wrong(read_pinned_after_sleeping);
    soft_right(read_registered_after_waiting);
    soft_wrong(read_registered_early);
}

static bool overwrite_pinned(bool wait) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *in = soft_pinned_ints(1);
    *in = 7;
    OK(hip->hipMemcpyAsync(x, in, sizeof *in, hipMemcpyHostToDevice, s));
    if (wait)
        OK(hip->hipStreamSynchronize(s));
    soft_racy_store(in, 8); /* the next batch into the same staging buffer */
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x) == 7;
}
static bool overwrite_pinned_after_waiting(void) {
    return overwrite_pinned(true);
}
static bool overwrite_pinned_early(void) {
    return overwrite_pinned(false);
}

static void a_pinned_source_is_not_read_before_a_wait(void **state) {
    (void)state;
    soft_right(overwrite_pinned_after_waiting);
    soft_wrong(overwrite_pinned_early);
}

/* Two staging buffers in turn, each reused once its event says so. */
static bool staging(bool wait) {
    enum { BATCHES = 12 };
    hipStream_t s = soft_free_stream();
    hipEvent_t e[2] = { soft_event(), soft_event() };
    int *x = soft_device_ints(BATCHES), *in = soft_pinned_ints(2);
    for (int i = 0; i < BATCHES; i++) {
        if (wait)
            OK(hip->hipEventSynchronize(e[i % 2]));
        soft_racy_store(in + i % 2, i + 1);
        OK(hip->hipMemcpyAsync(x + i, in + i % 2, sizeof *in, hipMemcpyHostToDevice, s));
        OK(hip->hipEventRecord(e[i % 2], s));
    }
    OK(hip->hipStreamSynchronize(s));
    for (int i = 0; i < BATCHES; i++)
        if (soft_peek(x + i) != i + 1)
            return false;
    return true;
}
static bool staging_with_events(void) {
    return staging(true);
}
static bool staging_without_events(void) {
    return staging(false);
}

static void a_staging_buffer_may_be_reused_after_its_event(void **state) {
    (void)state;
    soft_right(staging_with_events);
    soft_wrong(staging_without_events);
}

/* ---- calls without Async ------------------------------------------------------------------- */

static bool copy_out(hipStream_t s, int *out) {
    int *x = soft_device_ints(1);
    soft_store(s, x, 7, SLOW);
    OK(hip->hipMemcpy(out, x, sizeof *out, hipMemcpyDeviceToHost));
    return *out == 7;
}
static bool copy_out_after_blocking(void) {
    int value = 0;
    return copy_out(soft_blocking_stream(), &value);
}
static bool copy_out_after_default(void) {
    int value = 0;
    return copy_out(NULL, &value);
}
static bool copy_out_to_pinned(void) {
    return copy_out(NULL, soft_pinned_ints(1));
}
static bool copy_out_after_free(void) {
    int value = 0;
    return copy_out(soft_free_stream(), &value);
}
static bool copy_out_with_stream(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *out = soft_pinned_ints(1);
    soft_store(s, x, 7, SLOW);
    OK(hip->hipMemcpyWithStream(out, x, sizeof *out, hipMemcpyDeviceToHost, s));
    return *out == 7;
}

static void hipMemcpy_to_the_host_waits_for_blocking_streams_and_itself(void **state) {
    (void)state;
    soft_right(copy_out_after_blocking);
    soft_right(copy_out_after_default);
    soft_right(copy_out_to_pinned);
    soft_right(copy_out_with_stream);
    soft_wrong(copy_out_after_free);
}

static bool copy_in(int *in) {
    hipStream_t s = soft_blocking_stream();
    int *x = soft_device_ints(2);
    *in = 7;
    OK(hip->hipMemcpy(x, in, sizeof *in, hipMemcpyHostToDevice));
    *in = 8;
    soft_move(s, x + 1, x, 0);
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x + 1) == 7;
}
static bool copy_in_from_pageable(void) {
    int value;
    return copy_in(&value);
}
static bool copy_in_from_pinned(void) {
    return copy_in(soft_pinned_ints(1));
}

static void hipMemcpy_from_the_host_has_read_its_source(void **state) {
    (void)state;
    soft_right(copy_in_from_pageable);
    soft_right(copy_in_from_pinned);
}

/* ---- what the host does not wait for ------------------------------------------------------- */

static bool return_while_the_device_is_stopped(void) {
    int *x = soft_device_ints(2), *y = soft_device_ints(2), value = 0;
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, NULL);
    OK(hip->hipMemset(x, 1, sizeof *x));
    OK(hip->hipMemcpy(y, x, sizeof *x, hipMemcpyDeviceToDevice));
    MUST(!atomic_load(&gate.open)); /* both came back with the default stream stopped */
    soft_gate_open(&gate);
    OK(hip->hipMemcpy(&value, y, sizeof value, hipMemcpyDeviceToHost));
    return value == 0x01010101;
}

static void copies_and_fills_of_device_memory_do_not_stop_the_host(void **state) {
    (void)state;
    soft_right_waiting(return_while_the_device_is_stopped);
}

static bool fill_managed(bool wait) {
    int *m = soft_managed_ints(1);
    OK(hip->hipMemsetAsync(m, 1, sizeof *m, NULL));
    if (wait)
        OK(hip->hipStreamSynchronize(NULL));
    return soft_racy_load(m) == 0x01010101;
}
static bool fill_managed_and_wait(void) {
    return fill_managed(true);
}
static bool fill_managed_and_look(void) {
    return fill_managed(false);
}

/* hipMemset of what the host reaches waits for all that the default stream waits for. */
static bool fill_managed_after_a_kernel(void) {
    int *m = soft_managed_ints(1), *other = soft_managed_ints(1);
    soft_store(NULL, m, 7, SLOW);
    OK(hip->hipMemset(other, 1, sizeof *other));
    return *m == 7 && *other == 0x01010101;
}

static bool copy_to_managed(bool wait) {
    int *m = soft_managed_ints(1), *x = soft_device_ints(1);
    OK(hip->hipMemset(x, 1, sizeof *x));
    OK(hip->hipMemcpy(m, x, sizeof *m, hipMemcpyDeviceToDevice));
    if (wait)
        OK(hip->hipDeviceSynchronize());
    return soft_racy_load(m) == 0x01010101;
}
static bool copy_to_managed_and_wait(void) {
    return copy_to_managed(true);
}
static bool copy_to_managed_and_look(void) {
    return copy_to_managed(false);
}

/* A call that names the host as the target has written when it returns. */
static bool copy_to_managed_as_host(void) {
    int *m = soft_managed_ints(1), *x = soft_device_ints(1);
    soft_store(NULL, x, 7, SLOW);
    OK(hip->hipMemcpyDtoH(m, x, sizeof *m));
    bool first = *m == 7;
    soft_store(NULL, x, 8, SLOW);
    OK(hip->hipMemcpy(m, x, sizeof *m, hipMemcpyDeviceToHost));
    return first && *m == 8;
}

/* A call that names the host as the source has read when it returns. */
static bool copy_from_managed_as_host(void) {
    int *m = soft_managed_ints(1), *x = soft_device_ints(1), value = 0;
    *m = 7;
    soft_store(NULL, x, 1, SLOW);
    OK(hip->hipMemcpyHtoD(x, m, sizeof *m));
    *m = 8;
    OK(hip->hipMemcpy(&value, x, sizeof value, hipMemcpyDeviceToHost));
    return value == 7;
}

static bool kernel_writes_managed(bool wait) {
    int *m = soft_managed_ints(1);
    soft_store(NULL, m, 7, SLOW);
    if (wait)
        OK(hip->hipDeviceSynchronize());
    return soft_racy_load(m) == 7;
}
static bool kernel_writes_managed_and_wait(void) {
    return kernel_writes_managed(true);
}
static bool kernel_writes_managed_and_look(void) {
    return kernel_writes_managed(false);
}

static void managed_memory_is_the_hosts_after_a_wait(void **state) {
    (void)state;
    soft_right(fill_managed_and_wait);
    soft_wrong(fill_managed_and_look);
    soft_right(fill_managed_after_a_kernel);
    soft_right(copy_to_managed_and_wait);
    soft_wrong(copy_to_managed_and_look);
    soft_right(copy_to_managed_as_host);
    soft_right(copy_from_managed_as_host);
    soft_right(kernel_writes_managed_and_wait);
    soft_wrong(kernel_writes_managed_and_look);
}

/* Ordered nevertheless: the default stream is a stream. */
static bool fill_then_kernel(unsigned flags) {
    hipStream_t s = soft_stream(flags);
    int *x = soft_device_ints(3);
    OK(hip->hipMemset(x, 1, sizeof *x));
    OK(hip->hipMemcpy(x + 1, x, sizeof *x, hipMemcpyDeviceToDevice));
    soft_move(s, x + 2, x + 1, 0);
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(x + 2) == 0x01010101;
}
static bool fill_then_kernel_in_a_blocking_stream(void) {
    return fill_then_kernel(hipStreamDefault);
}
static bool fill_then_kernel_in_a_free_stream(void) {
    return fill_then_kernel(hipStreamNonBlocking);
}

/* A fill of host memory is synchronous. */
static bool fill_pinned(void) {
    int *p = soft_pinned_ints(2);
    OK(hip->hipMemset(p, 1, sizeof *p));
    return *p == 0x01010101;
}

static void fills_and_device_copies_are_ordered_by_the_default_stream(void **state) {
    (void)state;
    soft_right(fill_then_kernel_in_a_blocking_stream);
    soft_wrong(fill_then_kernel_in_a_free_stream);
    soft_right(fill_pinned);
}

/* ---- freeing ------------------------------------------------------------------------------- */

static bool free_while_used(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *out = soft_pinned_ints(1);
    soft_store(s, x, 7, SLOW);
    soft_move(s, out, x, SLOW);
    OK(hip->hipFree(x)); /* waits, though the stream is non-blocking */
    return *out == 7;
}

static bool free_pinned_while_used(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *in = soft_pinned_ints(1);
    *in = 7;
    soft_nothing(s);
    OK(hip->hipMemcpyAsync(x, in, sizeof *in, hipMemcpyHostToDevice, s));
    OK(hip->hipHostFree(in));
    return soft_peek(x) == 7;
}

static bool unregister_while_used(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *in = registered_ints(1);
    *in = 7;
    OK(hip->hipMemcpyAsync(x, in, sizeof *in, hipMemcpyHostToDevice, s));
    OK(hip->hipHostUnregister(in));
    *in = 8;
    free(in);
    return soft_peek(x) == 7;
}

static void freeing_waits_for_the_work_that_uses_the_block(void **state) {
    (void)state;
    soft_right(free_while_used);
    soft_right(free_pinned_while_used);
    soft_right(unregister_while_used);
}

/* ---- stream-ordered allocation ------------------------------------------------------------- */

static bool allocate_use_free(void) {
    hipStream_t s = soft_free_stream();
    int *out = soft_pinned_ints(8);
    for (int i = 0; i < 8; i++) {
        int *x;
        OK(hip->hipMallocAsync((void **)&x, 1000, s));
        soft_store(s, x + 249, i + 1, 20);
        soft_move(s, out + i, x + 249, 0);
        OK(hip->hipFreeAsync(x, s));
    }
    OK(hip->hipStreamSynchronize(s));
    for (int i = 0; i < 8; i++)
        if (out[i] != i + 1)
            return false;
    return true;
}

static bool allocate_here_use_there(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    hipEvent_t made = soft_event(), used = soft_event();
    int *x, *out = soft_pinned_ints(1);
    OK(hip->hipMallocAsync((void **)&x, sizeof *x, a));
    soft_store(a, x, 7, SLOW);
    OK(hip->hipEventRecord(made, a));
    OK(hip->hipStreamWaitEvent(b, made, 0));
    soft_move(b, out, x, SLOW);
    OK(hip->hipEventRecord(used, b));
    OK(hip->hipStreamWaitEvent(a, used, 0));
    OK(hip->hipFreeAsync(x, a));
    OK(hip->hipDeviceSynchronize());
    return *out == 7;
}

/* False if the device faulted: the block was not there. */
static bool no_fault_at(hipStream_t s) {
    hipError_t r = hip->hipStreamSynchronize(s);
    MUST(r == hipSuccess || r == hipErrorIllegalAddress);
    return r == hipSuccess;
}

static bool allocate_here_use_there_without_event(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *x;
    OK(hip->hipMallocAsync((void **)&x, sizeof *x, a));
    soft_store(b, x, 7, 0);
    return no_fault_at(b);
}

static bool free_here_while_used_there(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *x;
    OK(hip->hipMallocAsync((void **)&x, sizeof *x, a));
    OK(hip->hipStreamSynchronize(a));
    soft_store(b, x, 7, SLOW);
    OK(hip->hipFreeAsync(x, a));
    if (!no_fault_at(a))
        return false;
    return no_fault_at(b);
}

/* hipMalloc's block too may be given back in the order of a stream. */
static bool free_async_what_hipMalloc_made(void) {
    hipStream_t s = soft_free_stream();
    int *x = soft_device_ints(1), *out = soft_pinned_ints(1);
    soft_store(s, x, 7, SLOW);
    soft_move(s, out, x, 0);
    OK(hip->hipFreeAsync(x, s));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(x, s));
    FAILS(hipErrorInvalidValue, hip->hipFree(x));
    OK(hip->hipStreamSynchronize(s));
    return *out == 7;
}

static bool hipFree_of_an_async_block(void) {
    hipStream_t s = soft_free_stream();
    int *x, *out = soft_pinned_ints(1);
    OK(hip->hipMallocAsync((void **)&x, sizeof *x, s));
    soft_store(s, x, 7, SLOW);
    soft_move(s, out, x, 0);
    OK(hip->hipFree(x));
    return *out == 7;
}

static void stream_ordered_allocation_follows_its_stream(void **state) {
    (void)state;
    soft_right(allocate_use_free);
    soft_right(allocate_here_use_there);
    soft_right(free_async_what_hipMalloc_made);
    soft_right(hipFree_of_an_async_block);
    soft_wrong(allocate_here_use_there_without_event);
    soft_wrong(free_here_while_used_there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pageable_async_copy_is_complete_when_it_returns),
        cmocka_unit_test(a_pinned_destination_is_not_filled_before_a_wait),
        cmocka_unit_test(a_pinned_source_is_not_read_before_a_wait),
        cmocka_unit_test(a_staging_buffer_may_be_reused_after_its_event),
        cmocka_unit_test(hipMemcpy_to_the_host_waits_for_blocking_streams_and_itself),
        cmocka_unit_test(hipMemcpy_from_the_host_has_read_its_source),
        cmocka_unit_test(copies_and_fills_of_device_memory_do_not_stop_the_host),
        cmocka_unit_test(managed_memory_is_the_hosts_after_a_wait),
        cmocka_unit_test(fills_and_device_copies_are_ordered_by_the_default_stream),
        cmocka_unit_test(freeing_waits_for_the_work_that_uses_the_block),
        cmocka_unit_test(stream_ordered_allocation_follows_its_stream),
    };
    return cmocka_run_group_tests_name("soft_order_copy", tests, soft_fixture_load, NULL);
}
