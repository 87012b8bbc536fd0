/* tick: the same time as the clock, never backwards. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/tick.h"

enum { NEAR_NS = 1000000, THREADS = 4 };
static const uint64_t LONG_NS = 60000000;

/* For LONG_NS, which is many anchors: within NEAR_NS of the clock, and never back. */
static bool agrees(void) {
    uint64_t start = clock_now_ns(), last = 0, after = start;
    while (after - start < LONG_NS) {
        uint64_t before = clock_now_ns(), now = tick_now_ns();
        after = clock_now_ns();
        if (now < last || now + NEAR_NS < before || now > after + NEAR_NS) {
            fprintf(stderr, "clock %llu, tick %llu, clock %llu, tick before %llu\n",
                    (unsigned long long)before, (unsigned long long)now, (unsigned long long)after,
                    (unsigned long long)last);
            return false;
        }
        last = now;
    }
    return true;
}

static void *agrees_in_thread(void *ok) {
    *(bool *)ok = agrees();
    return NULL;
}

static void test_not_started_is_the_clock(void **state) {
    (void)state;
    assert_true(agrees());
}

static void test_agrees_with_the_clock(void **state) {
    (void)state;
    tick_start();
    tick_start();
    assert_true(agrees());
    usleep(3000); /* an anchor that is long past */
    assert_true(agrees());
}

static void test_threads(void **state) {
    (void)state;
    pthread_t id[THREADS];
    bool ok[THREADS] = { false };
    tick_start();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&id[i], NULL, agrees_in_thread, &ok[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(ok[i]);
}

static volatile sig_atomic_t handled;
static volatile uint64_t handler_time;

static void on_alarm(int signal) {
    (void)signal;
    handler_time = tick_now_ns();
    handled++;
}

static void test_signal_handlers_may_ask(void **state) {
    (void)state;
    struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
    tick_start();
    assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    bool ok = agrees();
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(ok);
    assert_true(handled > 0);
    assert_true(handler_time != 0);
}

static void test_children_go_on(void **state) {
    (void)state;
    tick_start();
    assert_true(agrees());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(agrees() ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_started_is_the_clock),
        cmocka_unit_test(test_agrees_with_the_clock),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_signal_handlers_may_ask),
        cmocka_unit_test(test_children_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
