/* The vocabulary of a GGUF file. Strings stay where they are in the mapping; numbers lie unaligned
 * there and are copied. */
#include <stdlib.h>

#include "model/tokenizer/vocab.h"

/* An id that may be absent; all bits set, in 32 bits, is how some files say that there is none. */
static enum rc read_id(const gguf *g, const char *key, int64_t *id, struct err *e) {
    const struct gguf_key *k = gguf_find_key(g, key);
    if (k && k->value.type == GGUF_I32 && k->value.i < 0)
        return RC_OK;
    uint64_t value = UINT32_MAX;
    enum rc rc = gguf_try_u64(g, key, &value, e);
    if (rc == RC_OK && value != UINT32_MAX)
        *id = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    return rc;
}

static enum rc read_flag(const gguf *g, const char *key, int *flag, struct err *e) {
    if (!gguf_find_key(g, key))
        return RC_OK;
    bool value;
    enum rc rc = gguf_get_bool(g, key, &value, e);
    if (rc == RC_OK)
        *flag = value;
    return rc;
}

/* An array of one number per token, if the file has it. */
static enum rc find_per_token(const gguf *g, const char *key, enum gguf_type type,
                              const struct vocab_source *s, const struct gguf_array **out,
                              struct err *e) {
    *out = NULL;
    const struct gguf_key *k = gguf_find_key(g, key);
    if (!k)
        return RC_OK;
    enum rc rc = gguf_get_array(g, key, type, out, e);
    if (rc == RC_OK && (*out)->count < s->token_count)
        rc = err_set(e, RC_FORMAT, "%s: %s has %llu entries for %zu tokens", s->name, key,
                     (unsigned long long)(*out)->count, s->token_count);
    return rc;
}

static enum rc read_scores(struct vocab_source *s, const gguf *g, struct err *e) {
    const struct gguf_array *a;
    enum rc rc = find_per_token(g, "tokenizer.ggml.scores", GGUF_F32, s, &a, e);
    if (rc != RC_OK || !a)
        return rc;
    float *scores = malloc(s->token_count * sizeof *scores);
    if (!scores)
        return err_set(e, RC_MEMORY, "%s: no memory for tokenizer.ggml.scores", s->name);
    for (size_t i = 0; i < s->token_count; i++)
        scores[i] = (float)gguf_array_f64(a, i);
    s->owned[0] = scores;
    s->scores = scores;
    return RC_OK;
}

static enum rc read_types(struct vocab_source *s, const gguf *g, struct err *e) {
    const struct gguf_array *a;
    enum rc rc = find_per_token(g, "tokenizer.ggml.token_type", GGUF_I32, s, &a, e);
    if (rc != RC_OK || !a)
        return rc;
    uint8_t *types = malloc(s->token_count);
    if (!types)
        return err_set(e, RC_MEMORY, "%s: no memory for tokenizer.ggml.token_type", s->name);
    for (size_t i = 0; i < s->token_count; i++) {
        int64_t type = gguf_array_i64(a, i);
        types[i] = type < 0 || type > VOCAB_BYTE ? VOCAB_UNDEFINED : (uint8_t)type;
    }
    s->owned[1] = types;
    s->types = types;
    return RC_OK;
}

static enum rc read_strings(struct vocab_source *s, const gguf *g, struct err *e) {
    const struct gguf_array *a;
    enum rc rc;
    if ((rc = gguf_get_string(g, "tokenizer.ggml.model", &s->model, e)) != RC_OK ||
        (rc = gguf_try_string(g, "tokenizer.ggml.pre", &s->pre, e)) != RC_OK ||
        (rc = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &a, e)) != RC_OK)
        return rc;
    s->tokens = a->strings;
    s->token_count = a->count;
    if (gguf_find_key(g, "tokenizer.ggml.merges")) {
        if ((rc = gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STRING, &a, e)) != RC_OK)
            return rc;
        s->merges = a->strings;
        s->merge_count = a->count;
    }
    /* Some files hold several templates; only the one that is a string is a default. */
    const struct gguf_key *k = gguf_find_key(g, "tokenizer.chat_template");
    if (k && k->value.type == GGUF_STRING)
        s->chat_template = k->value.string;
    return RC_OK;
}

/* The tokens of Phi-3's SentencePiece vocabulary strip what follows them, which no key of the
 * tokenizer says. */
static enum rc read_stripping(struct vocab_source *s, const gguf *g, struct err *e) {
    struct gguf_string architecture = { "", 0 };
    enum rc rc = gguf_try_string(g, "general.architecture", &architecture, e);
    s->strip_after_special =
        gguf_string_is(architecture, "phi3") && gguf_string_is(s->model, "llama");
    return rc;
}

enum rc vocab_source_from_gguf(struct vocab_source *s, const gguf *g, struct err *e) {
    vocab_source_init(s, gguf_path(g));
    enum rc rc;
    if ((rc = read_strings(s, g, e)) != RC_OK || (rc = read_scores(s, g, e)) != RC_OK ||
        (rc = read_types(s, g, e)) != RC_OK || (rc = read_stripping(s, g, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.bos_token_id", &s->bos, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.eos_token_id", &s->eos, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.eot_token_id", &s->eot, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.eom_token_id", &s->eom, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.unknown_token_id", &s->unk, e)) != RC_OK ||
        (rc = read_id(g, "tokenizer.ggml.padding_token_id", &s->pad, e)) != RC_OK ||
        (rc = read_flag(g, "tokenizer.ggml.add_bos_token", &s->add_bos, e)) != RC_OK ||
        (rc = read_flag(g, "tokenizer.ggml.add_eos_token", &s->add_eos, e)) != RC_OK ||
        (rc = read_flag(g, "tokenizer.ggml.add_space_prefix", &s->add_space_prefix, e)) != RC_OK)
        vocab_source_close(s);
    return rc;
}
