#include "support/model_run.h"

#include <stdlib.h>
#include <string.h>

#include "model/synth.h"
#include "unit/test.h"

void model_run_write(const char *path, const char *shape, const char *type, uint64_t seed) {
    struct err e = { 0 };
    struct synth_options o = { .seed = seed, .threads = 1 };
    bool vocab_given;
    if (synth_parse_shape(shape, &o.shape, &vocab_given, &e))
        fail_msg("%s", e.msg);
    if (quant_mix_find(type, &o.mix, &e) || synth_write(path, &o, &e))
        fail_msg("%s", e.msg);
}

static enum rc keep_row(uint32_t position, int32_t token, const float *logits, void *user,
                        struct err *e) {
    struct kept *k = user;
    (void)position, (void)token, (void)e;
    k->logits = realloc(k->logits, (size_t)(k->rows + 1) * k->vocab * sizeof *logits);
    memcpy(k->logits + (size_t)k->rows++ * k->vocab, logits, k->vocab * sizeof *logits);
    return RC_OK;
}

static void keep_text(uint32_t sequence, const char *text, size_t len, void *user) {
    struct kept *k = user;
    if (sequence == 0 && k->text_len + len < sizeof k->text) {
        memcpy(k->text + k->text_len, text, len);
        k->text_len += len;
    }
}

struct kept model_run_on(engine *g, const int32_t *tokens, uint32_t count, uint32_t generate) {
    struct err e = { 0 };
    struct engine_result result;
    struct kept k = { .vocab = engine_config(g)->vocab };
    struct engine_request r = { .prompt = tokens,
                                .prompt_count = count,
                                .max_tokens = generate,
                                .sampling = sampler_defaults,
                                .ignore_end = true,
                                .text = keep_text,
                                .logits = keep_row,
                                .user = &k };
    r.sampling.temperature = 0;
    if (engine_generate(g, &r, &result, &e))
        fail_msg("%s", e.msg);
    token_list_close(&result.tokens);
    return k;
}

struct kept model_run(const struct engine_options *o, const int32_t *tokens, uint32_t count,
                      uint32_t generate) {
    engine *g = NULL;
    struct err e = { 0 };
    if (engine_open(&g, o, &e))
        fail_msg("%s", e.msg);
    struct kept k = model_run_on(g, tokens, count, generate);
    assert_int_equal(engine_close(&g, &e), RC_OK);
    return k;
}

void model_run_fill_tokens(int32_t *tokens, uint32_t count, uint32_t vocab) {
    uint32_t x = 12345;
    for (uint32_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        tokens[i] = (int32_t)((x >> 8) % vocab);
    }
}
