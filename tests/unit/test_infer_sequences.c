/* Sequences side by side: none depends on its neighbours, and the cache holds what is in use. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/audit.h>

#include "base/hash.h"
#include "infer/engine_internal.h"
#include "infer/sequence.h"
#include "model/synth.h"

enum { VOCAB = 300, PROMPT_MAX = 150, NEW_MAX = 40 };

static char path[] = "/tmp/greta-sequences-XXXXXX", mixed_path[] = "/tmp/greta-sequences-XXXXXX";
static const char *model = path;
static uint32_t seed = 1;

static uint32_t draw(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

static int write_model(char *to, const char *mix) {
    struct err e = { 0 };
    struct synth_options o = { .seed = 5, .threads = 1 };
    bool vocab_given;
    int fd = mkstemp(to);
    if (fd < 0)
        return -1;
    close(fd);
    return synth_parse_shape("dim=256,layers=2,heads=4,kv_heads=2,hidden=256,vocab=300,ctx=512",
                             &o.shape, &vocab_given, &e) ||
                   quant_mix_find(mix, &o.mix, &e) || synth_write(to, &o, &e)
               ? -1
               : 0;
}

static int write_models(void **state) {
    (void)state;
    return write_model(path, "Q8_0") || write_model(mixed_path, "Q4_K_M") ? -1 : 0;
}

static int remove_models(void **state) {
    (void)state;
    gcore_close();
    return unlink(path) || unlink(mixed_path) ? -1 : 0;
}

static engine *open_engine(uint32_t sequences, uint32_t cache, uint32_t chunk) {
    struct err e = { 0 };
    engine *g = NULL;
    struct engine_options o = { .model = model,
                                .device = "soft",
                                .guard_rail = true,
                                .sequences = sequences,
                                .cache = cache,
                                .chunk = chunk };
    if (engine_open(&g, &o, &e))
        fail_msg("%s", e.msg);
    return g;
}

static void close_engine(engine **g) {
    struct err e = { 0 };
    assert_int_equal(engine_close(g, &e), RC_OK);
}

/* One text, and what came of it. */
struct text {
    int32_t prompt[PROMPT_MAX];
    uint32_t prompt_count, max_tokens, cancel_after;
    uint64_t seed;
    uint32_t number;
    bool ended;
    enum engine_end end;
    struct token_list tokens;
    bool looks;                            /* at the logits, so that the host draws the tokens */
    uint64_t logits[PROMPT_MAX + NEW_MAX]; /* a hash of all their bits, by position */
};

static void keep(uint32_t sequence, const struct engine_finished *f, void *user) {
    struct text *t = user;
    assert_int_equal(sequence, t->number);
    assert_false(t->ended);
    t->ended = true;
    t->end = f->end;
    token_list_close(&t->tokens);
    t->tokens = *f->tokens;
    *f->tokens = (struct token_list){ 0 };
}

static enum rc look(uint32_t position, int32_t token, const float *logits, void *user,
                    struct err *e) {
    struct text *t = user;
    (void)token, (void)e;
    t->logits[position] = hash_bytes(logits, VOCAB * sizeof *logits, 1);
    return RC_OK;
}

static struct engine_request request_of(struct text *t) {
    struct engine_request r = { .prompt = t->prompt,
                                .prompt_count = t->prompt_count,
                                .max_tokens = t->max_tokens,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .logits = t->looks ? look : NULL,
                                .finished = keep,
                                .user = t };
    r.sampling.seed = t->seed;
    return r;
}

static void submit(engine *g, struct text *t) {
    struct err e = { 0 };
    struct engine_request r = request_of(t);
    t->ended = false;
    t->number = g->next_number;
    if (engine_submit(g, &r, &t->number, &e))
        fail_msg("%s", e.msg);
}

static bool step(engine *g) {
    struct err e = { 0 };
    bool more;
    if (engine_step(g, &more, &e))
        fail_msg("%s", e.msg);
    return more;
}

static void make_text(struct text *t, const struct text *like) {
    *t = (struct text){ .seed = draw(1000), .max_tokens = 1 + draw(NEW_MAX) };
    t->looks = draw(2);
    t->prompt_count = 1 + draw(PROMPT_MAX - 1);
    for (uint32_t i = 0; i < t->prompt_count; i++)
        t->prompt[i] = (int32_t)draw(VOCAB);
    if (like && draw(2)) /* begins as another does */
        memcpy(t->prompt, like->prompt, draw(t->prompt_count) * sizeof *t->prompt);
}

enum { TEXTS = 24 };

/* Texts that come and go at random give what each gives alone, in an engine of its own that
 * launches kernel by kernel: the same tokens, from logits that agree in every bit. */
static void mix(uint32_t sequences, uint32_t cache, uint32_t chunk) {
    struct text texts[TEXTS], alone;
    setenv("GRETA_HIP_GRAPH", "1", 1);
    engine *g = open_engine(sequences, cache, chunk);
    uint32_t submitted = 0;
    for (uint32_t i = 0; i < TEXTS; i++)
        make_text(&texts[i], i ? &texts[draw(i)] : NULL);
    for (bool more = true; more || submitted < TEXTS;) {
        for (uint32_t n = draw(4); n > 0 && submitted < TEXTS; n--)
            submit(g, &texts[submitted++]);
        if (draw(6) == 0 && submitted)
            engine_cancel(g, texts[draw(submitted)].number);
        more = step(g);
    }
    setenv("GRETA_HIP_GRAPH", "0", 1);
    for (uint32_t i = 0; i < TEXTS; i++) {
        assert_true(texts[i].ended);
        alone = texts[i];
        alone.tokens = (struct token_list){ 0 };
        alone.looks = true;
        memset(alone.logits, 0, sizeof alone.logits);
        engine *own = open_engine(1, 0, 0);
        submit(own, &alone);
        while (step(own))
            ;
        assert_int_equal(alone.end, ENGINE_LENGTH);
        if (texts[i].end == ENGINE_LENGTH)
            assert_int_equal(texts[i].tokens.count, alone.tokens.count);
        else
            assert_int_equal(texts[i].end, ENGINE_INTERRUPTED);
        assert_memory_equal(texts[i].tokens.ids, alone.tokens.ids,
                            texts[i].tokens.count * sizeof *alone.tokens.ids);
        for (uint32_t at = 0; at < PROMPT_MAX + NEW_MAX; at++)
            if (texts[i].logits[at]) /* 0: it was cancelled before */
                assert_int_equal(texts[i].logits[at], alone.logits[at]);
        token_list_close(&alone.tokens);
        token_list_close(&texts[i].tokens);
        close_engine(&own);
    }
    assert_int_equal(g->pool.unused, g->pool.count);
    close_engine(&g);
}

