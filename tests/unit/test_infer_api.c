/* The engine through its public header alone. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>
#include <greta/greta.h>

struct heard {
    char text[3][2000];
    size_t len[3];
    int32_t tokens[100];  /* by position */
    uint32_t rows, first; /* of logits; the position of the first */
    uint32_t stop_at;
    int asked, stop_after; /* 0: never */
};

static void hear(uint32_t sequence, const char *text, size_t bytes, void *user) {
    struct heard *h = user;
    assert_true(sequence < 3 && h->len[sequence] + bytes < sizeof h->text[0]);
    memcpy(h->text[sequence] + h->len[sequence], text, bytes);
    h->len[sequence] += bytes;
}

static int count_logits(uint32_t position, int32_t token, const float *logits, uint32_t vocab,
                        void *user) {
    struct heard *h = user;
    assert_true(token >= 0 && vocab == 1024 && logits != NULL && position < 100);
    if (!h->rows++)
        h->first = position;
    h->tokens[position] = token;
    return h->stop_at && position >= h->stop_at;
}

static int stop_sometime(void *user) {
    struct heard *h = user;
    return h->stop_after && ++h->asked > h->stop_after;
}

static greta_engine *open_demo(uint32_t sequences) {
    greta_engine *g = NULL;
    struct greta_options o;
    struct greta_error e;
    greta_options_init(&o);
    o.device = "soft";
    o.sequences = sequences;
    if (greta_open(&g, &o, &e))
        fail_msg("%s", e.message);
    return g;
}

static struct greta_request ask(const char *prompt, struct heard *h) {
    struct greta_request r;
    greta_request_init(&r);
    r.prompt = prompt;
    r.max_tokens = 14;
    r.temperature = 0;
    r.text = hear;
    r.user = h;
    return r;
}

static void a_recording_is_an_option_of_the_first_engine(void **state) {
    (void)state;
    greta_engine *g = NULL, *other = NULL;
    struct greta_options o;
    struct greta_error e;
    char path[4096];
    snprintf(path, sizeof path, "%s/api.gcr", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    greta_options_init(&o);
    o.device = "soft";
    o.record = path;
    if (greta_open(&g, &o, &e))
        fail_msg("%s", e.message);
    assert_int_equal(greta_open(&other, &o, &e), GRETA_OK); /* the same file */
    assert_int_equal(greta_close(&other, NULL), GRETA_OK);
    o.record = "another.gcr";
    assert_int_equal(greta_open(&other, &o, &e), GRETA_USAGE);
    assert_non_null(strstr(e.message, "already records to "));
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
    gcore_close();
    assert_null(getenv("GCORE_RECORD"));
    char magic[4] = "";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(magic, 1, sizeof magic, f), sizeof magic);
    fclose(f);
    remove(path);
}

