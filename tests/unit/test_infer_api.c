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
        cmocka_unit_test(opening_fails_with_a_reason),
        cmocka_unit_test(more_context_than_trained_with_is_only_a_note),
        cmocka_unit_test(requests_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
