/* The map of who touched which bytes, against a table with a cell for every byte; and what the
 * verdict builds on: vector clocks and the hash table. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "verdict/shadow.h"
#include "verdict/table.h"
#include "verdict/vclock.h"

/* ---- one access at a time ------------------------------------------------------------------- */

static bool yes(const struct shadow_mark *other, void *user) {
    (void)other, (void)user;
    return true;
}

static bool no(const struct shadow_mark *other, void *user) {
    (void)other;
    ++*(int *)user;
    return false;
}

static struct shadow_access make(uint64_t start, uint64_t end, uint32_t lane, uint32_t number,
                                 bool writes, const struct vclock *known) {
    return (struct shadow_access){
        .start = start,
        .end = end,
        .me = { .seq = lane * 1000 + number, .number = number, .lane = lane },
        .writes = writes,
        .known = known,
        .unordered = yes,
    };
}

static struct shadow_answer touch(shadow *s, struct shadow_access a) {
    struct shadow_answer answer = { 0 };
    assert_true(shadow_touch(s, &a, &answer));
    return answer;
}

static void accesses_in_order_do_not_collide(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock known = { 0 };
    assert_int_equal(touch(s, make(100, 200, 1, 1, true, &known)).conflicts, 0);
    assert_true(vclock_raise(&known, 1, 1));
    struct shadow_answer a = touch(s, make(100, 200, 2, 1, false, &known));
    assert_int_equal(a.conflicts, 0);
    assert_int_equal(a.pairs, 1);
    assert_int_equal(a.undefined, 0);
    assert_true(vclock_raise(&known, 2, 1));
    assert_int_equal(touch(s, make(100, 200, 1, 2, true, &known)).conflicts, 0);
    assert_int_equal(shadow_segments(s), 1);
    vclock_free(&known);
    shadow_close(&s);
}

static void unordered_accesses_collide_on_their_common_bytes(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock none = { 0 };
    touch(s, make(100, 200, 1, 1, true, &none));
    struct shadow_answer a = touch(s, make(150, 300, 2, 1, false, &none));
    assert_int_equal(a.conflicts, 1);
    assert_int_equal(a.conflict[0].other.seq, 1001);
    assert_true(a.conflict[0].other_writes);
    assert_int_equal(a.conflict[0].start, 150);
    assert_int_equal(a.conflict[0].end, 200);
    assert_int_equal(a.undefined, 100);
    assert_int_equal(a.undefined_at, 200);
    a = touch(s, make(140, 160, 3, 1, true, &none)); /* against the write and the read */
    assert_int_equal(a.conflicts, 2);
    a = touch(s, make(0, 100, 4, 1, true, &none));
    assert_int_equal(a.conflicts, 0);
    shadow_close(&s);
}

static void reads_do_not_collide_but_all_are_remembered(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock none = { 0 }, two = { 0 };
    for (uint32_t lane = 1; lane <= 3; lane++)
        assert_int_equal(touch(s, make(0, 64, lane, 5, false, &none)).conflicts, 0);
    assert_true(vclock_raise(&two, 1, 5) && vclock_raise(&two, 3, 5));
    struct shadow_answer a = touch(s, make(0, 64, 4, 1, true, &two));
    assert_int_equal(a.conflicts, 1);
    assert_int_equal(a.conflict[0].other.seq, 2005);
    assert_false(a.conflict[0].other_writes);
    vclock_free(&two);
    shadow_close(&s);
}

static void the_caller_has_the_last_word_on_order(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock none = { 0 };
    int asked = 0;
    touch(s, make(0, 64, 1, 1, true, &none));
    struct shadow_access a = make(0, 64, 2, 1, true, &none);
    a.unordered = no;
    a.user = &asked;
    assert_int_equal(touch(s, a).conflicts, 0);
    assert_int_equal(asked, 1);
    shadow_close(&s);
}

