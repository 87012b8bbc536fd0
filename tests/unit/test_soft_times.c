/* Time per kernel and thread: every launch is counted once, and a thread computes or waits. */
#include "test.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include <greta/soft_times.h>

#include "base/clock.h"
#include "support/soft_fixture.h"

enum { SLOW_NS = 20000000 };

static void (*time_kernels)(int on);
static unsigned (*kernel_times)(struct greta_soft_kernel_time *out, unsigned room);

static void find_functions(void) {
    void *symbol = dlsym(soft_library, "greta_soft_time_kernels");
    memcpy(&time_kernels, &symbol, sizeof symbol);
    symbol = dlsym(soft_library, "greta_soft_kernel_times");
    memcpy(&kernel_times, &symbol, sizeof symbol);
    MUST(time_kernels && kernel_times);
}

/* The first block takes its time, the others none. */
static void run_uneven(const struct greta_soft_work *w, void *const *args) {
    (void)args;
    if (w->first == 0)
        nanosleep(&(struct timespec){ .tv_nsec = SLOW_NS }, NULL);
}
static const struct greta_soft_param params[] = { { "unused", 4, GRETA_SOFT_VALUE } };
static const struct greta_soft_kernel uneven = { "uneven", run_uneven, params, 1 };

static void launch(unsigned blocks) {
    unsigned unused = 0;
    OK(hip->hipLaunchKernel(&uneven, (dim3){ blocks, 1, 1 }, (dim3){ 1, 1, 1 },
                            (void *[]){ &unused }, 0, NULL));
    OK(hip->hipDeviceSynchronize());
}

static bool threads_compute_or_wait(void) {
    struct greta_soft_kernel_time t[2];
    find_functions();
    soft_kernel_add(&uneven, &uneven);
    soft_set_threads(2);
    launch(64);
    MUST(kernel_times(t, 2) == 0); /* nobody asked */
    time_kernels(1);
    for (int i = 0; i < 3; i++)
        launch(64);
    time_kernels(0);
    launch(64);
    MUST(kernel_times(t, 2) == 1);
    MUST(!strcmp(t[0].name, "uneven") && t[0].launches == 3 && t[0].threads == 2);
    MUST(t[0].wall_ns >= 3ull * SLOW_NS);
    for (unsigned i = 0; i < 2; i++)
        MUST(t[0].computing_ns[i] <= t[0].wall_ns);
    MUST(t[0].computing_ns[0] + t[0].computing_ns[1] >= 3ull * SLOW_NS);
    time_kernels(1);
    MUST(kernel_times(t, 2) == 0); /* begins with nothing */
    return true;
}

/* A launch of one block has one thread that computes; the other waits all the time. */
static bool one_block_leaves_others_waiting(void) {
    struct greta_soft_kernel_time t[1];
    find_functions();
    soft_kernel_add(&uneven, &uneven);
    soft_set_threads(2);
    time_kernels(1);
    launch(1);
    MUST(kernel_times(t, 1) == 1);
    MUST(t[0].threads == 2 && t[0].computing_ns[0] == t[0].wall_ns && !t[0].computing_ns[1]);
    return true;
}

static void every_launch_is_timed_per_thread(void **state) {
    (void)state;
    soft_expect(threads_compute_or_wait, NULL);
}

static void what_one_block_leaves_is_waiting(void **state) {
    (void)state;
    soft_expect(one_block_leaves_others_waiting, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launch_is_timed_per_thread),
        cmocka_unit_test(what_one_block_leaves_is_waiting),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
