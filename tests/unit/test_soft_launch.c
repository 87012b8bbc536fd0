/* Launches of native kernels: every block once, arguments as they were, wrong launches refused. */
#include "test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/soft_fixture.h"

#define POINTER(name)                                                                              \
    { name, sizeof(void *), GRETA_SOFT_POINTER }
#define VALUE(name, type)                                                                          \
    { name, sizeof(type), GRETA_SOFT_VALUE }
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))
#define KERNEL(kernel, fn, list)                                                                   \
    static const struct greta_soft_kernel kernel = { #kernel, fn, list, COUNT_OF(list) }

static const dim3 one = { 1, 1, 1 };

static hipFunction_t function_of(const struct greta_soft_kernel *kernel) {
    hipFunction_t f;
    OK(hip->hipGetFuncBySymbol(&f, kernel));
    return f;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static _Atomic int bad_work;
static _Atomic unsigned most_workers;

static void run_count(const struct greta_soft_work *w, void *const *args) {
    int *counts = *(int **)args[0];
    uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2];
    if (w->first >= w->last || w->last > blocks || w->worker >= w->workers)
        atomic_store(&bad_work, 1);
    if (w->workers > atomic_load(&most_workers))
        atomic_store(&most_workers, w->workers);
    for (uint64_t b = w->first; b < w->last; b++)
        __atomic_fetch_add(counts + b, (int)(w->block[0] + 10 * w->block[1] + 100 * w->block[2]),
                           __ATOMIC_RELAXED);
}
static const struct greta_soft_param count_params[] = { POINTER("counts") };
KERNEL(launch_count, run_count, count_params);

static void count_blocks(dim3 grid, dim3 block) {
    size_t blocks = (size_t)grid.x * grid.y * grid.z;
    int *counts = soft_device_ints(blocks), *found = malloc(blocks * sizeof *found);
    OK(hip->hipLaunchKernel(&launch_count, grid, block, (void *[]){ &counts }, 0, NULL));
    OK(hip->hipMemcpy(found, counts, blocks * sizeof *found, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < blocks; i++)
        MUST(found[i] == (int)(block.x + 10 * block.y + 100 * block.z));
    MUST(!atomic_load(&bad_work));
    OK(hip->hipFree(counts));
    free(found);
}

static bool grids(void) {
    soft_kernel_add(&launch_count, &launch_count);
    count_blocks(one, one);
    count_blocks((dim3){ 2, 1, 1 }, (dim3){ 64, 1, 1 });
    count_blocks((dim3){ 17, 5, 3 }, (dim3){ 8, 4, 2 });
    count_blocks((dim3){ 1, 1, 1000 }, (dim3){ 1, 1, 1024 });
    count_blocks((dim3){ 100003, 1, 1 }, (dim3){ 1024, 1, 1 });
    for (unsigned n = 1; n < 100; n++)
        count_blocks((dim3){ n, 1, 1 }, one);
    return true;
}

static void every_block_runs_once(void **state) {
    (void)state;
    soft_expect(grids, NULL);
    soft_expect(grids, "GRETA_SOFT_THREADS=1");
    soft_expect(grids, "GRETA_SOFT_THREADS=7");
    soft_expect(grids, "GRETA_SOFT_SCHEDULE=lazy");
}

static bool workers_at_most(void) {
    unsigned limit = (unsigned)atoi(getenv("GRETA_SOFT_THREADS"));
    soft_kernel_add(&launch_count, &launch_count);
    count_blocks((dim3){ 1000, 1, 1 }, one);
    MUST(atomic_load(&most_workers) == limit);
    soft_set_threads(2);
    atomic_store(&most_workers, 0);
    count_blocks((dim3){ 1000, 1, 1 }, one);
    MUST(atomic_load(&most_workers) == 2);
    soft_set_threads(0);
    count_blocks((dim3){ 1000, 1, 1 }, one);
    return true;
}

/* Each block waits for the other: they need two cores' worth of threads at the same time. */
static void run_meet(const struct greta_soft_work *w, void *const *args) {
    _Atomic int *come = *(_Atomic int **)args[0];
    uint64_t until = clock_now_ns() + 20000000000ull;
    for (uint64_t b = w->first; b < w->last; b++) {
        atomic_fetch_add(come, 1);
        while (atomic_load(come) < 2 && clock_now_ns() < until)
            sched_yield();
        if (atomic_load(come) < 2)
            atomic_store(&bad_work, 1);
    }
}
static const struct greta_soft_param meet_params[] = { POINTER("come") };
KERNEL(launch_meet, run_meet, meet_params);

static bool blocks_run_at_the_same_time(void) {
    soft_kernel_add(&launch_meet, &launch_meet);
    for (int i = 0; i < 20; i++) {
        int *come = soft_device_ints(1);
        OK(hip->hipLaunchKernel(&launch_meet, (dim3){ 2, 1, 1 }, one, (void *[]){ &come }, 0,
                                NULL));
        OK(hip->hipDeviceSynchronize());
        MUST(!atomic_load(&bad_work));
    }
    return true;
}

static void one_kernel_uses_as_many_threads_as_it_may(void **state) {
    (void)state;
    soft_expect(workers_at_most, "GRETA_SOFT_THREADS=1");
    soft_expect(workers_at_most, "GRETA_SOFT_THREADS=5");
    soft_expect(blocks_run_at_the_same_time, "GRETA_SOFT_THREADS=2");
}

/* ---- arguments ----------------------------------------------------------------------------- */

struct triple {
    double a, b, c;
};
struct big {
    unsigned word[75];
};

/* The device takes the largest power of two in an argument's size, up to 8, for its alignment;
 * these have that alignment in C, too. So the struct has the offsets that hipcc gives to (char,
 * double, short, struct triple, int *, char, struct big). */
struct packed_arguments {
    char c;
    double d;
    short s;
    struct triple t;
    int *out;
    char last;
    struct big big;
};

static void run_arguments(const struct greta_soft_work *w, void *const *args) {
    (void)w;
    struct triple t;
    struct big big;
    double d;
    short s;
    memcpy(&d, args[1], sizeof d);
    memcpy(&s, args[2], sizeof s);
    memcpy(&t, args[3], sizeof t);
    memcpy(&big, args[6], sizeof big);
    bool right = *(char *)args[0] == 'x' && d == 2.5 && s == -3 && t.a == 1 && t.b == 2 &&
                 t.c == 3 && *(char *)args[5] == 'y';
    for (unsigned i = 0; i < 75; i++)
        right = right && big.word[i] == i + 1;
    **(int **)args[4] += right ? 1 : 1000;
}
static const struct greta_soft_param arguments_params[] = {
    VALUE("c", char), VALUE("d", double),  VALUE("s", short),       VALUE("t", struct triple),
    POINTER("out"),   VALUE("last", char), VALUE("big", struct big)
};
KERNEL(launch_arguments, run_arguments, arguments_params);

static struct packed_arguments right_arguments(int *out) {
    struct packed_arguments a;
    memset(&a, 0, sizeof a);
    a.c = 'x';
    a.d = 2.5;
    a.s = -3;
    a.t = (struct triple){ 1, 2, 3 };
    a.out = out;
    a.last = 'y';
    for (unsigned i = 0; i < 75; i++)
        a.big.word[i] = i + 1;
    return a;
}

static bool arguments(void) {
    soft_kernel_add(&launch_arguments, &launch_arguments);
    int *out = soft_device_ints(1);
    hipFunction_t f = function_of(&launch_arguments);
    struct packed_arguments a = right_arguments(out);
    void *params[] = { &a.c, &a.d, &a.s, &a.t, &a.out, &a.last, &a.big };
    OK(hip->hipLaunchKernel(&launch_arguments, one, one, params, 0, NULL));
    OK(hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    size_t size = sizeof a;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &a, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      HIP_LAUNCH_PARAM_END };
    OK(hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    memset(&a, 0, sizeof a); /* the launches have copies */
    OK(hip->hipDeviceSynchronize());
    return soft_peek(out) == 3;
}

static bool missing_arguments(void) {
    soft_kernel_add(&launch_arguments, &launch_arguments);
    hipFunction_t f = function_of(&launch_arguments);
    int *out = soft_device_ints(1);
    struct packed_arguments a = right_arguments(out);
    void *params[] = { &a.c, &a.d, &a.s, NULL, &a.out, &a.last, &a.big };
    size_t size = 100;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &a, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      HIP_LAUNCH_PARAM_END };
    FAILS(hipErrorInvalidValue, hip->hipLaunchKernel(&launch_arguments, one, one, NULL, 0, NULL));
    FAILS(hipErrorInvalidValue, hip->hipLaunchKernel(&launch_arguments, one, one, params, 0, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra)); /* short */
    size = sizeof a;
    extra[4] = NULL;
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    OK(hip->hipDeviceSynchronize());
    return soft_peek(out) == 0;
}

static void arguments_arrive_as_they_were_at_the_launch(void **state) {
    (void)state;
    soft_right(arguments);
    soft_expect(missing_arguments, NULL);
}

/* Pointers inside the kernel's data are the kernel's to translate. */
static void run_follow(const struct greta_soft_work *w, void *const *args) {
    int **list = *(int ***)args[0];
    for (int i = 0; i < 3; i++)
        *(int *)greta_soft_reach(w, list[i]) = (int)w->shared_bytes + i;
}
static const struct greta_soft_param follow_params[] = { POINTER("list") };
KERNEL(launch_follow, run_follow, follow_params);

static bool pointers_in_memory(void) {
    soft_kernel_add(&launch_follow, &launch_follow);
    int *device = soft_device_ints(1), *pinned = soft_pinned_ints(1), *managed;
    managed = soft_managed_ints(1);
    int *table[3] = { device, pinned, managed }, **list;
    OK(hip->hipMalloc((void **)&list, sizeof table));
    OK(hip->hipMemcpy(list, table, sizeof table, hipMemcpyHostToDevice));
    OK(hip->hipLaunchKernel(&launch_follow, one, one, (void *[]){ &list }, 1000, NULL));
    OK(hip->hipDeviceSynchronize());
    return soft_peek(device) == 1000 && *pinned == 1001 && *managed == 1002;
}

static void kernels_can_follow_pointers_in_memory(void **state) {
    (void)state;
    soft_expect(pointers_in_memory, NULL);
}

/* ---- wrong launches ------------------------------------------------------------------------ */

#define REFUSED(grid, block, shared)                                                               \
    FAILS(hipErrorInvalidConfiguration,                                                            \
          hip->hipLaunchKernel(&launch_count, grid, block, (void *[]){ &counts }, shared, NULL))
#define DIM(...) ((dim3){ __VA_ARGS__ })

static bool wrong_launches(void) {
    soft_kernel_add(&launch_count, &launch_count);
    int *counts = soft_device_ints(1);
    hipFunction_t f = function_of(&launch_count);
    REFUSED(DIM(0, 1, 1), one, 0);
    REFUSED(DIM(1, 0, 1), one, 0);
    REFUSED(DIM(1, 1, 0), one, 0);
    REFUSED(one, DIM(0, 1, 1), 0);
    REFUSED(one, DIM(1025, 1, 1), 0);
    REFUSED(one, DIM(32, 33, 1), 0);
    REFUSED(one, DIM(1024, 1024, 1024), 0);
    REFUSED(one, DIM(1u << 31, 2, 1), 0);
    REFUSED(DIM(UINT32_MAX, UINT32_MAX, UINT32_MAX), one, 0);
    REFUSED(DIM(1u << 22, 1, 1), DIM(1024, 1, 1), 0);
    REFUSED(DIM(1, 1, 1u << 31), DIM(1, 1, 2), 0);
    REFUSED(one, one, 65537);
    REFUSED(one, one, SIZE_MAX);
    void *args[] = { &counts }, *extra[] = { HIP_LAUNCH_PARAM_END };
    FAILS(hipErrorInvalidValue,
          hip->hipExtModuleLaunchKernel(f, 10, 1, 1, 3, 1, 1, 0, NULL, args, NULL, NULL, NULL, 0));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 0, 1, 1, 1, 1, 0, NULL, args, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, args, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 65537, NULL, args, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra));
    MUST(hip->hipLaunchKernel(NULL, one, one, NULL, 0, NULL) != hipSuccess);
    MUST(hip->hipLaunchKernel(&counts, one, one, NULL, 0, NULL) == hipErrorInvalidDeviceFunction);
    MUST(hip->hipModuleLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != hipSuccess);
    MUST(hip->hipModuleLaunchKernel((hipFunction_t)&counts, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
                                    NULL) != hipSuccess);
    MUST(hip->hipLaunchKernelExC(NULL, &launch_count, NULL) != hipSuccess);
    OK(hip->hipDeviceSynchronize()); /* errors of calls, not of the device */
    return soft_peek(counts) == 0;
}