static void neighbours_do_not_change_a_bit(void **state) {
    (void)state;
    mix(8, 0, 0);
    mix(5, 0, 37);
}

/* The same with blocks of 256 weights, and types that differ from matrix to matrix. */
static void nor_with_mixed_types(void **state) {
    (void)state;
    model = mixed_path;
    mix(7, 0, 50);
    model = path;
}

/* So small a cache that sequences are put aside and read again. */
static void a_full_cache_puts_sequences_aside(void **state) {
    (void)state;
    mix(8, 512, 64);
}

static void equal_prompts_share_their_blocks(void **state) {
    (void)state;
    struct text texts[6];
    engine *g = open_engine(6, 0, 0);
    make_text(&texts[0], NULL);
    texts[0].prompt_count = 140; /* four blocks and some tokens */
    texts[0].max_tokens = 4;
    for (int i = 0; i < 6; i++) {
        texts[i] = texts[0];
        texts[i].tokens = (struct token_list){ 0 };
        submit(g, &texts[i]);
    }
    step(g);
    step(g);
    assert_int_equal(g->pool.count - g->pool.unused, 4 + 6); /* the fifth block each has alone */
    while (step(g))
        ;
    for (int i = 1; i < 6; i++)
        assert_memory_equal(texts[i].tokens.ids, texts[0].tokens.ids, 144 * sizeof(int32_t));
    int64_t steps = g->step;
    submit(g, &texts[0]); /* its blocks are still there */
    step(g);
    assert_int_equal(g->first->evaluated, 140);
    assert_int_equal(g->step, steps + 1);
    while (step(g))
        ;
    for (int i = 0; i < 6; i++)
        token_list_close(&texts[i].tokens);
    close_engine(&g);
}

/* 100 short texts and one that fills the context take what their tokens take. */
static void the_cache_takes_what_is_in_use(void **state) {
    (void)state;
    enum { SHORT = 100 };
    static struct text texts[SHORT + 1];
    engine *g = open_engine(SHORT + 1, 0, 0);
    uint64_t positions = 0;
    for (int i = 0; i <= SHORT; i++) {
        texts[i] = (struct text){ .prompt_count = 1, .max_tokens = i ? 20 : 500, .seed = 1 };
        texts[i].prompt[0] = i;
        submit(g, &texts[i]);
        positions += KERN_BLOCKS(1 + texts[i].max_tokens) * KERN_BLOCK;
    }
    while (step(g))
        ;
    for (int i = 0; i <= SHORT; i++) {
        assert_int_equal(texts[i].end, ENGINE_LENGTH);
        token_list_close(&texts[i].tokens);
    }
    assert_in_range(g->stages.at[0].cache.blocks * KERN_BLOCK, 1, positions + positions / 4);
    assert_true(g->stages.at[0].cache.blocks < g->blocks / 4);
    close_engine(&g);
}

static void continuations_copy_only_the_block_that_is_not_full(void **state) {
    (void)state;
    struct err e = { 0 };
    struct text t;
    struct engine_result result;
    engine *g = open_engine(4, 0, 0);
    make_text(&t, NULL);
    t.prompt_count = 70;
    t.max_tokens = 2;
    struct engine_request r = request_of(&t);
    r.finished = NULL;
    r.user = NULL;
    struct sequence *first;
    assert_int_equal(engine_add(g, &r, NULL, 4, &first, &e), RC_OK);
    assert_true(step(g));
    assert_int_equal(g->pool.count - g->pool.unused, 2 + 4);
    while (step(g))
        ;
    assert_int_equal(engine_generate(g, &r, &result, &e), RC_OK);
    assert_int_equal(result.generated, 8);
    token_list_close(&result.tokens);
    close_engine(&g);
}

static void a_cancelled_sequence_ends_at_the_next_step(void **state) {
    (void)state;
    struct text t;
    engine *g = open_engine(2, 0, 0);
    make_text(&t, NULL);
    submit(g, &t);
    engine_cancel(g, t.number);
    engine_cancel(g, 77); /* there is none */
    assert_false(step(g));
    assert_true(t.ended);
    assert_int_equal(t.end, ENGINE_INTERRUPTED);
    token_list_close(&t.tokens);
    close_engine(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_do_not_change_a_bit),
        cmocka_unit_test(nor_with_mixed_types),
        cmocka_unit_test(a_full_cache_puts_sequences_aside),
        cmocka_unit_test(equal_prompts_share_their_blocks),
        cmocka_unit_test(the_cache_takes_what_is_in_use),
        cmocka_unit_test(continuations_copy_only_the_block_that_is_not_full),
        cmocka_unit_test(a_cancelled_sequence_ends_at_the_next_step),
    };
    return cmocka_run_group_tests(tests, write_models, remove_models);
}
