#include "model/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct config_family archs[CONFIG_ARCH_COUNT] = {
#define CONFIG_ARCH(id, text, ...) [CONFIG_ARCH_##id] = { .name = (text), __VA_ARGS__ },
#include "model/config_arch.def"
#undef CONFIG_ARCH
};

static const struct config shapes[] = {
#define CONFIG_SHAPE(label, a, d, l, h, kv, size, ff, v, ctx, window, base, eps, is_tied)          \
    { .arch = CONFIG_ARCH_##a,                                                                     \
      .name = label,                                                                               \
      .dim = (d),                                                                                  \
      .layers = (l),                                                                               \
      .heads = (h),                                                                                \
      .kv_heads = (kv),                                                                            \
      .head_size = (size),                                                                         \
      .hidden = (ff),                                                                              \
      .vocab = (v),                                                                                \
      .context = (ctx),                                                                            \
      .sliding_window = (window),                                                                  \
      .rope_base = (base),                                                                         \
      .norm_eps = (float)(eps),                                                                    \
      .tied = (is_tied) },
#include "model/config_shape.def"
#undef CONFIG_SHAPE
};

const char *config_arch_name(enum config_arch arch) {
    return archs[arch].name;
}

const char *config_arch_names(void) {
    static const char list[] = ""
#define CONFIG_ARCH(id, name, ...) ", " name
#include "model/config_arch.def"
#undef CONFIG_ARCH
        ;
    return list + 2;
}

const char *config_epsilon_key(enum config_arch arch) {
    return archs[arch].norm == CONFIG_LAYER_NORM ? "attention.layer_norm_epsilon"
                                                 : "attention.layer_norm_rms_epsilon";
}

bool config_arch_find(struct gguf_string name, enum config_arch *out) {
    for (int i = 0; i < CONFIG_ARCH_COUNT; i++)
        if (gguf_string_is(name, archs[i].name)) {
            *out = (enum config_arch)i;
            return true;
        }
    return false;
}

const char *config_rope_scaling_name(enum config_rope_scaling scaling) {
    static const char *const names[] = {
        [CONFIG_ROPE_NONE] = "none",         [CONFIG_ROPE_LINEAR] = "linear",
        [CONFIG_ROPE_YARN] = "yarn",         [CONFIG_ROPE_LLAMA3] = "llama3",
        [CONFIG_ROPE_LONGROPE] = "longrope",
    };
    return names[scaling];
}

bool config_is_local(const struct config *c, uint32_t layer) {
    return c->sliding_window && (c->window_period == 0 || (layer + 1) % c->window_period != 0);
}

/* Defaults from the family's row, for fields that are still 0. */
static void complete_from_family(struct config *c) {
    const struct config_family *f = &archs[c->arch];
    struct config_tensor_spec output;
    c->tied |= !config_tensor_spec(c, CONFIG_TENSOR_OUTPUT, 0, &output);
    c->rope_style = f->rope;
    c->norm = f->norm;
    c->activation = f->activation;
    c->embedding_scale = f->embedding_scale == CONFIG_SQRT_DIM ? sqrtf((float)c->dim) : 0;
    if (c->sliding_window == 0)
        c->sliding_window = f->window;
    if (c->window_period == 0)
        c->window_period = f->window_period;
    if (c->rope_local_base == 0)
        c->rope_local_base = f->local_rope_base;
    if (c->attention_cap == 0)
        c->attention_cap = f->attention_cap;
    if (c->logit_cap == 0)
        c->logit_cap = f->logit_cap;
    bool wide = f->wide_layers && f->wide_layers == c->layers;
    uint32_t width = wide && c->heads ? c->dim / c->heads : c->head_size;
    if (c->attention_scale == 0 && width)
        c->attention_scale = 1 / sqrtf((float)width);
}

