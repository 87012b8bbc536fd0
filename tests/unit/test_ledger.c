/* The allocation ledger: reuse of addresses, frees of every kind, names, limits, threads. */
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/ledger.h"

static const struct ledger_act maker = { .api = "hipMalloc", .event = 1 };
static const struct ledger_act freer = { .api = "hipFree", .event = 2 };
static const struct ledger_act other = { .api = "hipFreeAsync", .event = 3 };

static int setup(void **state) {
    ledger *l = NULL;
    assert_int_equal(ledger_open(&l, NULL), RC_OK);
    *state = l;
    return 0;
}

static int teardown(void **state) {
    ledger *l = *state;
    ledger_close(&l);
    assert_null(l);
    return 0;
}

static void add(ledger *l, uint64_t addr, uint64_t size, enum ledger_family family, int device) {
    struct ledger_entry what = {
        .addr = addr, .size = size, .family = family, .device = device, .made = maker
    };
    assert_int_equal(ledger_add(l, &what, NULL), RC_OK);
}

/* Frees as a successful runtime would; returns what the ledger said. */
static enum ledger_free_kind release(ledger *l, uint64_t addr, const struct ledger_act *who) {
    struct ledger_free f = ledger_free_begin(l, addr);
    ledger_free_end(l, &f, true, who);
    return f.kind;
}

static struct ledger_entry find(ledger *l, uint64_t addr) {
    readlock_token t = ledger_read_begin(l);
    const struct ledger_entry *entry = ledger_at(l, addr);
    struct ledger_entry copy = entry ? *entry : (struct ledger_entry){ 0 };
    ledger_read_end(t);
    return copy;
}

static struct ledger_entry find_freed(ledger *l, uint64_t addr) {
    readlock_token t = ledger_read_begin(l);
    const struct ledger_entry *entry = ledger_freed_at(l, addr);
    struct ledger_entry copy = entry ? *entry : (struct ledger_entry){ 0 };
    ledger_read_end(t);
    return copy;
}

static const char *find_name(ledger *l, uint64_t addr) {
    static char text[LEDGER_NAME_MAX];
    readlock_token t = ledger_read_begin(l);
    const struct ledger_name *name = ledger_name_at(l, addr);
    strcpy(text, name ? name->text : "");
    ledger_read_end(t);
    return text;
}

static void every_family_has_a_text_and_a_side(void **state) {
    (void)state;
    for (int f = 0; f < LEDGER_FAMILY_COUNT; f++) {
        assert_true(strlen(ledger_family_text((enum ledger_family)f)) > 3);
        assert_in_range(ledger_family_side((enum ledger_family)f), LEDGER_SIDE_DEVICE,
                        LEDGER_SIDE_NONE);
    }
    assert_string_equal(ledger_family_text(LEDGER_FAMILY_COUNT), "?");
}

static void an_allocation_is_found_by_every_address_in_it(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    assert_int_equal(find(l, 0x1000).size, 256);
    assert_int_equal(find(l, 0x10ff).serial, 1);
    assert_int_equal(find(l, 0x1100).serial, 0);
    assert_int_equal(find(l, 0xfff).serial, 0);
    assert_string_equal(find(l, 0x1000).made.api, "hipMalloc");
}

static void ranges_that_wrap_or_are_empty_are_refused(void **state) {
    ledger *l = *state;
    struct ledger_entry what = { .addr = UINT64_MAX - 10, .size = 12, .made = maker };
    assert_int_equal(ledger_add(l, &what, NULL), RC_RANGE);
    what.size = 0;
    assert_int_equal(ledger_add(l, &what, NULL), RC_RANGE);
    what.size = 11; /* ends exactly at the last address */
    assert_int_equal(ledger_add(l, &what, NULL), RC_OK);
    assert_int_equal(find(l, UINT64_MAX).size, 11);
    assert_int_equal(release(l, UINT64_MAX - 10, &freer), LEDGER_FREE_LIVE);
    assert_int_equal(find_freed(l, UINT64_MAX).size, 11);
}

