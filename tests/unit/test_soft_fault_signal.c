/* Faults and the program's own signals: what the host must not touch, handlers that were there
 * before, and GRETA_SOFT_FAULT=abort. */
#include "test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/soft_fixture.h"

/* ---- the host touches device memory -------------------------------------------------------- */

/* A sanitizer's own handler would turn the signal into an exit. */
static void take_default_action(void) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGILL, SIG_DFL);
}

SOFT_UNCHECKED static int host_read(const void *at) {
    return *(const volatile char *)at;
}
SOFT_UNCHECKED static void host_write(void *at) {
    *(volatile char *)at = 1;
}

static bool host_reads_a_device_pointer(void) {
    take_default_action();
    return host_read(soft_device_ints(1));
}
static bool host_writes_a_device_pointer(void) {
    take_default_action();
    host_write(soft_device_ints(1));
    return true;
}
static bool host_reads_a_freed_managed_block(void) {
    take_default_action();
    int *m = soft_managed_ints(1);
    OK(hip->hipFree(m));
    return host_read(m);
}
static bool host_writes_behind_a_pinned_block(void) {
    take_default_action();
    host_write(soft_pinned_ints(1) + 1);
    return true;
}
static bool host_reads_a_freed_pinned_block(void) {
    take_default_action();
    int *p = soft_pinned_ints(1);
    OK(hip->hipHostFree(p));
    return host_read(p);
}

static bool host_traps(void) {
    take_default_action();
    (void)soft_device_ints(1); /* the device has its handlers */
    __builtin_trap();
}
static bool host_is_sent_a_signal(void) {
    take_default_action();
    (void)soft_device_ints(1);
    return kill(getpid(), SIGSEGV) == 0;
}

static void expect_signal(soft_program program, const char *settings, int signal) {
    struct soft_outcome o = soft_run(program, settings);
    if (!WIFSIGNALED(o.status) || WTERMSIG(o.status) != signal)
        fail_msg("expected the program to end by signal %d, found status 0x%x: %s", signal,
                 (unsigned)o.status, o.output);
}

static void the_host_cannot_touch_device_memory(void **state) {
    (void)state;
    expect_signal(host_reads_a_device_pointer, NULL, SIGSEGV);
    expect_signal(host_writes_a_device_pointer, NULL, SIGSEGV);
    expect_signal(host_reads_a_freed_managed_block, NULL, SIGSEGV);
    expect_signal(host_writes_behind_a_pinned_block, NULL, SIGSEGV);
    expect_signal(host_reads_a_freed_pinned_block, NULL, SIGSEGV);
}

static void signals_of_the_hosts_own_end_it(void **state) {
    (void)state;
    expect_signal(host_traps, NULL, SIGILL);
    expect_signal(host_is_sent_a_signal, NULL, SIGSEGV);
}

/* ---- the program's handlers ---------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t caught;
static void *volatile caught_at;

static void catch_with_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught = signal;
    caught_at = info->si_addr;
    siglongjmp(back, 1);
}

static void catch_plain(int signal) {
    caught = signal;
    siglongjmp(back, 1);
}

/* Runs fn so that a signal's handler comes back here; the signal, or 0. */
static int caught_in(void (*fn)(void *), void *user) {
    caught = 0;
    caught_at = NULL;
    if (sigsetjmp(back, 1) == 0)
        fn(user);
    return caught;
}

static void read_byte(void *at) {
    (void)host_read(at);
}

/* The device's own faults must not reach the program's handler, before or after its own. */
static void expect_device_fault(void) {
    soft_touch(NULL, soft_device_ints(1), 4, true);
    FAILS(hipErrorIllegalAddress, hip->hipDeviceSynchronize());
    OK(hip->hipDeviceReset());
}

static void *unmapped_page(void) {
    void *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    return p;
}

static bool handler_with_info(void) {
    struct sigaction a = { .sa_sigaction = catch_with_info, .sa_flags = SA_SIGINFO };
    MUST(sigaction(SIGSEGV, &a, NULL) == 0);
    char *bad = unmapped_page();
    for (int i = 0; i < 3; i++) {
        expect_device_fault();
        MUST(caught == 0);
        MUST(caught_in(read_byte, bad + 5) == SIGSEGV);
        MUST(caught_at == bad + 5);
        int *device = soft_device_ints(1);
        MUST(caught_in(read_byte, device) == SIGSEGV);
        MUST(caught_at == device);
        caught = 0;
    }
    return true;
}

static bool plain_handler(void) {
    struct sigaction a = { .sa_handler = catch_plain };
    MUST(sigaction(SIGSEGV, &a, NULL) == 0);
    char *bad = unmapped_page();
    for (int i = 0; i < 3; i++) {
        expect_device_fault();
        MUST(caught_in(read_byte, bad) == SIGSEGV);
        caught = 0;
    }
    return true;
}

static bool bus_error_handler(void) {
    struct sigaction a = { .sa_sigaction = catch_with_info, .sa_flags = SA_SIGINFO };
    MUST(sigaction(SIGBUS, &a, NULL) == 0);
    expect_device_fault();
    int file = memfd_create("short", MFD_CLOEXEC);
    char *behind_the_end = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    MUST(file >= 0 && behind_the_end != MAP_FAILED);
    MUST(caught_in(read_byte, behind_the_end) == SIGBUS);
    return true;
}

