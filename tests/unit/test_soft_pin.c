/* Where the workers of the software device may run: one core each if there are no more of them than
 * cores, otherwise anywhere, but never outside of what the program was given. */
#include "test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "support/soft_fixture.h"

enum { CORES_MAX = 4, WORKERS_MAX = 64 };

/* ---- a kernel that sees who runs it ---------------------------------------------------------- */

static struct {
    _Atomic unsigned come;
    _Atomic int failed;
    cpu_set_t of[WORKERS_MAX]; /* by worker */
} seen;

/* One block per worker: each waits until all have come. */
static void run_look(const struct greta_soft_work *w, void *const *args) {
    (void)args;
    uint64_t until = clock_now_ns() + 60000000000ull;
    if (sched_getaffinity(0, sizeof seen.of[0], &seen.of[w->worker]))
        atomic_store(&seen.failed, 1);
    atomic_fetch_add(&seen.come, 1);
    while (atomic_load(&seen.come) < w->grid[0] && clock_now_ns() < until)
        sched_yield();
    if (w->last != w->first + 1 || w->workers != w->grid[0] || atomic_load(&seen.come) < w->grid[0])
        atomic_store(&seen.failed, 1);
}
static const struct greta_soft_param look_params[] = { { "unused", 4, GRETA_SOFT_VALUE } };
static const struct greta_soft_kernel look = { "look", run_look, look_params, 1 };

static void look_at(unsigned workers) {
    unsigned unused = 0;
    atomic_store(&seen.come, 0);
    OK(hip->hipLaunchKernel(&look, (dim3){ workers, 1, 1 }, (dim3){ 1, 1, 1 },
                            (void *[]){ &unused }, 0, NULL));
    OK(hip->hipDeviceSynchronize());
    MUST(!atomic_load(&seen.failed));
}

/* ---- programs -------------------------------------------------------------------------------- */

static struct plan {
    unsigned cores;   /* of this machine that the program may use */
    unsigned workers; /* in turn: this many, then one more than there are processors, then these */
    bool pinned;      /* what is expected of them */
} plan;

/* The first few cores of those that this process has. */
static struct cpu_map some_cores(unsigned cores) {
    struct cpu_map all, some;
    cpu_map_own(&all);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < cores && i < all.cores; i++) {
        cpu_set_t core = cpu_map_core(&all, i);
        CPU_OR(&set, &set, &core);
    }
    cpu_map_read(&some, CPU_FOLDER, &set);
    return some;
}

static void check_places(const struct cpu_map *m, unsigned workers, bool pinned) {
    MUST(CPU_EQUAL(&seen.of[0], &m->allowed)); /* whoever brings the job */
    for (unsigned i = 1; i < workers; i++) {
        cpu_set_t place = pinned ? cpu_map_core(m, i) : m->allowed;
        MUST(CPU_EQUAL(&seen.of[i], &place));
    }
    for (unsigned i = 1; i < workers && pinned && workers == m->cores; i++)
        for (unsigned k = 1; k < i; k++) {
            cpu_set_t both;
            CPU_AND(&both, &seen.of[i], &seen.of[k]);
            MUST(CPU_COUNT(&both) == 0);
        }
}

static bool workers_are_where_they_should(void) {
    struct cpu_map m = some_cores(plan.cores);
    MUST(!sched_setaffinity(0, sizeof m.allowed, &m.allowed));
    soft_kernel_add(&look, &look);
    for (int turn = 0; turn < 3; turn++) {
        unsigned workers = turn == 1 ? m.cpus + 1 : plan.workers;
        soft_set_threads(workers);
        look_at(workers);
        check_places(&m, workers, turn != 1 && plan.pinned);
    }
    cpu_set_t mine;
    MUST(!sched_getaffinity(0, sizeof mine, &mine));
    return CPU_EQUAL(&mine, &m.allowed);
}

/* Fewer than two workers are no pool. False if this machine cannot do it. */
static bool expect_places(unsigned cores, unsigned workers, bool pinned, const char *settings) {
    struct cpu_map m = some_cores(CORES_MAX);
    if (cores > m.cores || workers < 2 || m.cpus >= WORKERS_MAX)
        return false;
    plan = (struct plan){ cores, workers, pinned };
    soft_expect(workers_are_where_they_should, settings);
    return true;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_pool_of_all_cores_has_a_worker_on_each(void **state) {
    (void)state;
    bool any = false;
    for (unsigned cores = 2; cores <= CORES_MAX; cores++)
        any |= expect_places(cores, cores, true, NULL);
    if (!any)
        skip();
}

static void a_pool_of_all_processors_has_as_many_on_a_core_as_it_has_siblings(void **state) {
    (void)state;
    bool any = false;
    for (unsigned cores = 1; cores <= CORES_MAX; cores++)
        any |= expect_places(cores, some_cores(cores).cpus, true, NULL);
    if (!any)
        skip();
}

static void more_workers_than_processors_are_everywhere(void **state) {
    (void)state;
    for (unsigned cores = 1; cores <= some_cores(CORES_MAX).cores; cores++)
        assert_true(expect_places(cores, some_cores(cores).cpus + 1, false, NULL));
}

static void fewer_workers_than_cores_are_everywhere(void **state) {
    (void)state;
    bool any = false;
    for (unsigned cores = 3; cores <= CORES_MAX; cores++)
        any |= expect_places(cores, cores - 1, false, NULL);
    if (!any)
        skip();
}

static void places_can_be_switched_off(void **state) {
    (void)state;
    unsigned cores = some_cores(CORES_MAX).cores;
    if (!expect_places(cores, cores, false, "GRETA_SOFT_PIN=0"))
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_of_all_cores_has_a_worker_on_each),
        cmocka_unit_test(a_pool_of_all_processors_has_as_many_on_a_core_as_it_has_siblings),
        cmocka_unit_test(more_workers_than_processors_are_everywhere),
        cmocka_unit_test(fewer_workers_than_cores_are_everywhere),
        cmocka_unit_test(places_can_be_switched_off),
    };
    return cmocka_run_group_tests_name("soft_pin", tests, soft_fixture_load, NULL);
}
