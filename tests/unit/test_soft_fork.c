/* Forks and signals around the start of the device: a child of fork() gets an answer at once,
 * whatever the other threads of its parent were doing. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/soft_fixture.h"

/* ---- one child ------------------------------------------------------------------------------ */

/* A child that hangs makes its parent hang, which the fixture then ends. */
static void expect_end(pid_t pid) {
    int status = 0;
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        soft_fail(__FILE__, __LINE__, "the child ended with status 0x%x", (unsigned)status);
}

static size_t called;

static void expect_not_initialized(const char *name, hipError_t found) {
    if (found != hipErrorNotInitialized)
        soft_fail(__FILE__, __LINE__, "%s: found %s", name, hip_error_name(found));
    called++;
}

static void child_can_do_nothing(void) {
    int count;
    FAILS(hipErrorNotInitialized, hip->hipGetDeviceCount(&count));
    FAILS(hipErrorNotInitialized, hip->hipGetLastError());
    FAILS(hipErrorNotInitialized, hip->hipDeviceReset());
    soft_call_everything(NULL, expect_not_initialized);
    MUST(called > 400);
    MUST(!strcmp(hip->hipGetErrorName(hipErrorNotInitialized), "hipErrorNotInitialized"));
    hip->__hipRegisterFunction(NULL, "stub", NULL, "kernel", 0, NULL, NULL, NULL, NULL, NULL);
    soft_set_threads(1);
    soft_tag(1);
}

static bool fork_after_the_start(void) {
    int *p = soft_device_ints(4);
    soft_store(NULL, p, 7, 0);
    pid_t pid = fork();
    if (pid == 0) {
        child_can_do_nothing();
        pid_t again = fork(); /* its children are no better off */
        if (again == 0) {
            FAILS(hipErrorNotInitialized, hip->hipFree(p));
            _exit(0);
        }
        expect_end(again);
        _exit(0);
    }
    expect_end(pid);
    OK(hip->hipDeviceSynchronize());
    MUST(soft_peek(p) == 7);
    OK(hip->hipFree(p));
    return true;
}

static void a_child_forked_after_the_start_is_told_so(void **state) {
    (void)state;
    struct soft_outcome o = soft_run(fork_after_the_start, NULL);
    if (!o.right)
        fail_msg("%s", o.output);
    const char *said = strstr(o.output, "greta: this process was forked after");
    assert_non_null(said);
    assert_non_null(strstr(said, "hipErrorNotInitialized"));
}

/* The parent's fault is not the child's. */
static bool fork_after_a_fault(void) {
    int *p = soft_device_ints(1024);
    soft_touch(NULL, p, 1 << 20, true);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    pid_t pid = fork();
    if (pid == 0) {
        FAILS(hipErrorNotInitialized, hip->hipDeviceSynchronize());
        _exit(0);
    }
    expect_end(pid);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    return true;
}

static void a_fault_of_the_parent_does_not_reach_the_child(void **state) {
    (void)state;
    soft_expect(fork_after_a_fault, NULL);
}

static bool fork_before_the_start(void) {
    pid_t pid = fork();
    int *p = soft_device_ints(1); /* both start a device of their own */
    soft_store(NULL, p, pid == 0 ? 1 : 2, 0);
    OK(hip->hipDeviceSynchronize());
    MUST(soft_peek(p) == (pid == 0 ? 1 : 2));
    OK(hip->hipFree(p));
    if (pid == 0)
        _exit(0);
    expect_end(pid);
    return true;
}

static void a_child_forked_before_the_start_has_a_device(void **state) {
    (void)state;
    soft_expect(fork_before_the_start, NULL);
}

static void end_at_once(void) {
    _exit(0);
}

static void fork_and_return(void *user) {
    pid_t pid = fork();
    if (pid == 0) /* its exit is no place to look for leaks: its parent's threads are gone */
        atexit(end_at_once);
    *(pid_t *)user = pid;
}

/* The child's only thread is the device's, in the middle of a host function. */
static bool fork_in_a_host_function(void) {
    hipStream_t stream = soft_free_stream();
    pid_t pid = -1;
    OK(hip->hipLaunchHostFunc(stream, fork_and_return, &pid));
    OK(hip->hipStreamSynchronize(stream));
    expect_end(pid);
    return true;
}

static void a_host_function_may_fork(void **state) {
    (void)state;
    soft_expect(fork_in_a_host_function, NULL);
}

/* ---- forks among threads -------------------------------------------------------------------- */

enum { THREADS = 3, FORKS = 200, STARTS = 40 };

static _Atomic bool stop;