static void wrong_launches_are_refused_and_run_nothing(void **state) {
    (void)state;
    soft_expect(wrong_launches, NULL);
}

/* ---- the other ways to launch -------------------------------------------------------------- */

static bool other_launches(void) {
    soft_kernel_add(&launch_count, &launch_count);
    int *counts = soft_device_ints(2);
    hipFunction_t f = function_of(&launch_count);
    void *params[] = { &counts };
    hipEvent_t start = soft_event(), stop = soft_event();
    hipStream_t s = soft_blocking_stream();
    dim3 two = { 2, 1, 1 };
    float ms;
    OK(hip->hipModuleLaunchCooperativeKernel(f, 2, 1, 1, 1, 1, 1, 0, s, params));
    OK(hip->hipExtModuleLaunchKernel(f, 2, 1, 1, 1, 1, 1, 0, s, params, NULL, start, stop, 0));
    OK(hip->hipEventSynchronize(stop));
    OK(hip->hipEventElapsedTime(&ms, start, stop));
    MUST(ms >= 0);
    OK(hip->hipExtLaunchKernel(&launch_count, two, one, params, 0, s, start, stop, 0));
    OK(hip->hipLaunchCooperativeKernel(&launch_count, two, one, params, 0, s));
    OK(hip->hipLaunchKernel_spt(&launch_count, two, one, params, 0, s));
    hipLaunchConfig_t config = { .gridDim = two, .blockDim = one, .stream = s };
    OK(hip->hipLaunchKernelExC(&config, &launch_count, params));
    HIP_LAUNCH_CONFIG driver = { .gridDimX = 2,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = s };
    OK(hip->hipDrvLaunchKernelEx(&driver, f, params, NULL));
    OK(hip->hipConfigureCall(two, one, 0, s));
    OK(hip->hipSetupArgument(&counts, sizeof counts, 0));
    OK(hip->hipLaunchByPtr(&launch_count));
    FAILS(hipErrorMissingConfiguration, hip->hipLaunchByPtr(&launch_count));
    OK(hip->hipStreamSynchronize(s));
    return soft_peek(counts) == 8 * 111 && soft_peek(counts + 1) == 8 * 111;
}