static void new_memory_has_no_past(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock none = { 0 };
    touch(s, make(0, 300, 1, 1, true, &none));
    assert_true(shadow_clear(s, 100, 200));
    struct shadow_answer a = touch(s, make(100, 200, 2, 1, false, &none));
    assert_int_equal(a.conflicts, 0);
    assert_int_equal(a.undefined, 100);
    assert_int_equal(touch(s, make(50, 100, 3, 1, false, &none)).conflicts, 1);
    assert_int_equal(touch(s, make(200, 250, 3, 1, false, &none)).conflicts, 1);
    shadow_close(&s);
}

static void a_stream_ordered_allocation_defines_nothing(void **state) {
    (void)state;
    shadow *s = shadow_open();
    struct vclock none = { 0 };
    struct shadow_access a = make(0, 64, 1, 1, true, &none);
    a.me.what = SHADOW_ALLOC;
    touch(s, a);
    struct shadow_answer read = touch(s, make(0, 64, 2, 1, false, &none));
    assert_int_equal(read.conflicts, 1);
    assert_int_equal(read.undefined, 64);
    shadow_close(&s);
}

/* ---- against a table of bytes ---------------------------------------------------------------- */

enum { SPAN = 4096, LANES = 5, STEPS = 30000 };

struct cell {
    uint32_t write_lane, write_number; /* number 0: none */
    uint32_t reads[LANES];             /* by lane; 0: none since the write */
};

static struct cell cells[SPAN];

static bool expect_conflict(const struct shadow_access *a, uint64_t *undefined) {
    bool conflict = false;
    *undefined = 0;
    for (uint64_t i = a->start; i < a->end; i++) {
        struct cell *c = &cells[i];
        *undefined += !c->write_number;
        conflict |= c->write_number && !vclock_covers(a->known, c->write_lane, c->write_number);
        for (uint32_t lane = 0; a->writes && lane < LANES; lane++)
            conflict |= c->reads[lane] && !vclock_covers(a->known, lane, c->reads[lane]);
        if (a->writes) {
            memset(c, 0, sizeof *c);
            c->write_lane = a->me.lane;
            c->write_number = a->me.number;
        } else {
            c->reads[a->me.lane] = a->me.number;
        }
    }
    return conflict;
}

/* Lanes that work in turn and now and then learn how far others are. span: how long accesses are.
 */
static void run_random(unsigned seed, uint64_t span) {
    shadow *s = shadow_open();
    struct vclock known[LANES] = { 0 };
    uint32_t number[LANES] = { 0 };
    memset(cells, 0, sizeof cells);
    srand(seed);
    for (int step = 0; step < STEPS; step++) {
        uint32_t lane = (uint32_t)rand() % LANES, other = (uint32_t)rand() % LANES;
        if (rand() % 3 == 0)
            assert_true(vclock_join(&known[lane], &known[other]));
        uint64_t start = (uint64_t)rand() % (SPAN - 1);
        uint64_t end = start + 1 + (uint64_t)rand() % span;
        end = end < SPAN ? end : SPAN;
        if (rand() % 50 == 0) {
            assert_true(shadow_clear(s, start, end));
            memset(&cells[start], 0, (end - start) * sizeof *cells);
            continue;
        }
        struct shadow_access a = make(start, end, lane, ++number[lane], rand() % 2, &known[lane]);
        struct shadow_answer answer = { 0 };
        uint64_t undefined;
        bool expected = expect_conflict(&a, &undefined);
        assert_true(shadow_touch(s, &a, &answer));
        if ((answer.conflicts != 0) != expected)
            fail_msg("seed %u step %d: %u conflicts", seed, step, answer.conflicts);
        if (!a.writes)
            assert_int_equal(answer.undefined, undefined);
        assert_true(vclock_raise(&known[lane], lane, number[lane]));
    }
    for (int i = 0; i < LANES; i++)
        vclock_free(&known[i]);
    shadow_close(&s);
}

