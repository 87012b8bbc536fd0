/* The map of disjoint ranges, at its edges and against a plain array. */
#include "unit/test.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/rangemap.h"

static int a_value, b_value;

static struct rangemap two_ranges(void) {
    struct rangemap m = { 0 };
    assert_int_equal(rangemap_insert(&m, 0x1000, 0x100, &a_value, NULL), RC_OK);
    assert_int_equal(rangemap_insert(&m, 0x2000, 0x10, &b_value, NULL), RC_OK);
    return m;
}

static void empty_map_finds_nothing(void **state) {
    (void)state;
    struct rangemap m = { 0 };
    assert_null(rangemap_find(&m, 0));
    assert_null(rangemap_first(&m));
    assert_null(rangemap_find_last_before(&m, UINT64_MAX));
    assert_int_equal(rangemap_remove(&m, 0, NULL), RC_RANGE);
    rangemap_clear(&m);
}

static void find_covers_first_to_last_byte(void **state) {
    (void)state;
    struct rangemap m = two_ranges();
    assert_null(rangemap_find(&m, 0xfff));
    assert_ptr_equal(rangemap_find(&m, 0x1000)->value, &a_value);
    assert_ptr_equal(rangemap_find(&m, 0x10ff)->value, &a_value);
    assert_null(rangemap_find(&m, 0x1100));
    assert_ptr_equal(rangemap_find(&m, 0x200f)->value, &b_value);
    assert_null(rangemap_find(&m, 0x2010));
    rangemap_clear(&m);
}

static void neighbours_of_a_gap_are_found(void **state) {
    (void)state;
    struct rangemap m = two_ranges();
    assert_ptr_equal(rangemap_find_first_at_or_after(&m, 0)->value, &a_value);
    assert_ptr_equal(rangemap_find_first_at_or_after(&m, 0x10ff)->value, &a_value);
    assert_ptr_equal(rangemap_find_first_at_or_after(&m, 0x1100)->value, &b_value);
    assert_null(rangemap_find_first_at_or_after(&m, 0x2010));
    assert_null(rangemap_find_last_before(&m, 0x10ff));
    assert_ptr_equal(rangemap_find_last_before(&m, 0x1100)->value, &a_value);
    assert_ptr_equal(rangemap_find_last_before(&m, 0x200f)->value, &a_value);
    assert_ptr_equal(rangemap_find_last_before(&m, 0x2010)->value, &b_value);
    rangemap_clear(&m);
}

static void overlap_is_refused_and_alters_nothing(void **state) {
    (void)state;
    struct rangemap m = two_ranges();
    static const uint64_t bad[][2] = {
        { 0x1000, 0x100 }, /* the same */
        { 0x1080, 1 },     /* inside */
        { 0xfff, 2 },      /* over the start */
        { 0x10ff, 2 },     /* over the end */
        { 0x800, 0x2000 }, /* over both */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = { 0 };
        assert_int_equal(rangemap_insert(&m, bad[i][0], bad[i][1], NULL, &e), RC_RANGE);
        assert_int_not_equal(e.msg[0], '\0');
    }
    assert_int_equal(m.count, 2);
    assert_ptr_equal(rangemap_find(&m, 0x1080)->value, &a_value);
    rangemap_clear(&m);
}

static void touching_ranges_are_allowed(void **state) {
    (void)state;
    struct rangemap m = two_ranges();
    assert_int_equal(rangemap_insert(&m, 0x1100, 0xf00, NULL, NULL), RC_OK);
    assert_int_equal(m.count, 3);
    rangemap_clear(&m);
}

static void empty_and_wrapping_ranges_are_refused(void **state) {
    (void)state;
    struct rangemap m = { 0 };
    assert_int_equal(rangemap_insert(&m, 0x1000, 0, NULL, NULL), RC_RANGE);
    assert_int_equal(rangemap_insert(&m, UINT64_MAX, 2, NULL, NULL), RC_RANGE);
    assert_int_equal(rangemap_insert(&m, 2, UINT64_MAX, NULL, NULL), RC_RANGE);
    assert_int_equal(m.count, 0);
}