static void a_freed_allocation_says_who_freed_it(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    assert_int_equal(release(l, 0x1000, &freer), LEDGER_FREE_LIVE);
    assert_int_equal(find(l, 0x1000).serial, 0);
    struct ledger_entry old = find_freed(l, 0x1080);
    assert_string_equal(old.freed.api, "hipFree");
    assert_int_equal(old.freed.event, 2);
    assert_int_equal(old.state, LEDGER_FREED);
}

static void freeing_null_is_allowed_and_changes_nothing(void **state) {
    ledger *l = *state;
    assert_int_equal(release(l, 0, &freer), LEDGER_FREE_NULL);
    assert_int_equal(ledger_count(l).unknown_frees, 0);
}

static void a_second_free_is_double_and_names_the_first(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    assert_int_equal(release(l, 0x1000, &freer), LEDGER_FREE_LIVE);
    struct ledger_free f = ledger_free_begin(l, 0x1000);
    assert_int_equal(f.kind, LEDGER_FREE_DOUBLE);
    assert_string_equal(f.entry.freed.api, "hipFree");
    ledger_free_end(l, &f, true, &other);
    assert_string_equal(find_freed(l, 0x1000).freed.api, "hipFree");
    assert_int_equal(ledger_count(l).double_frees, 1);
}

static void a_free_while_another_is_under_way_is_double(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    struct ledger_free first = ledger_free_begin(l, 0x1000);
    struct ledger_free second = ledger_free_begin(l, 0x1000);
    assert_int_equal(first.kind, LEDGER_FREE_LIVE);
    assert_int_equal(second.kind, LEDGER_FREE_DOUBLE);
    ledger_free_end(l, &first, true, &freer);
    assert_int_equal(ledger_count(l).live, 0);
}

static void a_failed_free_leaves_the_allocation_live(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    struct ledger_free f = ledger_free_begin(l, 0x1000);
    assert_int_equal(find(l, 0x1000).state, LEDGER_FREEING);
    ledger_free_end(l, &f, false, &freer);
    assert_int_equal(find(l, 0x1000).state, LEDGER_LIVE);
    assert_int_equal(ledger_count(l).freed, 0);
}

static void freeing_an_interior_pointer_frees_nothing(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    assert_int_equal(release(l, 0x1010, &freer), LEDGER_FREE_INTERIOR);
    assert_int_equal(find(l, 0x1000).state, LEDGER_LIVE);
    assert_int_equal(release(l, 0x9999, &freer), LEDGER_FREE_UNKNOWN);
    assert_int_equal(ledger_count(l).unknown_frees, 1);
}

static void an_address_used_again_is_live_and_not_freed(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    release(l, 0x1000, &freer);
    add(l, 0x1000, 128, LEDGER_DEVICE, 0);
    assert_int_equal(find(l, 0x1000).serial, 2);
    assert_int_equal(find_freed(l, 0x1000).serial, 0);
    /* The old block's tail has no new owner: it is still known as freed. */
    assert_int_equal(find_freed(l, 0x1080).serial, 1);
    assert_string_equal(find_freed(l, 0x10ff).freed.api, "hipFree");
}

static void freed_pieces_on_both_sides_of_a_new_block_are_kept(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 0x300, LEDGER_DEVICE, 0);
    release(l, 0x1000, &freer);
    add(l, 0x1100, 0x100, LEDGER_DEVICE, 0);
    assert_int_equal(find_freed(l, 0x10ff).serial, 1);
    assert_int_equal(find_freed(l, 0x1100).serial, 0);
    assert_int_equal(find_freed(l, 0x1200).serial, 1);
    release(l, 0x1100, &other);
    assert_int_equal(find_freed(l, 0x1100).serial, 2);
    assert_int_equal(find_freed(l, 0x1200).serial, 1);
    assert_int_equal(ledger_count(l).freed_kept, 2);
    /* Covered as a whole: the two old ones are gone, with nothing left over. */
    add(l, 0x1000, 0x300, LEDGER_DEVICE, 0);
    assert_int_equal(ledger_count(l).freed_kept, 0);
}