void config_complete(struct config *c) {
    if (c->kv_heads == 0)
        c->kv_heads = c->heads;
    if (c->head_size == 0 && c->heads)
        c->head_size = c->dim / c->heads;
    if (c->rope_dims == 0)
        c->rope_dims = c->head_size;
    if (c->rope_base == 0)
        c->rope_base = 10000;
    if (c->rope_factor == 0)
        c->rope_factor = 1;
    if (c->rope_magnitude == 0)
        c->rope_magnitude = 1;
    if (c->rope_original_context == 0)
        c->rope_original_context = c->context;
    if (c->norm_eps == 0)
        c->norm_eps = 1e-5f;
    complete_from_family(c);
}

enum rc config_find_shape(const char *name, struct config *out, struct err *e) {
    char list[512] = "";
    for (size_t i = 0, n = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(shapes[i].name, name) == 0) {
            *out = shapes[i];
            config_complete(out);
            return RC_OK;
        }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", shapes[i].name);
    }
    return err_set(e, RC_USAGE, "no shape is called '%s'; there are %s", name, list);
}

/* Sizes far beyond any model, low enough that products of three fit in 64 bits. */
enum {
    MAX_DIM = 1 << 20,
    MAX_LAYERS = 1 << 12,
    MAX_HEADS = 1 << 14,
    MAX_HIDDEN = 1 << 22,
    MAX_VOCAB = 1 << 24,
    MAX_CONTEXT = 1 << 30,
};

enum rc config_check(const struct config *c, const char *where, struct err *e) {
    const struct {
        const char *what;
        uint32_t value, max;
    } sizes[] = {
        { "embedding length", c->dim, MAX_DIM },
        { "number of layers", c->layers, MAX_LAYERS },
        { "number of heads", c->heads, MAX_HEADS },
        { "number of KV heads", c->kv_heads, MAX_HEADS },
        { "head size", c->head_size, MAX_DIM },
        { "feed-forward length", c->hidden, MAX_HIDDEN },
        { "vocabulary size", c->vocab, MAX_VOCAB },
        { "context length", c->context, MAX_CONTEXT },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value == 0 || sizes[i].value > sizes[i].max)
            return err_set(e, RC_RANGE, "%s: %s is %u, expected 1 to %u", where, sizes[i].what,
                           sizes[i].value, sizes[i].max);
    if (c->heads % c->kv_heads != 0)
        return err_set(e, RC_RANGE, "%s: %u heads cannot share %u KV heads evenly", where, c->heads,
                       c->kv_heads);
    if (c->rope_dims % 2 != 0 || c->rope_dims > c->head_size)
        return err_set(e, RC_RANGE,
                       "%s: %u elements of a head rotate, expected an even number up to %u", where,
                       c->rope_dims, c->head_size);
    if (!(c->rope_local_base >= 0) || !isfinite(c->rope_local_base) || !(c->attention_cap >= 0) ||
        !isfinite(c->attention_cap) || !(c->logit_cap >= 0) || !isfinite(c->logit_cap))
        return err_set(e, RC_RANGE,
                       "%s: rope base %g of local layers, soft caps %g of attention and %g of"
                       " logits: expected positive numbers",
                       where, c->rope_local_base, (double)c->attention_cap, (double)c->logit_cap);
    if (!(c->rope_base > 0) || !(c->rope_factor > 0) || !(c->norm_eps >= 0) ||
        !isfinite(c->rope_base) || !isfinite(c->rope_factor) || !isfinite(c->norm_eps) ||
        !isfinite(c->attention_scale) || !isfinite(c->rope_magnitude))
        return err_set(e, RC_RANGE,
                       "%s: rope base %g, rope factor %g, epsilon %g: expected positive"
                       " numbers",
                       where, c->rope_base, c->rope_factor, (double)c->norm_eps);
    return RC_OK;
}

/* ---- reading metadata ---- */

struct reader {
    const gguf *g;
    const char *arch; /* prefix of the keys */
    struct err *e;
    enum rc rc;    /* the first failure; later reads do nothing */
    char key[128]; /* the key read last */
};

static const char *make_key(struct reader *r, const char *tail) {
    snprintf(r->key, sizeof r->key, "%s.%s", r->arch, tail);
    return r->key;
}