static void random_accesses_agree_with_a_table_of_bytes(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 4; seed++) {
        run_random(seed, 64);
        run_random(seed + 100, 3);
        run_random(seed + 200, SPAN);
    }
}

static void many_segments_come_and_go(void **state) {
    (void)state;
    enum { MANY = 200000 };
    shadow *s = shadow_open();
    struct vclock none = { 0 };
    for (uint64_t i = 0; i < MANY; i++) { /* every other one first, in a scattered order */
        uint64_t k = i * 77773 % MANY;
        touch(s, make(k * 16, k * 16 + 8, 1, 1, true, &none));
    }
    assert_int_equal(shadow_segments(s), MANY);
    for (uint64_t k = 0; k < MANY; k += 97)
        assert_int_equal(touch(s, make(k * 16, k * 16 + 8, 2, 1, false, &none)).conflicts, 1);
    for (uint64_t k = 0; k < MANY; k += 2)
        assert_true(shadow_clear(s, k * 16, k * 16 + 16));
    assert_int_equal(shadow_segments(s), MANY / 2);
    assert_true(shadow_clear(s, 0, UINT64_MAX));
    assert_int_equal(shadow_segments(s), 0);
    touch(s, make(5, 6, 1, 2, true, &none));
    assert_int_equal(shadow_segments(s), 1);
    shadow_close(&s);
}

/* ---- clocks and tables ----------------------------------------------------------------------- */

static void clocks_join_and_compare(void **state) {
    (void)state;
    struct vclock a = { 0 }, b = { 0 }, c = { 0 };
    assert_true(vclock_raise(&a, 3, 7) && vclock_raise(&b, 70, 2) && vclock_raise(&b, 3, 9));
    assert_false(vclock_includes(&a, &b));
    assert_true(vclock_copy(&c, &a));
    assert_true(vclock_join(&a, &b));
    assert_int_equal(vclock_get(&a, 3), 9);
    assert_int_equal(vclock_get(&a, 70), 2);
    assert_int_equal(vclock_get(&a, 1000), 0);
    assert_true(vclock_includes(&a, &b) && vclock_includes(&a, &c));
    assert_false(vclock_includes(&c, &a));
    assert_true(vclock_covers(&c, 3, 7) && !vclock_covers(&c, 3, 8));
    vclock_free(&a);
    vclock_free(&b);
    vclock_free(&c);
}

static void tables_forget_what_is_removed(void **state) {
    (void)state;
    static char value[1000];
    struct table t = { 0 };
    assert_null(table_find(&t, 0));
    assert_null(table_remove(&t, 5));
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(table_set(&t, i * 64, &value[i]));
    for (uint64_t i = 0; i < 1000; i += 2)
        assert_ptr_equal(table_remove(&t, i * 64), &value[i]);
    for (uint64_t i = 0; i < 1000; i++)
        assert_ptr_equal(table_find(&t, i * 64), i % 2 ? &value[i] : NULL);
    size_t at = 0, seen = 0;
    while (table_next(&t, &at))
        seen++;
    assert_int_equal(seen, 500);
    assert_int_equal(t.count, 500);
    table_clear(&t);
    assert_null(table_find(&t, 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_in_order_do_not_collide),
        cmocka_unit_test(unordered_accesses_collide_on_their_common_bytes),
        cmocka_unit_test(reads_do_not_collide_but_all_are_remembered),
        cmocka_unit_test(the_caller_has_the_last_word_on_order),
        cmocka_unit_test(new_memory_has_no_past),
        cmocka_unit_test(a_stream_ordered_allocation_defines_nothing),
        cmocka_unit_test(random_accesses_agree_with_a_table_of_bytes),
        cmocka_unit_test(many_segments_come_and_go),
        cmocka_unit_test(clocks_join_and_compare),
        cmocka_unit_test(tables_forget_what_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