static void an_address_given_away_during_its_free_belongs_to_the_new_owner(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    struct ledger_free f = ledger_free_begin(l, 0x1000);
    add(l, 0x1000, 256, LEDGER_PINNED, 0); /* another thread's hipMalloc returns first */
    ledger_free_end(l, &f, true, &freer);
    assert_int_equal(find(l, 0x1000).family, LEDGER_PINNED);
    assert_int_equal(find(l, 0x1000).state, LEDGER_LIVE);
    assert_int_equal(ledger_count(l).superseded, 0);
}

static void the_runtime_is_right_about_an_address_it_gives_away_twice(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    add(l, 0x1080, 256, LEDGER_DEVICE, 0);
    assert_int_equal(find(l, 0x1000).serial, 0);
    assert_int_equal(find(l, 0x1080).serial, 2);
    assert_int_equal(find_freed(l, 0x1000).serial, 1);
    assert_int_equal(ledger_count(l).superseded, 1);
    assert_int_equal(ledger_count(l).live_bytes, 256);
}

static void what_was_found_by_asking_never_replaces_what_is_there(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    struct ledger_entry what = {
        .addr = 0x1000, .size = 256, .family = LEDGER_FOUND_DEVICE, .made = maker
    };
    assert_int_equal(ledger_add_found(l, &what, NULL), RC_OK);
    assert_int_equal(find(l, 0x1000).family, LEDGER_DEVICE);
    assert_int_equal(ledger_count(l).made, 1);
}

static void device_reset_ends_that_devices_memory_only(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 256, LEDGER_DEVICE, 0);
    add(l, 0x2000, 256, LEDGER_PINNED, 0);
    add(l, 0x3000, 256, LEDGER_DEVICE, 1);
    struct ledger_act reset = { .api = "hipDeviceReset" };
    assert_int_equal(ledger_free_device(l, 0, &reset), 2);
    assert_int_equal(find(l, 0x3000).state, LEDGER_LIVE);
    assert_int_equal(find(l, 0x3000).serial, 3);
    assert_string_equal(find_freed(l, 0x2000).freed.api, "hipDeviceReset");
}

static void unloading_an_owner_ends_what_lives_in_it(void **state) {
    ledger *l = *state;
    struct ledger_entry what = {
        .addr = 0x1000, .size = 8, .family = LEDGER_GLOBAL, .owner = 77, .made = maker
    };
    assert_int_equal(ledger_add(l, &what, NULL), RC_OK);
    add(l, 0x2000, 8, LEDGER_DEVICE, 0);
    assert_int_equal(ledger_free_owner(l, 0, &freer), 0); /* "no owner" is not an owner */
    assert_int_equal(ledger_free_owner(l, 77, &freer), 1);
    assert_int_equal(ledger_count(l).live, 1);
}

