/* Events as values: durations, extras, the tables of event.def. */
#include "unit/test_record.h"

#include "record/format.h"

static void duration_is_exact_when_short_and_close_when_long(void **state) {
    (void)state;
    for (uint64_t ns = 0; ns < 2048; ns++)
        assert_int_equal(event_duration_decode(event_duration_encode(ns)), ns);
    uint64_t last = 0;
    for (uint64_t ns = 2048; ns < UINT64_MAX / 3; ns += ns / 7 + 1) {
        uint64_t back = event_duration_decode(event_duration_encode(ns));
        assert_true(back <= ns);
        assert_true(ns - back <= ns / 1000);
        assert_true(back >= last);
        last = back;
    }
    assert_true(event_duration_decode(event_duration_encode(UINT64_MAX)) >
                UINT64_MAX / 1001 * 1000);
}

static void damaged_duration_is_a_number_still(void **state) {
    (void)state;
    for (unsigned code = 0; code <= UINT16_MAX; code++)
        (void)event_duration_decode((uint16_t)code);
    assert_true(event_duration_decode(UINT16_MAX) == UINT64_MAX);
}

/* Else a fault in the last thousandth of a call would seem to be after it. */
static void no_call_ends_after_its_latest_end(void **state) {
    (void)state;
    for (uint64_t ns = 0; ns < UINT64_MAX / 3; ns += ns / 97 + 1) {
        struct event e = { .t_ns = 1000, .aux = (uint32_t)event_duration_encode(ns) << 16 };
        assert_in_range(event_latest_end_ns(&e), 1000 + ns, 1000 + ns + ns / 1000);
    }
    struct event damaged = { .t_ns = 1000, .aux = UINT32_MAX };
    assert_true(event_latest_end_ns(&damaged) == UINT64_MAX);
}

static void aux_keeps_function_detail_and_capture_apart(void **state) {
    (void)state;
    struct event e = { .aux = event_aux(2046, DETAIL_COPY_KIND_D2H | EVENT_DETAIL_ASYNC) };
    assert_int_equal(event_fn(&e), 2046);
    assert_int_equal(event_detail(&e), DETAIL_COPY_KIND_ASYNC_D2H);
    assert_false(event_is_captured(&e));
    assert_int_equal(event_duration_ns(&e), 0);
    e.aux = event_aux(1, DETAIL_COPY_KIND_H2D | EVENT_CAPTURED);
    assert_true(event_is_captured(&e));
    assert_int_equal(event_detail(&e), DETAIL_COPY_KIND_H2D);
    assert_int_equal(event_fn(&e), 1);
}

static void dims_come_back(void **state) {
    (void)state;
    union event_slot s;
    struct event_dims d = { { 0xffffffff, 2, 3 }, { 4, 5, 0xfffffffe }, 65536, 1 };
    event_extra_dims(&s, &d);
    struct event_dims back = event_dims_of(&s.extra);
    assert_memory_equal(&d, &back, sizeof d);
    assert_int_equal(event_extra_type(&s.extra), EXTRA_DIMS);
    assert_int_equal(event_extra_words(&s.extra), 5);
}

static void args_come_back_five_a_slot(void **state) {
    (void)state;
    union event_slot s;
    struct event_arg in[7], out[EVENT_ARGS_PER_SLOT];
    for (unsigned i = 0; i < 7; i++)
        in[i] = (struct event_arg){ 0x7f00000000ull + i, 250 + i % 6, i % 8 };
    assert_int_equal(event_extra_args(&s, in, 7), 5);
    assert_int_equal(event_args_of(&s.extra, out), 5);
    assert_memory_equal(in, out, sizeof out);
    assert_int_equal(event_extra_args(&s, in + 5, 2), 2);
    assert_int_equal(event_args_of(&s.extra, out), 2);
    assert_memory_equal(in + 5, out, 2 * sizeof *out);
}

