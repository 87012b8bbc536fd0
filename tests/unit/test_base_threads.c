/* The lock, the sleeping word, the clocks and the processor queries. */
#include "unit/test.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/spin.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct spin lock;
static long shared_count; /* under lock */

static void *count_up(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        spin_lock(&lock);
        long seen = shared_count;
        if (i % 1000 == 0)
            sched_yield(); /* lets others run into the lock */
        shared_count = seen + 1;
        spin_unlock(&lock);
    }
    return NULL;
}

static void spin_lock_excludes(void **state) {
    (void)state;
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(shared_count, THREADS * ROUNDS);
}

static void spin_trylock_fails_while_held(void **state) {
    (void)state;
    struct spin s = { 0 };
    assert_true(spin_trylock(&s));
    assert_false(spin_trylock(&s));
    spin_unlock(&s);
    assert_true(spin_trylock(&s));
}

static void futex_returns_at_once_if_the_word_differs(void **state) {
    (void)state;
    _Atomic uint32_t word = 1;
    errno = EDOM;
    assert_true(futex_wait(&word, 0, -1));
    assert_int_equal(errno, EDOM);
}

static void futex_wait_ends_when_its_time_is_up(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    uint64_t start = clock_now_ns();
    assert_false(futex_wait(&word, 0, 20 * 1000000));
    assert_true(clock_now_ns() - start >= 20 * 1000000);
}

static _Atomic uint32_t ball;

static void *answer(void *arg) {
    (void)arg;
    for (uint32_t i = 0; i < 1000; i++) {
        while (atomic_load(&ball) != 2 * i + 1)
            futex_wait(&ball, 2 * i, -1);
        atomic_store(&ball, 2 * i + 2);
        futex_wake(&ball, 1);
    }
    return NULL;
}

static void futex_wakes_the_other_side(void **state) {
    (void)state;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, answer, NULL), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        atomic_store(&ball, 2 * i + 1);
        futex_wake(&ball, INT_MAX);
        while (atomic_load(&ball) != 2 * i + 2)
            futex_wait(&ball, 2 * i + 1, -1);
    }
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&ball), 2000);
}

static void monotonic_clock_never_goes_back(void **state) {
    (void)state;
    uint64_t last = clock_now_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void wall_clock_agrees_with_the_calendar(void **state) {
    (void)state;
    time_t before = time(NULL);
    uint64_t us = clock_wall_us();
    assert_in_range(us / 1000000, (uint64_t)before, (uint64_t)before + 5);
}

static void cpu_count_honours_the_affinity_mask(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(cpu_count(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void cpu_features_agree_with_the_compiler(void **state) {
    (void)state;
#if defined(__x86_64__)
    __builtin_cpu_init();
    unsigned found = cpu_features();
    assert_int_equal(!!(found & CPU_AVX2), !!__builtin_cpu_supports("avx2"));
    assert_int_equal(!!(found & CPU_AVX512),
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#else
    assert_int_equal(cpu_features(), 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spin_lock_excludes),
        cmocka_unit_test(spin_trylock_fails_while_held),
        cmocka_unit_test(futex_returns_at_once_if_the_word_differs),
        cmocka_unit_test(futex_wait_ends_when_its_time_is_up),
        cmocka_unit_test(futex_wakes_the_other_side),
        cmocka_unit_test(monotonic_clock_never_goes_back),
        cmocka_unit_test(wall_clock_agrees_with_the_calendar),
        cmocka_unit_test(cpu_count_honours_the_affinity_mask),
        cmocka_unit_test(cpu_features_agree_with_the_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
