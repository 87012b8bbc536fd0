/* "dim=256,layers=2,heads=4" -> a configuration. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/synth.h"

enum kind { SIZE, REAL, ARCH, TIED, SCALING };

static const struct {
    const char *key;
    enum kind kind;
    size_t offset;
} fields[] = {
    { "dim", SIZE, offsetof(struct config, dim) },
    { "layers", SIZE, offsetof(struct config, layers) },
    { "heads", SIZE, offsetof(struct config, heads) },
    { "kv_heads", SIZE, offsetof(struct config, kv_heads) },
    { "head_dim", SIZE, offsetof(struct config, head_size) },
    { "hidden", SIZE, offsetof(struct config, hidden) },
    { "vocab", SIZE, offsetof(struct config, vocab) },
    { "ctx", SIZE, offsetof(struct config, context) },
    { "window", SIZE, offsetof(struct config, sliding_window) },
    { "window_period", SIZE, offsetof(struct config, window_period) },
    { "rope_dims", SIZE, offsetof(struct config, rope_dims) },
    { "rope_ctx", SIZE, offsetof(struct config, rope_original_context) },
    { "rope_base", REAL, offsetof(struct config, rope_base) },
    { "rope_local_base", REAL, offsetof(struct config, rope_local_base) },
    { "rope_factor", REAL, offsetof(struct config, rope_factor) },
    { "arch", ARCH, 0 },
    { "tied", TIED, 0 },
    { "rope_scaling", SCALING, 0 },
};

static bool set_size(struct config *c, size_t offset, const char *value) {
    char *rest;
    errno = 0;
    unsigned long n = strtoul(value, &rest, 10);
    if (errno || *rest || rest == value || *value == '-' || n > UINT32_MAX)
        return false;
    *(uint32_t *)((char *)c + offset) = (uint32_t)n;
    return true;
}

static bool set_real(struct config *c, size_t offset, const char *value) {
    char *rest;
    double x = strtod(value, &rest);
    if (*rest || rest == value || !(x > 0) || x > 1e30)
        return false;
    *(double *)((char *)c + offset) = x;
    return true;
}

static bool set_scaling(struct config *c, const char *value) {
    for (int i = CONFIG_ROPE_NONE; i < CONFIG_ROPE_SCALINGS; i++)
        if (strcmp(value, config_rope_scaling_name((enum config_rope_scaling)i)) == 0) {
            c->rope_scaling = (enum config_rope_scaling)i;
            c->rope_freqs = i == CONFIG_ROPE_LLAMA3;
            return true;
        }
    return false;
}

static bool set_field(struct config *c, size_t i, const char *value) {
    switch (fields[i].kind) {
    case SIZE:
        return set_size(c, fields[i].offset, value);
    case REAL:
        return set_real(c, fields[i].offset, value);
    case ARCH:
        return config_arch_find((struct gguf_string){ value, strlen(value) }, &c->arch);
    case TIED:
        c->tied = value[0] == '1';
        return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    default:
        return set_scaling(c, value);
    }
}

static enum rc parse_pair(char *pair, struct config *c, bool *vocab_given, struct err *e) {
    char *value = strchr(pair, '=');
    if (!value)
        return err_set(e, RC_USAGE, "shape: '%s' is neither a known shape nor key=value", pair);
    *value++ = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(pair, fields[i].key) != 0)
            continue;
        if (!set_field(c, i, value) && fields[i].kind == ARCH)
            return err_set(e, RC_USAGE, "shape: '%s' cannot be '%s'; there are %s", pair, value,
                           config_arch_names());
        if (!set_field(c, i, value))
            return err_set(e, RC_USAGE, "shape: '%s' cannot be '%s'", pair, value);
        *vocab_given |= strcmp(pair, "vocab") == 0;
        return RC_OK;
    }
    char list[256];
    size_t n = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, " %s", fields[i].key);
    return err_set(e, RC_USAGE, "shape: there is no '%s'; there are%s", pair, list);
}

/* Missing sizes are derived from the others, in the proportions of the Llama family. */
static void fill_gaps(struct config *c) {
    if (c->dim == 0 && c->heads && c->head_size)
        c->dim = c->heads * c->head_size;
    if (c->heads == 0 && c->dim)
        c->heads = c->head_size ? c->dim / c->head_size : c->dim >= 128 ? c->dim / 64 : 1;
    if (c->hidden == 0) /* 8/3 dim, rounded up to whole super-blocks */
        c->hidden = (uint32_t)(((uint64_t)c->dim * 8 / 3 + 255) / 256 * 256);
    if (c->layers == 0)
        c->layers = 2;
    if (c->vocab == 0)
        c->vocab = 512;
    if (c->context == 0)
        c->context = 2048;
    if (c->rope_scaling == CONFIG_ROPE_LINEAR || c->rope_scaling == CONFIG_ROPE_YARN) {
        if (c->rope_factor == 0)
            c->rope_factor = 4;
        if (c->rope_original_context == 0)
            c->rope_original_context = (uint32_t)(c->context / c->rope_factor);
    }
    if (c->rope_scaling == CONFIG_ROPE_LLAMA3 && c->rope_factor == 0)
        c->rope_factor = 8;
    if (c->rope_scaling == CONFIG_ROPE_LONGROPE) {
        if (c->rope_original_context == 0)
            c->rope_original_context = c->context / 4;
        double stretch = (double)c->context / c->rope_original_context;
        c->rope_magnitude = sqrt(1 + log(stretch) / log(c->rope_original_context));
    }
}

enum rc synth_parse_shape(const char *text, struct config *out, bool *vocab_given, struct err *e) {
    struct config c = { 0 };
    *vocab_given = false;
    if (!strchr(text, '='))
        return config_find_shape(text, out, e);
    char *copy = strdup(text), *rest = copy;
    if (!copy)
        return err_set(e, RC_MEMORY, "shape: out of memory");
    enum rc rc = RC_OK;
    for (char *pair; !rc && (pair = strsep(&rest, ",")) != NULL;) {
        /* A shape's name may come first: "tiny,layers=5". */
        if (pair != copy || strchr(pair, '=')) {
            rc = parse_pair(pair, &c, vocab_given, e);
            continue;
        }
        rc = config_find_shape(pair, &c, e);
        c.rope_dims = c.rope_original_context = 0; /* these follow from what may change */
        c.rope_factor = c.attention_scale = c.embedding_scale = 0;
        c.rope_magnitude = 0;
    }
    free(copy);
    if (rc)
        return rc;
    fill_gaps(&c);
    snprintf(c.name, sizeof c.name, "%.95s", text);
    config_complete(&c);
    if (c.heads && c.dim % c.heads != 0 && c.head_size == c.dim / c.heads)
        return err_set(e, RC_USAGE, "shape: dim %u cannot be divided among %u heads; give head_dim",
                       c.dim, c.heads);
    if (config_check(&c, "shape", e))
        return e ? (e->rc = RC_USAGE) : RC_USAGE;
    *out = c;
    return RC_OK;
}