static void range_may_end_at_the_top_of_the_address_space(void **state) {
    (void)state;
    struct rangemap m = { 0 };
    assert_int_equal(rangemap_insert(&m, UINT64_MAX - 9, 10, &a_value, NULL), RC_OK);
    struct range *r = rangemap_find(&m, UINT64_MAX);
    assert_non_null(r);
    assert_null(rangemap_next(&m, r));
    assert_int_equal(rangemap_insert(&m, UINT64_MAX, 1, NULL, NULL), RC_RANGE);
    rangemap_clear(&m);
}

static void removal_gives_the_value_back_and_needs_the_start(void **state) {
    (void)state;
    struct rangemap m = two_ranges();
    void *value = NULL;
    assert_int_equal(rangemap_remove(&m, 0x1001, &value), RC_RANGE);
    assert_null(value);
    assert_int_equal(rangemap_remove(&m, 0x1000, &value), RC_OK);
    assert_ptr_equal(value, &a_value);
    assert_null(rangemap_find(&m, 0x1000));
    assert_int_equal(m.count, 1);
    rangemap_clear(&m);
}

static void other_ranges_stay_in_place_when_one_is_removed(void **state) {
    (void)state;
    enum { N = 1000 };
    struct rangemap m = { 0 };
    struct range *at[N];
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(rangemap_insert(&m, i * 16, 16, NULL, NULL), RC_OK);
    for (uint64_t i = 0; i < N; i++)
        at[i] = rangemap_find(&m, i * 16);
    for (uint64_t i = 0; i < N; i += 3)
        assert_int_equal(rangemap_remove(&m, i * 16, NULL), RC_OK);
    for (uint64_t i = 0; i < N; i++)
        assert_ptr_equal(rangemap_find(&m, i * 16 + 15), i % 3 ? at[i] : NULL);
    rangemap_clear(&m);
}

/* Pseudo-random inserts and removals of ranges of 1 to 8 units in a space of SLOTS units, compared
 * with an array that says for every unit which range owns it. */
enum { SLOTS = 4096 };

static void compare_with_owners(const struct rangemap *m, const uint64_t *owner) {
    for (uint64_t i = 0; i < SLOTS; i++) {
        const struct range *r = rangemap_find(m, i);
        assert_int_equal(r ? r->addr + 1 : 0, owner[i]);
    }
    size_t seen = 0;
    uint64_t end = 0;
    for (const struct range *r = rangemap_first(m); r; r = rangemap_next(m, r)) {
        assert_true(r->addr >= end);
        end = r->addr + r->len;
        seen++;
    }
    assert_int_equal(seen, m->count);
}

static void random_operations_agree_with_an_array(void **state) {
    (void)state;
    struct rangemap m = { 0 };
    uint64_t *owner = calloc(SLOTS, sizeof *owner); /* 1 + start of the range that owns a unit */
    assert_non_null(owner);
    uint64_t seed = 42;
    for (int step = 0; step < 20000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t addr = (seed >> 33) % (SLOTS - 8), len = 1 + (seed >> 20) % 8;
        if (seed >> 63) {
            bool is_free = true;
            for (uint64_t i = addr; i < addr + len; i++)
                is_free = is_free && !owner[i];
            enum rc rc = rangemap_insert(&m, addr, len, NULL, NULL);
            assert_int_equal(rc, is_free ? RC_OK : RC_RANGE);
            for (uint64_t i = addr; is_free && i < addr + len; i++)
                owner[i] = addr + 1;
        } else {
            bool is_start = owner[addr] == addr + 1;
            assert_int_equal(rangemap_remove(&m, addr, NULL), is_start ? RC_OK : RC_RANGE);
            for (uint64_t i = addr; is_start && i < SLOTS && owner[i] == addr + 1; i++)
                owner[i] = 0;
        }
        if (step % 1000 == 0)
            compare_with_owners(&m, owner);
    }
    compare_with_owners(&m, owner);
    rangemap_clear(&m);
    free(owner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map_finds_nothing),
        cmocka_unit_test(find_covers_first_to_last_byte),
        cmocka_unit_test(neighbours_of_a_gap_are_found),
        cmocka_unit_test(overlap_is_refused_and_alters_nothing),
        cmocka_unit_test(touching_ranges_are_allowed),
        cmocka_unit_test(empty_and_wrapping_ranges_are_refused),
        cmocka_unit_test(range_may_end_at_the_top_of_the_address_space),
        cmocka_unit_test(removal_gives_the_value_back_and_needs_the_start),
        cmocka_unit_test(other_ranges_stay_in_place_when_one_is_removed),
        cmocka_unit_test(random_operations_agree_with_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
