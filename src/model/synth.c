#include "model/synth.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/gguf/gguf_fill.h"
#include "model/quant/quant.h"

/* How the elements of a tensor are drawn: normal with that mean and deviation. */
struct recipe {
    enum tensor_type type;
    uint64_t seed; /* of the run and the tensor's name */
    float mean, deviation;
    /* Not drawn, but computed from the configuration; NULL: drawn. */
    void (*compute)(const struct config *c, uint64_t first, uint64_t count, float *out);
};

struct synth {
    const struct synth_options *o;
    struct config c;
    struct recipe *recipes; /* one per tensor, in the writer's order */
};

/* ---- random numbers ---- */

/* SplitMix64: a counter and a mixer, so that a stream can start anywhere. */
static inline uint64_t mix64(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Nearly normal numbers: the sum of the four 16-bit quarters of a random word has deviation
 * 65536 / sqrt(3), no tail beyond 3.5 deviations, and needs no logarithm. */
static void draw(const struct recipe *r, uint64_t first, uint64_t count, float *out) {
    const float unit = r->deviation * 1.7320508f / 65536;
    uint64_t counter = mix64(r->seed + first);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t z = mix64(counter += 0x9e3779b97f4a7c15u);
        int32_t sum = (int32_t)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
        out[i] = r->mean + unit * (float)(sum - 2 * 65535);
    }
}

/* The factors of Llama 3.1: frequencies whose wave is longer than the original context are divided
 * by rope_factor, those shorter than a quarter of it are kept, and between them it fades. */
static void fill_rope_freqs(const struct config *c, uint64_t first, uint64_t count, float *out) {
    const double low = 1, high = 4, pi = 3.14159265358979323846;
    for (uint64_t i = 0; i < count; i++) {
        double frequency = pow(c->rope_base, -2.0 * (double)(first + i) / c->rope_dims);
        double waves = c->rope_original_context * frequency / (2 * pi);
        double fade = (waves - low) / (high - low);
        fade = fade < 0 ? 0 : fade > 1 ? 1 : fade;
        out[i] = (float)(1 / ((1 - fade) / c->rope_factor + fade));
    }
}

/* LongRoPE's factors are found by search; these only have their shape: the slower a pair turns, the
 * more it is stretched, and within the original context hardly at all. */
static void fill_long_factors(const struct config *c, uint64_t first, uint64_t count, float *out) {
    double stretch = (double)c->context / c->rope_original_context;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (float)pow(stretch, 2.0 * (double)(first + i) / c->rope_dims);
}

static void fill_short_factors(const struct config *c, uint64_t first, uint64_t count, float *out) {
    for (uint64_t i = 0; i < count; i++)
        out[i] = (float)(1 + 0.1 * (double)(first + i) / c->rope_dims);
}

static enum rc make(void *user, uint64_t tensor, uint64_t first, uint64_t count, float *scratch,
                    void *out, struct err *e) {
    const struct synth *s = user;
    const struct recipe *r = &s->recipes[tensor];
    if (r->compute)
        r->compute(&s->c, first, count, scratch);
    else
        draw(r, first, count, scratch);
    return quant_encode_row(r->type, scratch, out, count, QUANT_FAST, e);
}

/* ---- what the file says ---- */

static struct recipe plan_tensor(const struct synth *s, const struct config_tensor_spec *t) {
    float per_input = 1 / sqrtf((float)t->ne[0]);
    struct recipe r = { .seed = mix64(s->o->seed ^ hash_bytes(t->name, strlen(t->name), 0)) };
    struct quant_mix_model m = { s->c.layers, s->c.heads, s->c.kv_heads, s->c.tied };
    r.type = t->kind != CONFIG_MATRIX ? TENSOR_TYPE_F32
                                      : quant_mix_choose(s->o->mix, &m, t->name, t->ne[0]);
    switch (t->id) {
    case CONFIG_TENSOR_TOKEN_EMBD: /* tied, it also makes the logits */
        r.deviation = s->c.tied || s->c.embedding_scale != 0 ? 2 * per_input : 1;
        break;
    case CONFIG_TENSOR_OUTPUT:
        r.deviation = 2 * per_input;
        break;
    case CONFIG_TENSOR_ATTN_OUTPUT:
    case CONFIG_TENSOR_FFN_DOWN: /* 2 * layers of these add up in the residual */
        r.deviation = per_input / sqrtf(2 * (float)s->c.layers);
        break;
    case CONFIG_TENSOR_ROPE_FREQS:
        r.compute = fill_rope_freqs;
        break;
    case CONFIG_TENSOR_ROPE_LONG:
        r.compute = fill_long_factors;
        break;
    case CONFIG_TENSOR_ROPE_SHORT:
        r.compute = fill_short_factors;
        break;
    default:
        r.deviation = t->kind == CONFIG_MATRIX ? per_input : 0.1f;
        r.mean = t->kind == CONFIG_NORM ? 1 : 0;
    }
    return r;
}

static void add_arch_u32(gguf_writer *w, const struct config *c, const char *tail, uint32_t v) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", config_arch_name(c->arch), tail);
    gguf_writer_add_u32(w, key, v);
}

static void add_arch_f32(gguf_writer *w, const struct config *c, const char *tail, double v) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", config_arch_name(c->arch), tail);
    gguf_writer_add_f32(w, key, (float)v);
}

