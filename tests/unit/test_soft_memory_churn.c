/* Allocating and freeing for ever: addresses come round again, and neither time nor memory grow. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/soft_fixture.h"

enum { KEPT = 3 };
static const size_t large = 64u << 20; /* with its guard, 2,048 of them fill the device's range */

static void expect_apart(const char *p, size_t bytes, const char *q, size_t other) {
    MUST(p + bytes + (64 << 10) <= q || q + other + (64 << 10) <= p);
}

/* Two rounds and more of the whole range of addresses, past blocks that stay. */
static bool go_round_the_range(void) {
    char *kept[KEPT], *p = NULL;
    unsigned rounds = 0;
    for (int i = 0; i < 6000; i++) {
        char *last = p;
        if (i % 700 == 0 && i / 700 < KEPT) {
            OK(hip->hipMalloc((void **)&kept[i / 700], 1000));
            OK(hip->hipMemset(kept[i / 700], i / 700 + 1, 1000));
        }
        OK(hip->hipMalloc((void **)&p, large));
        MUST(p != last); /* a freed address rests */
        rounds += last && p < last;
        for (int k = 0; k < KEPT && k <= i / 700; k++)
            expect_apart(p, large, kept[k], 1000);
        OK(hip->hipFree(p));
        FAILS(hipErrorInvalidValue, hip->hipFree(p));
    }
    MUST(rounds >= 2);
    for (int k = 0; k < KEPT; k++) {
        unsigned char bytes[1000];
        OK(hip->hipMemcpy(bytes, kept[k], sizeof bytes, hipMemcpyDeviceToHost));
        for (size_t i = 0; i < sizeof bytes; i++)
            MUST(bytes[i] == k + 1);
        OK(hip->hipFree(kept[k]));
    }
    return true;
}

static void addresses_come_round_past_what_is_alive(void **state) {
    (void)state;
    if (SOFT_TSAN)
        skip(); /* its device has a smaller range */
    soft_expect(go_round_the_range, "GRETA_SOFT_MEMORY=1G");
    soft_expect(go_round_the_range, "GRETA_SOFT_MEMORY=1G GRETA_SOFT_CHECK=off");
}

/* Pages of the process in memory, and of its page tables. */
static long resident(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0, n;
    MUST(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &n) == 1 || sscanf(line, "VmPTE: %ld", &n) == 1)
            kib += n;
    fclose(f);
    return kib;
}

static void churn(int pairs) {
    void *p;
    for (int i = 0; i < pairs; i++) {
        OK(hip->hipMalloc(&p, 64 + (size_t)i % 4096));
        OK(hip->hipMemset(p, 1, 64));
        OK(hip->hipFree(p));
    }
}

/* The history of freed blocks has its limit after 65,536. */
static bool remember_no_more_than_some(void) {
    churn(70000);
    long before = resident();
    churn(70000);
    long after = resident();
    if (after > before + 2048)
        soft_fail(__FILE__, __LINE__, "from %ld to %ld KiB", before, after);
    return true;
}

static void the_history_of_freed_blocks_is_bounded(void **state) {
    (void)state;
    if (SOFT_ASAN || SOFT_TSAN)
        skip(); /* they keep freed memory on purpose */
    soft_expect(remember_no_more_than_some, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_come_round_past_what_is_alive),
        cmocka_unit_test(the_history_of_freed_blocks_is_bounded),
    };
    return cmocka_run_group_tests_name("soft_memory_churn", tests, soft_fixture_load, NULL);
}
