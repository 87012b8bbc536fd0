/* Host functions, and progress: whatever the schedule, a program that is right comes to its end. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "support/soft_fixture.h"

enum { SLOW = 300 }; /* microseconds */

/* ---- order --------------------------------------------------------------------------------- */

struct note {
    const int *from;
    int seen;
    pthread_t thread;
    hipStream_t stream;
    hipError_t status;
    _Atomic int calls;
};

static void take_note(void *user) {
    struct note *n = user;
    n->seen = *n->from;
    n->thread = pthread_self();
    atomic_fetch_add(&n->calls, 1);
}

static void take_note_as_callback(hipStream_t stream, hipError_t status, void *user) {
    struct note *n = user;
    n->stream = stream;
    n->status = status;
    take_note(user);
}

static bool host_functions_between_kernels(void) {
    hipStream_t s = soft_free_stream();
    int *p = soft_pinned_ints(1);
    struct note note[6];
    memset(note, 0, sizeof note);
    for (int i = 0; i < 6; i++) {
        note[i].from = p;
        soft_store(s, p, i + 1, SLOW / 6);
        if (i % 2)
            OK(hip->hipLaunchHostFunc(s, take_note, &note[i]));
        else
            OK(hip->hipStreamAddCallback(s, take_note_as_callback, &note[i], 0));
    }
    OK(hip->hipStreamSynchronize(s));
    for (int i = 0; i < 6; i++) {
        MUST(atomic_load(&note[i].calls) == 1);
        MUST(!pthread_equal(note[i].thread, pthread_self()));
        if (i % 2 == 0)
            MUST(note[i].stream == s && note[i].status == hipSuccess);
        if (note[i].seen != i + 1)
            return false;
    }
    return true;
}

static void set_seven(void *user) {
    usleep(SLOW);
    *(int *)user = 7;
}

static bool kernel_behind_a_host_function(void) {
    hipStream_t s = soft_free_stream();
    int *p = soft_pinned_ints(2);
    OK(hip->hipLaunchHostFunc(s, set_seven, p));
    soft_move(s, p + 1, p, 0);
    OK(hip->hipStreamSynchronize(s));
    return p[1] == 7;
}

static void set_seven_unsynchronised(void *user) {
    soft_racy_store(user, 7);
}

static bool look_before_the_host_function_ran(void) {
    int *p = soft_pinned_ints(1);
    OK(hip->hipLaunchHostFunc(soft_free_stream(), set_seven_unsynchronised, p));
    return soft_racy_load(p) == 7;
}

/* In the default stream, host functions take part in its rules. */
static bool host_function_in_the_default_stream(void) {
    hipStream_t s = soft_blocking_stream();
    int *p = soft_pinned_ints(2);
    OK(hip->hipLaunchHostFunc(NULL, set_seven, p));
    soft_move(s, p + 1, p, 0);
    OK(hip->hipStreamSynchronize(s));
    return p[1] == 7;
}

static void host_functions_run_in_stream_order_on_another_thread(void **state) {
    (void)state;
    soft_right(host_functions_between_kernels);
    soft_right(kernel_behind_a_host_function);
    soft_right(host_function_in_the_default_stream);
    soft_wrong(look_before_the_host_function_ran);
}