static void read_u32(struct reader *r, const char *tail, bool required, uint32_t *out) {
    if (r->rc)
        return;
    const char *key = make_key(r, tail);
    r->rc = required ? gguf_get_u32(r->g, key, out, r->e) : gguf_try_u32(r->g, key, out, r->e);
}

static void read_f64(struct reader *r, const char *tail, double *out) {
    if (!r->rc)
        r->rc = gguf_try_f64(r->g, make_key(r, tail), out, r->e);
}

static void read_f32(struct reader *r, const char *tail, float *out) {
    double value = (double)*out;
    read_f64(r, tail, &value);
    *out = (float)value;
}

/* A number, or an array with one number per layer that are all the same. */
static void read_per_layer(struct reader *r, const char *tail, bool required, uint32_t *out) {
    if (r->rc)
        return;
    const struct gguf_key *k = gguf_find_key(r->g, make_key(r, tail));
    if (!k || k->value.type != GGUF_ARRAY) {
        read_u32(r, tail, required, out);
        return;
    }
    const struct gguf_array *a = &k->value.array;
    if (gguf_type_bytes(a->type) == 0 || a->count == 0) {
        r->rc = err_set(r->e, RC_FORMAT, "%s: key '%s' at offset %" PRIu64 ": expected numbers",
                        gguf_path(r->g), r->key, k->offset);
        return;
    }
    int64_t first = gguf_array_i64(a, 0);
    for (uint64_t i = 1; i < a->count; i++)
        if (gguf_array_i64(a, i) != first) {
            r->rc = err_set(r->e, RC_UNSUPPORTED,
                            "%s: key '%s': layer 0 has %" PRId64 ", layer %" PRIu64 " has %" PRId64
                            "; greta runs models whose layers are alike",
                            gguf_path(r->g), r->key, first, i, gguf_array_i64(a, i));
            return;
        }
    if (first < 0 || first > UINT32_MAX)
        r->rc = err_set(r->e, RC_FORMAT, "%s: key '%s': %" PRId64, gguf_path(r->g), r->key, first);
    else
        *out = (uint32_t)first;
}

/* The period of local and global layers: a number, or an array with one boolean per layer. */
static void read_window_period(struct reader *r, struct config *c) {
    const struct gguf_key *k =
        r->rc ? NULL : gguf_find_key(r->g, make_key(r, "attention.sliding_window_pattern"));
    if (!k || k->value.type != GGUF_ARRAY || gguf_type_bytes(k->value.array.type) == 0) {
        read_u32(r, "attention.sliding_window_pattern", false, &c->window_period);
        return;
    }
    const struct gguf_array *a = &k->value.array;
    for (uint64_t period = 1; period <= a->count + 1 && period <= MAX_LAYERS; period++) {
        uint64_t i = 0;
        while (i < a->count && (gguf_array_i64(a, i) != 0) == ((i + 1) % period != 0))
            i++;
        if (i == a->count) {
            c->window_period = (uint32_t)period;
            return;
        }
    }
    r->rc = err_set(r->e, RC_UNSUPPORTED,
                    "%s: key '%s': greta runs models in which every Nth layer is global",
                    gguf_path(r->g), r->key);
}

