/* Schedules are reproducible: the same seed gives the same order, other seeds give others. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "support/soft_fixture.h"

enum { STREAMS = 5, EACH = 6, EVENTS = STREAMS * EACH };

/* Writes its name after those that ran before it. */
static void run_sign(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    int *list = *(int **)args[0];
    list[++list[0]] = *(int *)args[1];
}
static const struct greta_soft_param params[] = { { "list", sizeof(void *), GRETA_SOFT_POINTER },
                                                  { "name", sizeof(int), GRETA_SOFT_VALUE } };
static const struct greta_soft_kernel sign = { "test_sign", run_sign, params, 2 };

/* Work in five streams and a few events between them; prints the order in which it ran. */
static bool print_order(void) {
    hipStream_t s[STREAMS];
    int *list = soft_pinned_ints(EVENTS + 1);
    dim3 one = { 1, 1, 1 };
    soft_kernel_add(&sign, &sign);
    for (int i = 0; i < STREAMS; i++)
        s[i] = soft_stream(i % 2 ? hipStreamNonBlocking : hipStreamDefault);
    for (int j = 0; j < EACH; j++)
        for (int i = 0; i < STREAMS; i++) {
            int name = 10 * i + j;
            OK(hip->hipLaunchKernel(&sign, one, one, (void *[]){ &list, &name }, 0, s[i]));
            if (j == 2 && i < STREAMS - 1) {
                hipEvent_t e = soft_event();
                OK(hip->hipEventRecord(e, s[i]));
                OK(hip->hipStreamWaitEvent(s[i + 1], e, 0));
            }
        }
    OK(hip->hipDeviceSynchronize());
    MUST(list[0] == EVENTS);
    for (int i = 1; i <= EVENTS; i++)
        printf("%02d ", list[i]);
    return true;
}

static void order_under(const char *schedule, char order[256]) {
    char settings[80];
    snprintf(settings, sizeof settings, "GRETA_SOFT_SCHEDULE=%s", schedule);
    struct soft_outcome o = soft_run(print_order, settings);
    if (!o.right)
        fail_msg("%s: %s", settings, o.output);
    snprintf(order, 256, "%.255s", o.output);
}

/* An operation that does not end in 50 ms is left behind, so that a machine that stops a thread for
 * that long changes the order: a few such runs are forgiven. */
static void the_same_seed_gives_the_same_order(void **state) {
    (void)state;
    enum { SEEDS = 12, AGAIN = 3, FORGIVEN = 3 };
    char order[SEEDS][256], again[256], schedule[32];
    unsigned different = 0, forgiven = 0;
    for (int i = 0; i < SEEDS; i++) {
        snprintf(schedule, sizeof schedule, "random:%d", i);
        order_under(schedule, order[i]);
        for (int j = 0; j < AGAIN; j++) {
            order_under(schedule, again);
            if (strcmp(again, order[i]) != 0 && ++forgiven > FORGIVEN)
                assert_string_equal(again, order[i]);
        }
        different += i > 0 && strcmp(order[i], order[i - 1]) != 0;
    }
    assert_true(different > SEEDS / 2);
}

static void lazy_always_gives_the_same_order(void **state) {
    (void)state;
    char order[256], again[256];
    order_under("lazy", order);
    for (int i = 0; i < 10; i++) {
        order_under("lazy", again);
        assert_string_equal(again, order);
    }
}

/* Whatever the order is, it keeps the rules. */
static bool is_permitted(const char *order) {
    int at[50], n = 0;
    for (const char *p = order; *p; p += 3, n++)
        at[(p[0] - '0') * 10 + (p[1] - '0')] = n;
    for (int i = 0; i < STREAMS; i++)
        for (int j = 1; j < EACH; j++)
            if (at[10 * i + j] < at[10 * i + j - 1])
                return false;
    for (int i = 0; i < STREAMS - 1; i++) /* behind the event */
        if (at[10 * (i + 1) + 3] < at[10 * i + 2])
            return false;
    return n == EVENTS;
}

static void every_order_is_one_that_hip_permits(void **state) {
    (void)state;
    static const char *const schedules[] = { "eager",
                                             "lazy",
                                             "random:0",
                                             "random:1",
                                             "random:2",
                                             "random:3",
                                             "random:18446744073709551615" };
    char order[256];
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        order_under(schedules[i], order);
        if (!is_permitted(order))
            fail_msg("%s: %s", schedules[i], order);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_order),
        cmocka_unit_test(lazy_always_gives_the_same_order),
        cmocka_unit_test(every_order_is_one_that_hip_permits),
    };
    return cmocka_run_group_tests_name("soft_order_seed", tests, soft_fixture_load, NULL);
}