static bool bad_host_functions(void) {
    FAILS(hipErrorInvalidValue, hip->hipLaunchHostFunc(NULL, NULL, NULL));
    FAILS(hipErrorInvalidValue, hip->hipStreamAddCallback(NULL, NULL, NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipStreamAddCallback(NULL, take_note_as_callback, NULL, 1));
    OK(hip->hipDeviceSynchronize());
    return true;
}

static void a_missing_host_function_is_refused(void **state) {
    (void)state;
    soft_expect(bad_host_functions, NULL);
}

/* ---- host functions that block ------------------------------------------------------------- */

static bool work_beside_a_blocked_host_function(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *out = soft_pinned_ints(2);
    struct soft_gate gate = { 0 };
    soft_gate_close(&gate, a);
    soft_store(a, out, 1, 0);
    for (int i = 1; i <= 10; i++)
        soft_store(b, out + 1, i, 0);
    OK(hip->hipStreamSynchronize(b));
    MUST(out[1] == 10);
    MUST(__atomic_load_n(out, __ATOMIC_RELAXED) == 0); /* behind the gate */
    soft_gate_open(&gate);
    OK(hip->hipStreamSynchronize(a));
    return out[0] == 1;
}

static void a_blocked_host_function_blocks_its_stream_only(void **state) {
    (void)state;
    soft_right_waiting(work_beside_a_blocked_host_function);
}

/* Each waits until all have come: they need a thread each. */
enum { GUESTS = 12 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t all;
    int come;
} meeting = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

static void meet(void *unused) {
    (void)unused;
    pthread_mutex_lock(&meeting.lock);
    if (++meeting.come == GUESTS)
        pthread_cond_broadcast(&meeting.all);
    while (meeting.come < GUESTS)
        pthread_cond_wait(&meeting.all, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
}

static bool host_functions_meet(void) {
    hipStream_t s[GUESTS];
    for (int i = 0; i < GUESTS; i++)
        s[i] = soft_free_stream();
    for (int i = 0; i < GUESTS; i++)
        OK(hip->hipLaunchHostFunc(s[i], meet, NULL));
    OK(hip->hipDeviceSynchronize());
    return meeting.come == GUESTS;
}

/* Eager and random wait a while at every submission that does not run at once. */
static void host_functions_may_wait_for_each_other(void **state) {
    (void)state;
    soft_right_with(host_functions_meet, NULL, 32);
}

/* ---- kernels that wait for the host -------------------------------------------------------- */

static bool set_the_flag_after_waiting_for_another_stream(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *flag = soft_pinned_ints(2), *out = soft_pinned_ints(1);
    soft_spin(a, flag, flag + 1);
    soft_store(b, out, 7, 0);
    OK(hip->hipStreamSynchronize(b));
    MUST(*out == 7);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(hip->hipStreamSynchronize(a));
    return flag[1] == 1;
}

/* Polling does not lend the device a thread: it has to find one itself. */
static bool set_the_flag_after_polling_another_stream(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *flag = soft_pinned_ints(2), *out = soft_pinned_ints(1);
    hipError_t r;
    soft_spin(a, flag, flag + 1);
    soft_store(b, out, 7, 0);
    while ((r = hip->hipStreamQuery(b)) == hipErrorNotReady)
        usleep(50);
    OK(r);
    MUST(*out == 7);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(hip->hipStreamSynchronize(a));
    return flag[1] == 1;
}

static bool set_the_flag_from_another_stream(void) {
    hipStream_t a = soft_free_stream(), b = soft_free_stream();
    int *flag = soft_pinned_ints(2);
    soft_spin(a, flag, flag + 1);
    OK(hip->hipMemsetAsync(flag, 1, sizeof *flag, b));
    OK(hip->hipDeviceSynchronize());
    return flag[1] == 1;
}

static void a_kernel_that_waits_for_the_host_does_not_stop_other_streams(void **state) {
    (void)state;
    soft_right_waiting(set_the_flag_after_waiting_for_another_stream);
    soft_right_waiting(set_the_flag_after_polling_another_stream);
}

/* A kernel waits for a flag that another stream's fill sets. */
static void kernels_of_two_streams_run_at_the_same_time(void **state) {
    (void)state;
    if (!SOFT_TSAN) /* the kernel reads with an atomic what the fill writes without */
        soft_right_waiting(set_the_flag_from_another_stream);
}

/* ---- programs that make no call ------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
} signal_box = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };

static void signal_the_program(void *unused) {
    (void)unused;
    pthread_mutex_lock(&signal_box.lock);
    signal_box.done = true;
    pthread_cond_signal(&signal_box.changed);
    pthread_mutex_unlock(&signal_box.lock);
}

static bool wait_for_own_condition(void) {
    hipStream_t s = soft_free_stream();
    int *out = soft_pinned_ints(1);
    soft_store(s, out, 7, SLOW);
    OK(hip->hipLaunchHostFunc(s, signal_the_program, NULL));
    pthread_mutex_lock(&signal_box.lock);
    while (!signal_box.done)
        pthread_cond_wait(&signal_box.changed, &signal_box.lock);
    pthread_mutex_unlock(&signal_box.lock);
    return *out == 7;
}

static bool watch_pinned_memory(void) {
    int *flag = soft_pinned_ints(2);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE); /* the kernel need not wait */
    soft_spin(soft_free_stream(), flag, flag + 1);
    while (!__atomic_load_n(flag + 1, __ATOMIC_RELAXED))
        usleep(100);
    return true;
}

/* Held work is let go after a second without calls, so run many at a time. */
static void a_program_that_makes_no_hip_call_still_gets_its_work_done(void **state) {
    (void)state;
    soft_right_with(wait_for_own_condition, NULL, 64);
    soft_right_with(watch_pinned_memory, NULL, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_functions_run_in_stream_order_on_another_thread),
        cmocka_unit_test(a_missing_host_function_is_refused),
        cmocka_unit_test(a_blocked_host_function_blocks_its_stream_only),
        cmocka_unit_test(host_functions_may_wait_for_each_other),
        cmocka_unit_test(a_kernel_that_waits_for_the_host_does_not_stop_other_streams),
        cmocka_unit_test(kernels_of_two_streams_run_at_the_same_time),
        cmocka_unit_test(a_program_that_makes_no_hip_call_still_gets_its_work_done),
    };
    return cmocka_run_group_tests_name("soft_order_host", tests, soft_fixture_load, NULL);
}
