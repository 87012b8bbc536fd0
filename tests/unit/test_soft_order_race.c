/* Races between two streams that the host waits for together. A program that forgets the event
 * usually waits for everything at the end, so that nothing but the order among the streams is left
 * to show it: lazy runs the stream that got its work last first. */
#include "test.h"

#include "support/soft_fixture.h"

/* How the program waits at its end. */
typedef void (*wait_fn)(int *device, int *out);

static void by_device_synchronize(int *device, int *out) {
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipMemcpy(out, device, sizeof *out, hipMemcpyDeviceToHost));
}
static void by_memcpy(int *device, int *out) {
    OK(hip->hipMemcpy(out, device, sizeof *out, hipMemcpyDeviceToHost));
}
static void by_default_stream(int *device, int *out) {
    OK(hip->hipStreamSynchronize(NULL));
    *out = soft_peek(device);
}
static void by_free(int *device, int *out) {
    OK(hip->hipFree(soft_device_ints(1)));
    *out = soft_peek(device);
}
static void by_event_in_the_default_stream(int *device, int *out) {
    hipEvent_t e = soft_event();
    OK(hip->hipEventRecord(e, NULL));
    OK(hip->hipEventSynchronize(e));
    *out = soft_peek(device);
}

/* a writes x, b reads it. */
static bool read_after_write(wait_fn wait, bool ordered) {
    hipStream_t a = soft_blocking_stream(), b = soft_blocking_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2), out = 0;
    soft_store(a, x, 7, 0);
    OK(hip->hipEventRecord(e, a));
    if (ordered)
        OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_move(b, x + 1, x, 0);
    wait(x + 1, &out);
    return out == 7;
}

/* a reads x, then b overwrites it. */
static bool write_after_read(wait_fn wait, bool ordered) {
    hipStream_t a = soft_blocking_stream(), b = soft_blocking_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(2), out = 0;
    soft_store(a, x, 7, 0);
    OK(hip->hipStreamSynchronize(a));
    soft_move(a, x + 1, x, 0);
    OK(hip->hipEventRecord(e, a));
    if (ordered)
        OK(hip->hipStreamWaitEvent(b, e, 0));
    soft_store(b, x, 8, 0);
    wait(x + 1, &out);
    return out == 7;
}

/* a and then b write x. */
static bool write_after_write(wait_fn wait, bool ordered) {
    hipStream_t a = soft_blocking_stream(), b = soft_blocking_stream();
    hipEvent_t e = soft_event();
    int *x = soft_device_ints(1), out = 0;
    soft_store(a, x, 6, 0);
    OK(hip->hipEventRecord(e, a));
    if (ordered)
        OK(hip->hipStreamWaitEvent(b, e, 0));
    OK(hip->hipMemsetAsync(x, 7, sizeof *x, b));
    wait(x, &out);
    return out == 0x07070707;
}

/* A pipeline of three stages, many rounds: the middle one forgets to wait. */
static bool pipeline(wait_fn wait, bool ordered) {
    enum { ROUNDS = 10 };
    hipStream_t s[3] = { soft_blocking_stream(), soft_blocking_stream(), soft_blocking_stream() };
    hipEvent_t e[2] = { soft_event(), soft_event() };
    int *x = soft_device_ints(3 * ROUNDS), out = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int *at = x + 3 * i;
        soft_store(s[0], at, i + 1, 0);
        OK(hip->hipEventRecord(e[0], s[0]));
        if (ordered)
            OK(hip->hipStreamWaitEvent(s[1], e[0], 0));
        soft_move(s[1], at + 1, at, 0);
        OK(hip->hipEventRecord(e[1], s[1]));
        OK(hip->hipStreamWaitEvent(s[2], e[1], 0));
        soft_move(s[2], at + 2, at + 1, 0);
    }
    wait(x + 3 * ROUNDS - 1, &out);
    return out == ROUNDS;
}

#define ENDS(X, race)                                                                              \
    X(race, by_device_synchronize)                                                                 \
    X(race, by_memcpy)                                                                             \
    X(race, by_default_stream)                                                                     \
    X(race, by_free)                                                                               \
    X(race, by_event_in_the_default_stream)

/* The programs, with every end, and the tests: one right program per race, and all wrong ones. */
#define DECLARE(race, wait)                                                                        \
    static bool race##_raced_##wait(void) {                                                        \
        return race(wait, false);                                                                  \
    }
#define RUN(race, wait) soft_wrong(race##_raced_##wait);
#define RACE(test, race)                                                                           \
    static bool race##_ordered(void) {                                                             \
        return race(by_device_synchronize, true);                                                  \
    }                                                                                              \
    ENDS(DECLARE, race)                                                                            \
    static void test(void **state) {                                                               \
        (void)state;                                                                               \
        soft_right(race##_ordered);                                                                \
        ENDS(RUN, race)                                                                            \
    }

RACE(a_read_that_does_not_wait_for_the_write, read_after_write)
RACE(a_write_that_does_not_wait_for_the_read, write_after_read)
RACE(a_write_that_does_not_wait_for_the_write, write_after_write)
RACE(a_pipeline_that_forgets_one_wait, pipeline)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_does_not_wait_for_the_write),
        cmocka_unit_test(a_write_that_does_not_wait_for_the_read),
        cmocka_unit_test(a_write_that_does_not_wait_for_the_write),
        cmocka_unit_test(a_pipeline_that_forgets_one_wait),
    };
    return cmocka_run_group_tests_name("soft_order_race", tests, soft_fixture_load, NULL);
}