static void names_lie_inside_allocations_and_go_with_them(void **state) {
    ledger *l = *state;
    struct err e = { 0 };
    add(l, 0x1000, 0x100, LEDGER_DEVICE, 0);
    assert_int_equal(ledger_set_name(l, 0x1000, 0x40, "wq", 0, &e), RC_OK);
    assert_int_equal(ledger_set_name(l, 0x1040, 0x40, "wk", 0, &e), RC_OK);
    assert_string_equal(find_name(l, 0x103f), "wq");
    assert_string_equal(find_name(l, 0x1040), "wk");
    assert_string_equal(find_name(l, 0x1080), "");
    assert_int_equal(find(l, 0x1000).names, 2);

    assert_int_equal(ledger_set_name(l, 0x1080, 0x81, "wv", 0, &e), RC_REFUSED);
    assert_string_equal(e.msg,
                        "'wv' (129 bytes at 0x1080) leaves its allocation of 256 bytes at 0x1000");
    assert_int_equal(ledger_set_name(l, 0x5000, 1, "far", 0, &e), RC_REFUSED);
    assert_int_equal(ledger_set_name(l, 0x1030, 0x20, "mid", 0, &e), RC_BUSY);
    assert_string_equal(e.msg, "'mid' (32 bytes at 0x1030) overlaps 'wq' (64 bytes at 0x1000)");
    assert_int_equal(ledger_set_name(l, UINT64_MAX, 2, "wrap", 0, &e), RC_RANGE);
    assert_int_equal(ledger_set_name(l, 0x1000, 0, "empty", 0, &e), RC_RANGE);

    assert_int_equal(ledger_set_name(l, 0x1000, 0x40, "wq2", 0, &e), RC_OK);
    assert_string_equal(find_name(l, 0x1000), "wq2");
    assert_int_equal(find(l, 0x1000).names, 2);
    assert_int_equal(ledger_drop_name(l, 0x1000, &e), RC_OK);
    assert_int_equal(ledger_drop_name(l, 0x1000, &e), RC_RANGE);
    assert_string_equal(find_name(l, 0x1000), "");
    assert_int_equal(find(l, 0x1000).names, 1);

    release(l, 0x1000, &freer);
    add(l, 0x1000, 0x100, LEDGER_DEVICE, 0);
    assert_string_equal(find_name(l, 0x1040), "");
}

static void a_failed_free_keeps_the_names(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 0x100, LEDGER_DEVICE, 0);
    assert_int_equal(ledger_set_name(l, 0x1000, 0x40, "wq", 0, NULL), RC_OK);
    struct ledger_free f = ledger_free_begin(l, 0x1000);
    ledger_free_end(l, &f, false, &freer);
    assert_string_equal(find_name(l, 0x1000), "wq");
}

static void a_long_name_is_cut(void **state) {
    ledger *l = *state;
    char name[1000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    add(l, 0x1000, 0x100, LEDGER_DEVICE, 0);
    assert_int_equal(ledger_set_name(l, 0x1000, 0x40, name, 0, NULL), RC_OK);
    assert_int_equal(strlen(find_name(l, 0x1000)), LEDGER_NAME_MAX - 1);
}

static void the_freed_history_is_bounded_and_counted(void **state) {
    ledger *l = *state;
    const uint64_t extra = 10;
    for (uint64_t i = 0; i < LEDGER_FREED_MAX + extra; i++) {
        add(l, (i + 1) << 12, 64, LEDGER_DEVICE, 0);
        release(l, (i + 1) << 12, &freer);
    }
    struct ledger_counts counts = ledger_count(l);
    assert_int_equal(counts.freed_kept, LEDGER_FREED_MAX);
    assert_int_equal(counts.freed_forgotten, extra);
    assert_int_equal(find_freed(l, 10 << 12).serial, 0);
    assert_int_equal(find_freed(l, 11 << 12).serial, 11);
}

static void neighbours_of_a_stray_address_are_found(void **state) {
    ledger *l = *state;
    add(l, 0x1000, 16, LEDGER_DEVICE, 0);
    add(l, 0x3000, 16, LEDGER_DEVICE, 0);
    readlock_token t = ledger_read_begin(l);
    assert_int_equal(ledger_before(l, 0x2000)->addr, 0x1000);
    assert_int_equal(ledger_at_or_after(l, 0x2000)->addr, 0x3000);
    assert_null(ledger_at_or_after(l, 0x4000));
    ledger_read_end(t);
}

static void sum_sizes(const struct ledger_entry *entry, void *user) {
    *(uint64_t *)user += entry->size;
}

static void every_live_allocation_is_visited(void **state) {
    ledger *l = *state;
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= 10; i++)
        add(l, i << 12, i, LEDGER_DEVICE, 0);
    release(l, 10 << 12, &freer);
    ledger_each(l, sum_sizes, &sum);
    assert_int_equal(sum, 45);
}