/* Stack overflow: the handler needs its own stack, and gets it. */
SOFT_UNCHECKED static int recurse(int n) {
    volatile char frame[4096];
    frame[0] = (char)n;
    return n == 0 ? 0 : recurse(n - 1) + frame[0];
}
static void overflow_the_stack(void *unused) {
    (void)unused;
    recurse(1 << 24);
}

static bool handler_on_its_own_stack(void) {
    stack_t own = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
    struct sigaction a = { .sa_sigaction = catch_with_info, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    MUST(own.ss_sp && sigaltstack(&own, NULL) == 0);
    MUST(sigaction(SIGSEGV, &a, NULL) == 0);
    expect_device_fault();
    MUST(caught_in(overflow_the_stack, NULL) == SIGSEGV);
    expect_device_fault();
    return true;
}

static void handlers_of_the_program_still_get_their_own_faults(void **state) {
    (void)state;
    soft_expect(handler_with_info, NULL);
    soft_expect(handler_with_info, "GRETA_SOFT_SCHEDULE=lazy"); /* kernels on the waiting thread */
    soft_expect(plain_handler, NULL);
    soft_expect(bus_error_handler, NULL);
    if (!SOFT_ASAN && !SOFT_TSAN) /* they keep stacks of their own */
        soft_expect(handler_on_its_own_stack, NULL);
}

static bool own_fault_without_handler(void) {
    take_default_action();
    expect_device_fault();
    return host_read(unmapped_page());
}

static bool host_function_faults(void) {
    take_default_action();
    OK(hip->hipLaunchHostFunc(NULL, read_byte, unmapped_page()));
    (void)hip->hipDeviceSynchronize();
    return true;
}

static void a_fault_of_the_programs_own_code_is_no_device_fault(void **state) {
    (void)state;
    expect_signal(own_fault_without_handler, NULL, SIGSEGV);
    expect_signal(host_function_faults, NULL, SIGSEGV);
    expect_signal(host_function_faults, "GRETA_SOFT_SCHEDULE=lazy", SIGSEGV);
}

/* ---- abort --------------------------------------------------------------------------------- */

static void say_fault(const struct greta_soft_fault *f, void *user) {
    (void)user;
    fprintf(stderr, "observer: %s %llx\n", f->operation, (unsigned long long)f->address);
}

static bool fault_and_wait(void) {
    soft_observe_faults(say_fault, NULL);
    int *x = soft_device_ints(1);
    fprintf(stderr, "block at %p\n", (void *)x);
    soft_touch(NULL, x, 4, true);
    (void)hip->hipDeviceSynchronize();
    return true;
}

static void abort_mode_dies_as_rocr_does(void **state) {
    (void)state;
    static const char *const schedules[] = { "fast", "eager", "lazy", "random:1" };
    for (size_t i = 0; i < 4; i++) {
        char settings[80], expected[120];
        snprintf(settings, sizeof settings, "GRETA_SOFT_FAULT=abort GRETA_SOFT_SCHEDULE=%s",
                 schedules[i]);
        struct soft_outcome o = soft_run(fault_and_wait, settings);
        assert_true(WIFSIGNALED(o.status));
        assert_int_equal(WTERMSIG(o.status), SIGABRT);
        void *block;
        const char *line = strstr(o.output, "block at ");
        assert_non_null(line);
        assert_int_equal(sscanf(line, "block at %p", &block), 1);
        snprintf(expected, sizeof expected, " on address 0x%llx. Reason: ",
                 ((unsigned long long)(uintptr_t)block + 4) & ~4095ull);
        assert_non_null(strstr(o.output, "Memory access fault by GPU node-1 (Agent handle: 0x"));
        assert_non_null(strstr(o.output, expected));
        /* The observer was told first. */
        const char *observer = strstr(o.output, "observer: test_touch ");
        assert_non_null(observer);
        assert_true(observer < strstr(o.output, "Memory access fault"));
    }
}

static bool no_fault(void) {
    int *x = soft_device_ints(1);
    soft_store(NULL, x, 7, 0);
    FAILS(hipErrorInvalidValue, hip->hipMemcpy(x, &x, 5, hipMemcpyHostToDevice));
    return hip->hipDeviceSynchronize() == hipSuccess && soft_peek(x) == 7;
}

static void abort_mode_leaves_other_errors_alone(void **state) {
    (void)state;
    soft_expect(no_fault, "GRETA_SOFT_FAULT=abort");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_cannot_touch_device_memory),
        cmocka_unit_test(signals_of_the_hosts_own_end_it),
        cmocka_unit_test(handlers_of_the_program_still_get_their_own_faults),
        cmocka_unit_test(a_fault_of_the_programs_own_code_is_no_device_fault),
        cmocka_unit_test(abort_mode_dies_as_rocr_does),
        cmocka_unit_test(abort_mode_leaves_other_errors_alone),
    };
    return cmocka_run_group_tests_name("soft_fault_signal", tests, soft_fixture_load, NULL);
}