static void accesses_come_back_two_a_slot(void **state) {
    (void)state;
    union event_slot s;
    struct event_access in[3] = { { 0x1000, 64, DETAIL_ACCESS_READ, 3 },
                                  { 0x2000, UINT64_MAX, DETAIL_ACCESS_WRITE, EVENT_NO_ARGUMENT },
                                  { 1, 2, 3, 4 } };
    struct event_access out[EVENT_ACCESSES_PER_SLOT];
    assert_int_equal(event_extra_accesses(&s, in, 3), 2);
    assert_int_equal(event_accesses_of(&s.extra, out), 2);
    assert_memory_equal(in, out, sizeof out);
}

static void patterns_come_back(void **state) {
    (void)state;
    union event_slot s;
    struct event_pattern in = { { 0x1000, 4, DETAIL_ACCESS_READ | EVENT_ACCESS_AT_MOST, 3 },
                                12,
                                UINT64_MAX,
                                4096,
                                (UINT64_C(1) << 48) - 1 };
    event_extra_pattern(&s, &in);
    struct event_pattern out = event_pattern_of(&s.extra);
    assert_memory_equal(&in, &out, sizeof out);
}

static void safe_and_fault_come_back(void **state) {
    (void)state;
    union event_slot s;
    struct event_safe safe = { 7, -1, -2, 16, 4096 };
    struct event_fault fault = { 2, 0xabc, 0x1000, 2, EVENT_NO_SEQ, 0x44 };
    event_extra_safe(&s, &safe);
    struct event_safe safe_back = event_safe_of(&s.extra);
    assert_memory_equal(&safe, &safe_back, sizeof safe);
    event_extra_fault(&s, &fault);
    struct event_fault fault_back = event_fault_of(&s.extra);
    assert_memory_equal(&fault, &fault_back, sizeof fault);
}

static void every_kind_is_found_by_its_text(void **state) {
    (void)state;
    unsigned kinds = 0;
    for (unsigned kind = 0; kind < EVENT_KIND_LIMIT; kind++) {
        if (!event_info(kind)->text)
            continue;
        assert_int_equal(event_kind_parse(event_info(kind)->text), kind);
        assert_true(*event_info(kind)->doc);
        kinds++;
    }
    assert_true(kinds > 40);
    assert_int_equal(event_kind_parse("no such kind"), 0);
    assert_string_equal(event_kind_text(127), "?");
    assert_string_equal(event_kind_text(60000), "?");
    assert_string_equal(event_extra_text(200), "?");
    assert_string_equal(definition_text(200), "?");
}

/* docs/recording.md carries the tables of event.def; this is what keeps them the same. */
static void documentation_has_the_tables_of_event_def(void **state) {
    (void)state;
    const char *source = getenv("SOURCE_DIR");
    char path[512], *tables = NULL, *doc;
    size_t bytes = 0;
    if (!source)
        skip();
    FILE *out = open_memstream(&tables, &bytes);
    assert_non_null(out);
    format_tables(out);
    fclose(out);
    snprintf(path, sizeof path, "%s/docs/recording.md", source);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    doc = calloc(1, 1 << 20);
    assert_non_null(doc);
    assert_true(fread(doc, 1, (1 << 20) - 1, in) > 0);
    fclose(in);
    if (!strstr(doc, tables))
        fail_msg("docs/recording.md: put the output of `greta_audit dump --kinds` there again");
    free(doc);
    free(tables);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duration_is_exact_when_short_and_close_when_long),
        cmocka_unit_test(damaged_duration_is_a_number_still),
        cmocka_unit_test(no_call_ends_after_its_latest_end),
        cmocka_unit_test(aux_keeps_function_detail_and_capture_apart),
        cmocka_unit_test(dims_come_back),
        cmocka_unit_test(args_come_back_five_a_slot),
        cmocka_unit_test(accesses_come_back_two_a_slot),
        cmocka_unit_test(patterns_come_back),
        cmocka_unit_test(safe_and_fault_come_back),
        cmocka_unit_test(every_kind_is_found_by_its_text),
        cmocka_unit_test(documentation_has_the_tables_of_event_def),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