static void add_attention(gguf_writer *w, const struct config *c) {
    if (c->sliding_window)
        add_arch_u32(w, c, "attention.sliding_window", c->sliding_window);
    if (c->sliding_window && c->window_period)
        add_arch_u32(w, c, "attention.sliding_window_pattern", c->window_period);
    if (c->attention_cap != 0)
        add_arch_f32(w, c, "attn_logit_softcapping", (double)c->attention_cap);
    if (c->logit_cap != 0)
        add_arch_f32(w, c, "final_logit_softcapping", (double)c->logit_cap);
}

static void add_rope(gguf_writer *w, const struct config *c) {
    char key[96];
    add_arch_u32(w, c, "rope.dimension_count", c->rope_dims);
    add_arch_f32(w, c, "rope.freq_base", c->rope_base);
    if (c->rope_local_base != 0)
        add_arch_f32(w, c, "rope.freq_base_swa", c->rope_local_base);
    if (c->rope_scaling == CONFIG_ROPE_LONGROPE) {
        add_arch_f32(w, c, "rope.scaling.attn_factor", c->rope_magnitude);
        add_arch_u32(w, c, "rope.scaling.original_context_length", c->rope_original_context);
    }
    if (c->rope_scaling != CONFIG_ROPE_LINEAR && c->rope_scaling != CONFIG_ROPE_YARN)
        return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", config_arch_name(c->arch));
    gguf_writer_add_string(w, key, config_rope_scaling_name(c->rope_scaling));
    add_arch_f32(w, c, "rope.scaling.factor", c->rope_factor);
    add_arch_u32(w, c, "rope.scaling.original_context_length", c->rope_original_context);
}

static void add_metadata(gguf_writer *w, const struct synth *s) {
    const struct config *c = &s->c;
    char name[128];
    snprintf(name, sizeof name, "greta synth %s", c->name);
    gguf_writer_add_string(w, "general.architecture", config_arch_name(c->arch));
    gguf_writer_add_string(w, "general.name", name);
    gguf_writer_add_u32(w, "general.file_type", s->o->mix->file_type);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    gguf_writer_add_u64(w, "greta.synth.seed", s->o->seed);
    add_arch_u32(w, c, "vocab_size", c->vocab);
    add_arch_u32(w, c, "context_length", c->context);
    add_arch_u32(w, c, "embedding_length", c->dim);
    add_arch_u32(w, c, "block_count", c->layers);
    add_arch_u32(w, c, "feed_forward_length", c->hidden);
    add_arch_u32(w, c, "attention.head_count", c->heads);
    add_arch_u32(w, c, "attention.head_count_kv", c->kv_heads);
    add_arch_u32(w, c, "attention.key_length", c->head_size);
    add_arch_u32(w, c, "attention.value_length", c->head_size);
    add_arch_f32(w, c, config_epsilon_key(c->arch), (double)c->norm_eps);
    add_attention(w, c);
    add_rope(w, c);
}

static enum rc add_tokenizer(gguf_writer *w, const struct synth *s, struct err *e) {
    if (!s->o->vocab)
        return synth_add_vocab(w, s->c.vocab, e);
    for (uint64_t i = 0; i < gguf_key_count(s->o->vocab); i++) {
        const struct gguf_key *k = gguf_key_at(s->o->vocab, i);
        if (k->name.len > 10 && memcmp(k->name.data, "tokenizer.", 10) == 0)
            gguf_writer_copy_key(w, k);
    }
    return RC_OK;
}

/* Declares the tensors and plans what is in them. */
static enum rc add_tensors(gguf_writer *w, struct synth *s, struct err *e) {
    struct config_tensor_spec t;
    uint64_t count = 0, n = 0;
    while (config_tensor_at(&s->c, count, &t))
        count++;
    s->recipes = calloc(count + 1, sizeof *s->recipes);
    if (!s->recipes)
        return err_set(e, RC_MEMORY, "out of memory");
    for (uint64_t i = 0; config_tensor_at(&s->c, i, &t); i++) {
        if (!t.required)
            continue;
        s->recipes[n] = plan_tensor(s, &t);
        gguf_writer_add_tensor(w, t.name, s->recipes[n].type, t.n_dims, t.ne);
        n++;
    }
    return RC_OK;
}

static enum rc take_vocab_size(struct synth *s, struct err *e) {
    const struct gguf_array *tokens;
    if (!s->o->vocab)
        return RC_OK;
    enum rc rc = gguf_get_array(s->o->vocab, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, e);
    if (rc)
        return rc;
    s->c.vocab = tokens->count < UINT32_MAX ? (uint32_t)tokens->count : UINT32_MAX;
    return config_check(&s->c, gguf_path(s->o->vocab), e);
}

enum rc synth_write(const char *path, const struct synth_options *o, struct err *e) {
    struct synth s = { .o = o, .c = o->shape };
    gguf_writer *w = NULL;
    enum rc rc = take_vocab_size(&s, e);
    if (!rc)
        rc = gguf_writer_open(&w, path, e);
    if (!rc) {
        add_metadata(w, &s);
        rc = add_tokenizer(w, &s, e);
    }
    if (!rc)
        rc = add_tensors(w, &s, e);
    struct gguf_fill how = { .make = make,
                             .user = &s,
                             .threads = o->threads,
                             .progress = o->progress,
                             .progress_user = o->progress_user,
                             .cancel = o->cancel };
    if (!rc)
        rc = gguf_fill_write(w, &how, e);
    gguf_writer_close(&w);
    free(s.recipes);
    return rc;
}