static void read_sizes(struct reader *r, struct config *c) {
    uint32_t value_length = 0, experts = 0;
    read_u32(r, "embedding_length", true, &c->dim);
    read_u32(r, "block_count", true, &c->layers);
    read_u32(r, "context_length", true, &c->context);
    read_per_layer(r, "feed_forward_length", true, &c->hidden);
    read_per_layer(r, "attention.head_count", true, &c->heads);
    read_per_layer(r, "attention.head_count_kv", false, &c->kv_heads);
    read_u32(r, "attention.key_length", false, &c->head_size);
    read_u32(r, "attention.value_length", false, &value_length);
    read_u32(r, "attention.sliding_window", false, &c->sliding_window);
    read_window_period(r, c);
    read_u32(r, "rope.dimension_count", false, &c->rope_dims);
    read_u32(r, "expert_count", false, &experts);
    if (r->rc)
        return;
    if (c->heads == 0 || (c->head_size == 0 && c->dim % c->heads != 0))
        r->rc = err_set(r->e, RC_FORMAT,
                        "%s: embedding length %u cannot be divided among %u heads, and key '%s"
                        ".attention.key_length' is missing",
                        gguf_path(r->g), c->dim, c->heads, r->arch);
    else if (value_length && value_length != (c->head_size ? c->head_size : c->dim / c->heads))
        r->rc = err_set(r->e, RC_UNSUPPORTED,
                        "%s: keys of %u and values of %u elements per head; greta runs models where"
                        " they are equal",
                        gguf_path(r->g), c->head_size, value_length);
    else if (experts)
        r->rc =
            err_set(r->e, RC_UNSUPPORTED, "%s: a mixture of %u experts; greta runs dense models",
                    gguf_path(r->g), experts);
}