static void *work(void *unused) {
    (void)unused;
    hipStream_t stream = soft_free_stream();
    while (!atomic_load(&stop)) {
        void *p = NULL;
        OK(hip->hipMalloc(&p, 4096));
        soft_store(stream, p, 1, 0);
        OK(hip->hipMemsetAsync(p, 0, 4096, stream));
        OK(hip->hipStreamSynchronize(stream));
        OK(hip->hipFree(p));
    }
    OK(hip->hipStreamDestroy(stream));
    return NULL;
}

static bool fork_among_threads(void) {
    pthread_t thread[THREADS];
    OK(hip->hipInit(0));
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&thread[i], NULL, work, NULL));
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            void *p;
            FAILS(hipErrorNotInitialized, hip->hipMalloc(&p, 64));
            FAILS(hipErrorNotInitialized, hip->hipDeviceSynchronize());
            _exit(0);
        }
        expect_end(pid);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_join(thread[i], NULL));
    return true;
}

static void forks_among_threads_that_allocate_and_launch(void **state) {
    (void)state;
    soft_expect(fork_among_threads, NULL);
    soft_expect(fork_among_threads, "GRETA_SOFT_SCHEDULE=lazy");
}

/* Registers kernels as a library does that is loaded now, then starts the device. */
static void *begin(void *number) {
    static const struct greta_soft_param none[] = { { "x", 4, 0 } };
    static const struct greta_soft_kernel kernel = { "test_begin", NULL, none, 1 };
    int count = 0;
    for (int i = 0; i < 20; i++) {
        MUST(soft_kernel_register(&kernel) == -1); /* without a function: malformed */
        hip->__hipRegisterFunction(NULL, (char *)number + i, NULL, "test_nothing", 0, NULL, NULL,
                                   NULL, NULL, NULL);
    }
    OK(hip->hipGetDeviceCount(&count));
    return NULL;
}

/* A child of a fork in the middle of the start either has a device or is told that it has none. */
static void grandchild(void) {
    void *p = NULL;
    hipError_t r = hip->hipMalloc(&p, 64);
    MUST(r == hipSuccess || r == hipErrorNotInitialized);
    if (r == hipSuccess)
        OK(hip->hipFree(p));
    _exit(0);
}

static void start_among_threads(void) {
    static char stubs[THREADS][32];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&thread[i], NULL, begin, stubs[i]));
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0)
            grandchild();
        expect_end(pid);
    }
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_join(thread[i], NULL));
    _exit(0);
}

static bool fork_while_threads_start(void) {
    for (int i = 0; i < STARTS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            start_among_threads();
        expect_end(pid);
    }
    return true;
}

static void forks_while_threads_start_the_device(void **state) {
    (void)state;
    if (SOFT_TSAN)
        skip(); /* it ends a process that starts threads after such a fork */
    soft_expect(fork_while_threads_start, NULL);
}

/* ---- signals -------------------------------------------------------------------------------- */

static _Atomic int handled;

static void on_alarm(int signal) {
    int count = 0;
    (void)signal;
    if (hip->hipGetDeviceCount(&count) == hipSuccess)
        handled++;
}

static void start_under_signals(void) {
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
    int count = 0;
    sigemptyset(&action.sa_mask);
    MUST(!sigaction(SIGALRM, &action, NULL));
    MUST(!setitimer(ITIMER_REAL, &often, NULL));
    OK(hip->hipGetDeviceCount(&count));
    MUST(!setitimer(ITIMER_REAL, &never, NULL));
    raise(SIGALRM);
    MUST(handled > 0);
    _exit(0);
}

static bool calls_from_handlers(void) {
    for (int i = 0; i < STARTS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            start_under_signals();
        expect_end(pid);
    }
    return true;
}

static void handlers_of_signals_may_call_hip_during_the_start(void **state) {
    (void)state;
    if (SOFT_TSAN)
        skip(); /* it ends a process whose handlers allocate, as the first HIP call does */
    soft_expect(calls_from_handlers, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_forked_after_the_start_is_told_so),
        cmocka_unit_test(a_fault_of_the_parent_does_not_reach_the_child),
        cmocka_unit_test(a_child_forked_before_the_start_has_a_device),
        cmocka_unit_test(a_host_function_may_fork),
        cmocka_unit_test(forks_among_threads_that_allocate_and_launch),
        cmocka_unit_test(forks_while_threads_start_the_device),
        cmocka_unit_test(handlers_of_signals_may_call_hip_during_the_start),
    };
    return cmocka_run_group_tests_name("soft_fork", tests, soft_fixture_load, NULL);
}