static void every_change_moves_the_generation(void **state) {
    ledger *l = *state;
    uint64_t before = ledger_generation(l);
    add(l, 0x1000, 16, LEDGER_DEVICE, 0);
    assert_true(ledger_generation(l) > before);
    before = ledger_generation(l);
    (void)find(l, 0x1000);
    assert_int_equal(ledger_generation(l), before);
}

/* Each thread allocates and frees in a range of its own and looks into all of them. */
struct job {
    ledger *l;
    uint64_t base;
    unsigned wrong;
};

static void *churn(void *arg) {
    struct job *job = arg;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t addr = job->base + (i % 7) * 0x1000;
        struct ledger_entry what = { .addr = addr, .size = 0x1000, .made = maker };
        if (ledger_add(job->l, &what, NULL) != RC_OK)
            job->wrong++;
        (void)ledger_set_name(job->l, addr, 16, "n", 0, NULL);
        job->wrong += find(job->l, addr + 5).addr != addr;
        for (uint64_t peek = 0; peek < 4; peek++) {
            readlock_token t = ledger_read_begin(job->l);
            const struct ledger_entry *entry = ledger_at(job->l, peek << 20);
            job->wrong += entry && (entry->size != 0x1000 || (entry->addr & 0xfff) != 0);
            ledger_read_end(t);
        }
        struct ledger_free f = ledger_free_begin(job->l, addr);
        job->wrong += f.kind != LEDGER_FREE_LIVE;
        ledger_free_end(job->l, &f, true, &freer);
    }
    return NULL;
}

static void four_threads_see_whole_entries(void **state) {
    struct job jobs[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        jobs[i] = (struct job){ *state, (uint64_t)i << 20, 0 };
        jobs[i].base += i == 0 ? 0x100000000 : 0;
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &jobs[i]), 0);
    }
    unsigned wrong = 0;
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        wrong += jobs[i].wrong;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(ledger_count(*state).live, 0);
    assert_int_equal(ledger_count(*state).made, 4 * 3000);
}

#define LEDGER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_a_text_and_a_side),
        LEDGER_TEST(an_allocation_is_found_by_every_address_in_it),
        LEDGER_TEST(ranges_that_wrap_or_are_empty_are_refused),
        LEDGER_TEST(a_freed_allocation_says_who_freed_it),
        LEDGER_TEST(freeing_null_is_allowed_and_changes_nothing),
        LEDGER_TEST(a_second_free_is_double_and_names_the_first),
        LEDGER_TEST(a_free_while_another_is_under_way_is_double),
        LEDGER_TEST(a_failed_free_leaves_the_allocation_live),
        LEDGER_TEST(freeing_an_interior_pointer_frees_nothing),
        LEDGER_TEST(an_address_used_again_is_live_and_not_freed),
        LEDGER_TEST(freed_pieces_on_both_sides_of_a_new_block_are_kept),
        LEDGER_TEST(an_address_given_away_during_its_free_belongs_to_the_new_owner),
        LEDGER_TEST(the_runtime_is_right_about_an_address_it_gives_away_twice),
        LEDGER_TEST(what_was_found_by_asking_never_replaces_what_is_there),
        LEDGER_TEST(device_reset_ends_that_devices_memory_only),
        LEDGER_TEST(unloading_an_owner_ends_what_lives_in_it),
        LEDGER_TEST(names_lie_inside_allocations_and_go_with_them),
        LEDGER_TEST(a_failed_free_keeps_the_names),
        LEDGER_TEST(a_long_name_is_cut),
        LEDGER_TEST(the_freed_history_is_bounded_and_counted),
        LEDGER_TEST(neighbours_of_a_stray_address_are_found),
        LEDGER_TEST(every_live_allocation_is_visited),
        LEDGER_TEST(every_change_moves_the_generation),
        LEDGER_TEST(four_threads_see_whole_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
