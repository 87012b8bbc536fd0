/* An engine taken back to an earlier position goes on as if nothing had followed it. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

#include "infer/rewind.h"

enum { CONTEXT = 12, MORE = 8 };

static const int32_t text[CONTEXT] = { 1, 40, 41, 42, 50, 60, 70, 71, 72, 73, 80, 81 };

static struct token_list go_on(engine *g, const int32_t *tokens, size_t count, bool append) {
    struct err e = { 0 };
    struct engine_result result;
    struct engine_request r = { .prompt = tokens,
                                .prompt_count = count,
                                .append = append,
                                .max_tokens = MORE,
                                .sampling = sampler_defaults,
                                .ignore_end = true };
    r.sampling.temperature = 0;
    if (engine_generate(g, &r, &result, &e))
        fail_msg("%s", e.msg);
    return result.tokens;
}

static engine *open_demo(void) {
    engine *g = NULL;
    struct err e = { 0 };
    struct engine_options o = { .device = "soft", .context = 64, .guard_rail = true };
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    return g;
}

static void goes_on_from_there(void **state) {
    (void)state;
    engine *g = open_demo();
    struct token_list wanted = go_on(g, text, CONTEXT, false);
    assert_int_equal(wanted.count, CONTEXT + MORE);
    for (int i = 0; i < 3; i++) {
        engine_rewind(g, CONTEXT - 1);
        assert_int_equal(engine_position(g), CONTEXT - 1);
        struct token_list found = go_on(g, text + CONTEXT - 1, 1, true);
        assert_int_equal(found.count, wanted.count);
        assert_memory_equal(found.ids, wanted.ids, wanted.count * sizeof *wanted.ids);
        token_list_close(&found);
    }
    token_list_close(&wanted);
    assert_int_equal(engine_close(&g, NULL), RC_OK);
}

static void forward_is_nowhere(void **state) {
    (void)state;
    engine *g = open_demo();
    struct token_list found = go_on(g, text, CONTEXT, false);
    uint32_t before = engine_position(g);
    engine_rewind(g, before + 5);
    assert_int_equal(engine_position(g), before);
    token_list_close(&found);
    assert_int_equal(engine_close(&g, NULL), RC_OK);
}

static int close_audit(void **state) {
    (void)state;
    gcore_close();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(goes_on_from_there),
                                        cmocka_unit_test(forward_is_nowhere) };
    return cmocka_run_group_tests(tests, NULL, close_audit);
}