static void a_prompt_is_continued(void **state) {
    (void)state;
    greta_engine *g = open_demo(1);
    struct heard h = { 0 };
    struct greta_request r = ask("Once upon a time", &h);
    struct greta_result result;
    struct greta_error e = { .code = GRETA_DEVICE, .message = "old" };
    r.logits = count_logits;
    assert_int_equal(greta_generate(g, &r, &result, &e), GRETA_OK);
    assert_int_equal(e.code, GRETA_OK);
    assert_string_equal(e.message, "");
    assert_string_equal(h.text[0], ", there was a mighty prince who lived in a castle");
    assert_int_equal(result.generated, 14);
    assert_int_equal(result.end, GRETA_END_LENGTH);
    assert_int_equal(h.rows, 14);
    assert_true(result.total_ms >= result.first_token_ms && result.first_token_ms > 0);
    assert_non_null(strstr(greta_description(g), "greta demo"));
    assert_int_equal(greta_context(g), 512);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
    assert_null(g);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

/* Text in two requests is what it is in one: the last token of the first, which nothing was drawn
 * from, is not forgotten. */
static void a_request_that_appends_goes_on_where_the_last_one_ended(void **state) {
    (void)state;
    greta_engine *g = open_demo(1);
    struct heard whole = { 0 }, pieces = { 0 };
    struct greta_request r = ask("Once upon a time", &whole);
    r.max_tokens = 30;
    r.logits = count_logits;
    assert_int_equal(greta_generate(g, &r, NULL, NULL), GRETA_OK);
    r = ask("Once upon a time", &pieces);
    assert_int_equal(greta_generate(g, &r, NULL, NULL), GRETA_OK);

    size_t bytes;
    const int32_t *next = &whole.tokens[whole.first + 15]; /* after the prompt and 14 tokens */
    const char *text = greta_token_text(g, *next, &bytes);
    hear(0, text, bytes, &pieces);
    r = ask(NULL, &pieces);
    r.tokens = next;
    r.token_count = 1;
    r.append = 1;
    r.logits = count_logits;
    assert_int_equal(greta_generate(g, &r, NULL, NULL), GRETA_OK);
    assert_int_equal(pieces.first, whole.first + 15);
    assert_true(pieces.len[0] > 60);
    assert_memory_equal(pieces.text[0], whole.text[0], pieces.len[0]);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

static void sequences_draw_with_their_own_seeds(void **state) {
    (void)state;
    greta_engine *three = open_demo(3), *one = open_demo(1); /* both at the same time */
    struct heard side = { 0 };
    struct greta_request r = ask("Once upon a time", &side);
    r.temperature = 1;
    r.seed = 40;
    assert_int_equal(greta_generate(three, &r, NULL, NULL), GRETA_OK);
    for (uint32_t i = 0; i < 3; i++) {
        struct heard alone = { 0 };
        r.user = &alone;
        r.seed = 40 + i;
        assert_int_equal(greta_generate(one, &r, NULL, NULL), GRETA_OK);
        assert_string_equal(alone.text[0], side.text[i]);
    }
    assert_string_not_equal(side.text[0], side.text[1]);
    assert_int_equal(greta_close(&three, NULL), GRETA_OK);
    assert_int_equal(greta_close(&one, NULL), GRETA_OK);
}

static void callbacks_can_end_a_run(void **state) {
    (void)state;
    greta_engine *g = open_demo(1);
    struct heard h = { .stop_after = 5 };
    struct greta_request r = ask("Once upon a time", &h);
    struct greta_result result;
    struct greta_error e;
    r.max_tokens = 100;
    r.interrupted = stop_sometime;
    assert_int_equal(greta_generate(g, &r, &result, &e), GRETA_OK);
    assert_int_equal(result.end, GRETA_END_INTERRUPTED);
    assert_in_range(result.generated, 1, 6);
    h = (struct heard){ .stop_at = 9 };
    r.logits = count_logits;
    assert_int_equal(greta_generate(g, &r, &result, &e), GRETA_INTERRUPTED);
    assert_non_null(strstr(e.message, "position 9"));
    const char *stops[] = { " prince" };
    h = (struct heard){ 0 };
    r.stops = stops;
    r.stop_count = 1;
    assert_int_equal(greta_generate(g, &r, &result, &e), GRETA_OK);
    assert_int_equal(result.end, GRETA_END_STOP);
    assert_string_equal(h.text[0], ", there was a mighty");
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

/* ---- several prompts ---- */

/* A submitted sequence and what its callbacks got. */
struct sequence {
    greta_engine *g;
    uint32_t id;
    struct heard heard;  /* under text[0] */
    size_t cancel_after; /* bytes of text; 0: never */
    uint32_t fail_at;    /* position at which the callback for logits returns nonzero, once */
    struct greta_finished finished;
    int ended;
};

static void hear_one(uint32_t sequence, const char *text, size_t bytes, void *user) {
    struct sequence *s = user;
    assert_int_equal(sequence, s->id);
    assert_false(s->ended);
    hear(0, text, bytes, &s->heard);
    if (s->cancel_after && s->heard.len[0] >= s->cancel_after)
        assert_int_equal(greta_cancel(s->g, s->id, NULL), GRETA_OK);
}

static int fail_once(uint32_t position, int32_t token, const float *logits, uint32_t vocab,
                     void *user) {
    struct sequence *s = user;
    (void)token, (void)logits, (void)vocab;
    if (!s->fail_at || position != s->fail_at)
        return 0;
    s->fail_at = 0;
    return 1;
}

static void hear_end(uint32_t sequence, const struct greta_finished *f, void *user) {
    struct sequence *s = user;
    assert_int_equal(sequence, s->id);
    s->finished = *f;
    s->ended++;
}

static void submit(greta_engine *g, struct sequence *s, const char *prompt) {
    struct greta_error e;
    struct greta_request r = ask(prompt, NULL);
    r.text = hear_one;
    r.logits = s->fail_at ? fail_once : NULL;
    r.finished = hear_end;
    r.user = s;
    s->g = g;
    if (greta_submit(g, &r, &s->id, &e))
        fail_msg("%s", e.message);
}

static int step(greta_engine *g) {
    struct greta_error e;
    int more = 0;
    if (greta_step(g, &more, &e))
        fail_msg("%s", e.message);
    return more;
}

static const char story[] = ", there was a mighty prince who lived in a castle";

static void sequences_join_and_leave_between_steps(void **state) {
    (void)state;
    greta_engine *g = open_demo(3);
    struct sequence s[5] = { { .id = 0 } };
    submit(g, &s[0], "Once upon a time");
    for (int i = 0; i < 4; i++)
        assert_true(step(g));
    submit(g, &s[1], "Once upon a time");
    submit(g, &s[2], "The king");
    assert_true(step(g));
    submit(g, &s[3], "Once upon a time"); /* one more than a step takes: waits for a place */
    submit(g, &s[4], "Once upon a time");
    struct greta_request alone = ask("Once upon a time", NULL);
    struct greta_error e;
    assert_int_equal(greta_generate(g, &alone, NULL, &e), GRETA_USAGE);
    assert_non_null(strstr(e.message, "submitted sequences"));
    alone.append = 1;
    assert_int_equal(greta_submit(g, &alone, &s[0].id, &e), GRETA_USAGE);
    assert_int_equal(greta_cancel(g, s[2].id, &e), GRETA_OK);
    assert_int_equal(greta_cancel(g, 77, &e), GRETA_OK); /* there is none */
    while (step(g))
        ;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(s[i].ended, 1);
        assert_int_equal(s[i].finished.end, i == 2 ? GRETA_END_INTERRUPTED : GRETA_END_LENGTH);
        if (i == 2)
            continue;
        assert_string_equal(s[i].heard.text[0], story);
        assert_int_equal(s[i].finished.generated, 14);
        assert_int_equal(s[i].finished.prompt_tokens, s[0].finished.prompt_tokens);
    }
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

static void a_callback_can_cancel_its_sequence(void **state) {
    (void)state;
    greta_engine *g = open_demo(2);
    struct sequence s[2] = { { .cancel_after = 10 }, { .id = 0 } };
    for (int i = 0; i < 2; i++)
        submit(g, &s[i], "Once upon a time");
    while (step(g))
        ;
    assert_int_equal(s[0].finished.end, GRETA_END_INTERRUPTED);
    assert_int_equal(s[0].ended, 1);
    assert_in_range(s[0].heard.len[0], 10, 20);
    assert_memory_equal(s[0].heard.text[0], story, s[0].heard.len[0]);
    assert_string_equal(s[1].heard.text[0], story);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

static void a_step_that_a_callback_failed_can_be_repeated(void **state) {
    (void)state;
    greta_engine *g = open_demo(2);
    struct sequence s[2] = { { .fail_at = 9 }, { .id = 0 } };
    struct greta_error e;
    int more = 1, failures = 0;
    for (int i = 0; i < 2; i++)
        submit(g, &s[i], "Once upon a time");
    while (more) {
        enum greta_code code = greta_step(g, &more, &e);
        assert_true(code == GRETA_OK || (code == GRETA_INTERRUPTED && ++failures == 1));
    }
    assert_int_equal(failures, 1);
    assert_string_equal(s[0].heard.text[0], story);
    assert_string_equal(s[1].heard.text[0], story);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

static int give_up(uint64_t done, uint64_t total, void *user) {
    int *calls = user;
    assert_true(done <= total);
    return ++*calls == 3;
}

static void keep_report(const char *text, void *user) {
    snprintf(user, 1000, "%s", text);
}

static void opening_fails_with_a_reason(void **state) {
    (void)state;
    greta_engine *g = NULL;
    struct greta_options o;
    struct greta_error e;
    char table[1000] = "";
    int calls = 0;
    greta_options_init(&o);
    o.device = "soft";
    o.model = "/nowhere/m.gguf";
    assert_int_equal(greta_open(&g, &o, &e), GRETA_IO);
    assert_non_null(strstr(e.message, "/nowhere/m.gguf"));
    o.model = NULL;
    o.kv_type = "Q2_K";
    assert_int_equal(greta_open(&g, &o, &e), GRETA_USAGE);
    o.kv_type = NULL;
    o.expect = "llama-2-7b";
    o.report = keep_report;
    o.user = table;
    assert_int_equal(greta_open(&g, &o, &e), GRETA_REFUSED);
    assert_non_null(strstr(table, "number of KV heads   32        2"));
    o.expect = NULL;
    o.progress = give_up;
    o.report = NULL;
    o.user = &calls;
    assert_int_equal(greta_open(&g, &o, &e), GRETA_INTERRUPTED);
    assert_int_equal(calls, 3);
    assert_null(g);
}

static void more_context_than_trained_with_is_only_a_note(void **state) {
    (void)state;
    greta_engine *g = NULL;
    struct greta_options o;
    char note[1000] = "";
    greta_options_init(&o);
    o.device = "soft";
    o.context = 700;
    o.report = keep_report;
    o.user = note;
    assert_int_equal(greta_open(&g, &o, NULL), GRETA_OK);
    assert_non_null(strstr(note, "700 positions"));
    assert_int_equal(greta_context(g), 700);
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
}

static void requests_are_checked(void **state) {
    (void)state;
    greta_engine *g = open_demo(1);
    struct heard h = { 0 };
    struct greta_error e;
    struct greta_request r = ask("Once", &h);
    const int32_t tokens[] = { 1, 5000 };
    r.tokens = tokens;
    r.token_count = 2;
    assert_int_equal(greta_generate(g, &r, NULL, &e), GRETA_USAGE);
    r.prompt = NULL;
    assert_int_equal(greta_generate(g, &r, NULL, &e), GRETA_RANGE);
    assert_non_null(strstr(e.message, "5000"));
    r.token_count = 0;
    assert_int_equal(greta_generate(g, &r, NULL, &e), GRETA_USAGE);
    r = ask("Once", &h);
    r.top_p = 0;
    assert_int_equal(greta_generate(g, &r, NULL, &e), GRETA_USAGE);
    size_t count;
    assert_int_equal(greta_tokenize(g, "a", 1, 64, NULL, 0, &count, &e), GRETA_USAGE);
    assert_int_equal(greta_tokenize(g, "a b", 3, GRETA_ADD_SPECIAL, NULL, 0, &count, &e), GRETA_OK);
    assert_true(count > 1);
    assert_null(greta_token_text(g, 1024, &count));
    assert_int_equal(greta_close(&g, NULL), GRETA_OK);
    assert_true(strlen(greta_version()) >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_an_option_of_the_first_engine),
        cmocka_unit_test(a_prompt_is_continued),
        cmocka_unit_test(a_request_that_appends_goes_on_where_the_last_one_ended),
        cmocka_unit_test(sequences_draw_with_their_own_seeds),
        cmocka_unit_test(callbacks_can_end_a_run),
        cmocka_unit_test(sequences_join_and_leave_between_steps),
        cmocka_unit_test(a_callback_can_cancel_its_sequence),
        cmocka_unit_test(a_step_that_a_callback_failed_can_be_repeated),
        cmocka_unit_test(opening_fails_with_a_reason),
        cmocka_unit_test(more_context_than_trained_with_is_only_a_note),
        cmocka_unit_test(requests_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