static void every_launch_function_launches(void **state) {
    (void)state;
    soft_expect(other_launches, NULL);
    soft_expect(other_launches, "GRETA_SOFT_SCHEDULE=lazy");
}

/* ---- registration -------------------------------------------------------------------------- */

static void run_one(const struct greta_soft_work *w, void *const *args) {
    (void)w;
    **(int **)args[0] = 1;
}
static void run_two(const struct greta_soft_work *w, void *const *args) {
    (void)w;
    **(int **)args[0] = 2;
}

static bool registration(void) {
    static const struct greta_soft_param out[] = { POINTER("out") };
    static const struct greta_soft_param empty[] = { { "x", 0, 0 } };
    static const struct greta_soft_param narrow[] = { { "p", 4, GRETA_SOFT_POINTER } };
    static const struct greta_soft_param huge[] = { { "a", 4000, 0 }, { "b", 200, 0 } };
    static struct greta_soft_param many[200];
    for (int i = 0; i < 200; i++)
        many[i] = (struct greta_soft_param){ "x", 1, 0 };
    const struct greta_soft_kernel bad[] = {
        { NULL, run_one, out, 1 }, { "", run_one, out, 1 },     { "k", NULL, out, 1 },
        { "k", run_one, NULL, 1 }, { "k", run_one, empty, 1 },  { "k", run_one, narrow, 1 },
        { "k", run_one, huge, 2 }, { "k", run_one, many, 200 },
    };
    MUST(soft_kernel_register(NULL) == -1);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        MUST(soft_kernel_register(&bad[i]) == -1);

    /* The last registration of a name counts. */
    static const struct greta_soft_kernel first = { "twice", run_one, out, 1 };
    static const struct greta_soft_kernel second = { "twice", run_two, out, 1 };
    int *p = soft_device_ints(1);
    soft_kernel_add(&first, &first);
    OK(hip->hipLaunchKernel(&first, one, one, (void *[]){ &p }, 0, NULL));
    OK(hip->hipDeviceSynchronize());
    MUST(soft_peek(p) == 1);
    MUST(soft_kernel_register(&second) == 0);
    OK(hip->hipLaunchKernel(&first, one, one, (void *[]){ &p }, 0, NULL));
    OK(hip->hipDeviceSynchronize());
    return soft_peek(p) == 2;
}

static void kernels_are_registered_by_name(void **state) {
    (void)state;
    soft_expect(registration, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_runs_once),
        cmocka_unit_test(one_kernel_uses_as_many_threads_as_it_may),
        cmocka_unit_test(arguments_arrive_as_they_were_at_the_launch),
        cmocka_unit_test(kernels_can_follow_pointers_in_memory),
        cmocka_unit_test(wrong_launches_are_refused_and_run_nothing),
        cmocka_unit_test(every_launch_function_launches),
        cmocka_unit_test(kernels_are_registered_by_name),
    };
    return cmocka_run_group_tests_name("soft_launch", tests, soft_fixture_load, NULL);
}