/* key 'vocab_size', else the tokenizer's list, else the embedding itself. */
static void read_vocab(struct reader *r, struct config *c) {
    read_u32(r, "vocab_size", false, &c->vocab);
    if (r->rc || c->vocab)
        return;
    const struct gguf_key *tokens = gguf_find_key(r->g, "tokenizer.ggml.tokens");
    const struct gguf_tensor *embedding = gguf_find_tensor(r->g, "token_embd.weight");
    uint64_t n = 0;
    if (tokens && tokens->value.type == GGUF_ARRAY)
        n = tokens->value.array.count;
    else if (embedding)
        n = embedding->ne[1];
    c->vocab = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* YaRN makes attention sharper as it stretches: 1 + 0.1 ln(factor), as its authors found; some
 * models divide part of that out again (log_multiplier). */
static double yarn_magnitude(double factor, double log_multiplier) {
    if (factor <= 1)
        return 1;
    double plain = 1 + 0.1 * log(factor);
    return log_multiplier == 0 ? plain : plain / (1 + 0.1 * log_multiplier * log(factor));
}

static void read_yarn(struct reader *r, struct config *c) {
    double log_multiplier = 0;
    c->yarn_mix = 1;
    c->yarn_beta_fast = 32;
    c->yarn_beta_slow = 1;
    read_f64(r, "rope.scaling.yarn_log_multiplier", &log_multiplier);
    read_f64(r, "rope.scaling.yarn_ext_factor", &c->yarn_mix);
    read_f64(r, "rope.scaling.yarn_beta_fast", &c->yarn_beta_fast);
    read_f64(r, "rope.scaling.yarn_beta_slow", &c->yarn_beta_slow);
    if (c->yarn_mix < 0) /* "not given", in some files */
        c->yarn_mix = 1;
    c->rope_magnitude *= yarn_magnitude(c->rope_factor, log_multiplier);
}

/* "NTK-aware": the base grows so that the slowest pair is stretched by the factor and the fastest
 * is left alone. */
static double ntk_base(const struct config *c, double factor) {
    double dims = c->rope_dims ? c->rope_dims : c->head_size ? c->head_size : c->dim / c->heads;
    return dims > 2 ? c->rope_base * pow(factor, dims / (dims - 2)) : c->rope_base;
}

static void read_rope(struct reader *r, struct config *c) {
    struct gguf_string type = { "linear", 6 }; /* the format's default, with a factor of 1 */
    double factor = 0;
    c->rope_base = 10000;
    c->rope_magnitude = 1;
    read_f64(r, "rope.freq_base", &c->rope_base);
    read_f64(r, "rope.freq_base_swa", &c->rope_local_base);
    read_f64(r, "rope.scale_linear", &factor); /* the older name */
    read_f64(r, "rope.scaling.factor", &factor);
    read_f64(r, "rope.scaling.attn_factor", &c->rope_magnitude);
    read_u32(r, "rope.scaling.original_context_length", false, &c->rope_original_context);
    if (!r->rc)
        r->rc = gguf_try_string(r->g, make_key(r, "rope.scaling.type"), &type, r->e);
    if (r->rc)
        return;
    c->rope_freqs = config_find_tensor(r->g, CONFIG_TENSOR_ROPE_FREQS, 0) != NULL;
    c->rope_factor = factor == 0 ? 1 : factor;
    struct config_tensor_spec long_factors;
    bool longrope = config_tensor_spec(c, CONFIG_TENSOR_ROPE_LONG, 0, &long_factors) &&
                    gguf_find_tensor(r->g, long_factors.name);
    if (longrope && !gguf_string_is(type, "yarn")) {
        c->rope_scaling = CONFIG_ROPE_LONGROPE;
        c->rope_factor = 1;
    } else if (gguf_string_is(type, "yarn")) {
        c->rope_scaling = CONFIG_ROPE_YARN;
        read_yarn(r, c);
    } else if (gguf_string_is(type, "linear") && c->rope_factor != 1) {
        c->rope_scaling = CONFIG_ROPE_LINEAR;
    } else if (gguf_string_is(type, "none") || gguf_string_is(type, "linear") ||
               gguf_string_is(type, "ntk") || (gguf_string_is(type, "llama3") && c->rope_freqs)) {
        if (gguf_string_is(type, "ntk"))
            c->rope_base = ntk_base(c, c->rope_factor);
        c->rope_scaling = c->rope_freqs ? CONFIG_ROPE_LLAMA3 : CONFIG_ROPE_NONE;
        c->rope_factor = 1;
    } else {
        r->rc = err_set(r->e, RC_UNSUPPORTED,
                        "%s: key '%s': '%.*s'; greta knows none, linear, ntk, yarn, llama3 with the"
                        " tensor rope_freqs.weight, and longrope with rope_factors_long.weight",
                        gguf_path(r->g), r->key, (int)(type.len < 64 ? type.len : 64), type.data);
    }
}

static void copy_name(const gguf *g, struct config *c) {
    struct gguf_string name = { "", 0 };
    if (gguf_try_string(g, "general.name", &name, NULL))
        return; /* only decoration */
    uint64_t n = name.len < sizeof c->name - 1 ? name.len : sizeof c->name - 1;
    for (uint64_t i = 0; i < n; i++)
        c->name[i] = (uint8_t)name.data[i] < ' ' || name.data[i] == 0x7f ? '?' : name.data[i];
}

static enum rc read_arch(const gguf *g, enum config_arch *out, struct err *e) {
    struct gguf_string name;
    enum rc rc = gguf_get_string(g, "general.architecture", &name, e);
    if (rc || config_arch_find(name, out))
        return rc;
    return err_set(e, RC_UNSUPPORTED, "%s: key 'general.architecture': '%.*s'; greta runs %s",
                   gguf_path(g), (int)(name.len < 64 ? name.len : 64), name.data,
                   config_arch_names());
}

enum rc config_read(const gguf *g, struct config *out, struct err *e) {
    struct config c = { 0 };
    enum rc rc = read_arch(g, &c.arch, e);
    if (rc)
        return rc;
    struct reader r = { .g = g, .arch = archs[c.arch].name, .e = e };
    double eps = 0, scale = 0;
    read_sizes(&r, &c);
    read_vocab(&r, &c);
    read_rope(&r, &c);
    if (!r.rc)
        r.rc = gguf_get_f64(g, make_key(&r, config_epsilon_key(c.arch)), &eps, e);
    read_f32(&r, "attn_logit_softcapping", &c.attention_cap);
    read_f32(&r, "final_logit_softcapping", &c.logit_cap);
    read_f64(&r, "attention.scale", &scale);
    if (r.rc)
        return r.rc;
    c.norm_eps = (float)eps;
    c.attention_scale = (float)scale;
    c.tied = !gguf_find_tensor(g, "output.weight");
    copy_name(g, &c);
    config_complete(&c);
    rc = config_check(&c, gguf_path(g), e);
    if (rc)
        return rc;
    *out = c;
    return RC_OK;
}
