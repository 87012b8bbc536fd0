/* The tensors that a configuration implies. */
#include <stdio.h>
#include <string.h>

#include "model/config.h"

enum place { FIRST, LAYER, LAST };
enum size { NONE, DIM, HIDDEN, VOCAB, QUERY, KEY, HEAD, ROPE, QKV, GATE_UP };

/* Sets of architectures, as bits. */
enum {
    NO_ARCH = 0,
#define CONFIG_ARCH(id, ...) id = 1 << CONFIG_ARCH_##id,
#include "model/config_arch.def"
#undef CONFIG_ARCH
    ALL = (1 << CONFIG_ARCH_COUNT) - 1,
};

/* The families that must have a tensor. */
enum {
#define CONFIG_TENSOR(id, name, place, must, ...) MUST_##id = must,
#include "model/config_tensor.def"
};
_Static_assert((MUST_ATTN_NORM & MUST_FFN_NORM & MUST_OUTPUT_NORM) == ALL,
               "forward_layers.c has no pass without these norms");

static const struct line {
    const char *name;
    enum place place;
    unsigned must, may;
    enum size ne[2];
    enum config_tensor_kind kind;
} lines[CONFIG_TENSOR_COUNT] = {
#define CONFIG_TENSOR(id, name, place, must, may, ne0, ne1, kind)                                  \
    [CONFIG_TENSOR_##id] = { name, place, must, may, { ne0, ne1 }, CONFIG_##kind },
#include "model/config_tensor.def"
};

static uint64_t size_of(const struct config *c, enum size s) {
    switch (s) {
    case DIM:
        return c->dim;
    case HIDDEN:
        return c->hidden;
    case VOCAB:
        return c->vocab;
    case QUERY:
        return (uint64_t)c->heads * c->head_size;
    case KEY:
        return (uint64_t)c->kv_heads * c->head_size;
    case HEAD:
        return c->head_size;
    case ROPE:
        return c->rope_dims / 2;
    case QKV:
        return ((uint64_t)c->heads + 2 * (uint64_t)c->kv_heads) * c->head_size;
    case GATE_UP:
        return 2 * (uint64_t)c->hidden;
    default:
        return 1;
    }
}

static void make_name(const struct line *t, uint32_t layer, char *out, size_t room) {
    if (t->place != LAYER) {
        snprintf(out, room, "%s", t->name);
        return;
    }
    const char *mark = strstr(t->name, "%u");
    snprintf(out, room, "%.*s%u%s", (int)(mark - t->name), t->name, layer, mark + 2);
}

bool config_tensor_part(const struct config *c, enum config_tensor whole, unsigned index,
                        struct config_part *out) {
#define SIZE(s) size_of(c, s)
    const struct {
        enum config_tensor id, whole;
        uint64_t first;
    } parts[] = {
#define CONFIG_PART(id, whole, first) { CONFIG_TENSOR_##id, CONFIG_TENSOR_##whole, first },
#include "model/config_tensor.def"
    };
#undef SIZE
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].whole == whole && index-- == 0) {
            *out = (struct config_part){ parts[i].id, parts[i].first,
                                         size_of(c, lines[parts[i].id].ne[1]) };
            return true;
        }
    return false;
}

static bool is_present(const struct config *c, enum config_tensor id) {
    const struct line *t = &lines[id];
    bool tied_output = id == CONFIG_TENSOR_OUTPUT && c->tied;
    return ((t->must | t->may) >> c->arch & 1) != 0 && !tied_output;
}

bool config_tensor_spec(const struct config *c, enum config_tensor id, uint32_t layer,
                        struct config_tensor_spec *out) {
    if (!is_present(c, id))
        return false;
    const struct line *t = &lines[id];
    *out = (struct config_tensor_spec){ .id = id, .kind = t->kind };
    out->layer = t->place == LAYER ? (int32_t)layer : -1;
    out->n_dims = t->ne[1] == NONE ? 1 : 2;
    out->ne[0] = size_of(c, t->ne[0]);
    out->ne[1] = size_of(c, t->ne[1]);
    out->required = (t->must >> c->arch & 1) || id == CONFIG_TENSOR_OUTPUT ||
                    (id == CONFIG_TENSOR_ROPE_FREQS && c->rope_freqs) ||
                    ((id == CONFIG_TENSOR_ROPE_LONG || id == CONFIG_TENSOR_ROPE_SHORT) &&
                     c->rope_scaling == CONFIG_ROPE_LONGROPE);
    make_name(t, layer, out->name, sizeof out->name);
    return true;
}

/* The index-th tensor of that place that c has; counts *index down past those it skips. */
static bool pick(const struct config *c, enum place place, uint32_t layer, uint64_t *index,
                 struct config_tensor_spec *out) {
    for (int id = 0; id < CONFIG_TENSOR_COUNT; id++)
        if (lines[id].place == place && is_present(c, (enum config_tensor)id) && (*index)-- == 0)
            return config_tensor_spec(c, (enum config_tensor)id, layer, out);
    return false;
}

static uint64_t count_in_layer(const struct config *c) {
    uint64_t n = 0;
    for (int id = 0; id < CONFIG_TENSOR_COUNT; id++)
        n += lines[id].place == LAYER && is_present(c, (enum config_tensor)id);
    return n;
}

bool config_tensor_at(const struct config *c, uint64_t index, struct config_tensor_spec *out) {
    if (pick(c, FIRST, 0, &index, out))
        return true;
    uint64_t each = count_in_layer(c), all = each * c->layers;
    if (index < all) {
        uint64_t within = index % each;
        return pick(c, LAYER, (uint32_t)(index / each), &within, out);
    }
    index -= all;
    return pick(c, LAST, 0, &index, out);
}

void config_tensor_name(enum config_tensor id, uint32_t layer, char out[GGUF_MAX_NAME + 1]) {
    make_name(&lines[id], layer, out, GGUF_MAX_NAME + 1);
}

const struct gguf_tensor *config_find_tensor(const gguf *g, enum config_tensor id, uint32_t layer) {
    char name[GGUF_MAX_NAME + 1];
    config_tensor_name(id, layer, name);
    return gguf_find_tensor(g, name);
}

bool config_kind_allows(enum config_tensor_kind kind, enum tensor_type type) {
    return kind == CONFIG_MATRIX ? tensor_type_is_computable(type) : tensor_type_is_float(type);
}

uint64_t config_parameter_count(const struct config *c) {
    struct config_tensor_spec s;
    uint64_t n = 0;
    for (uint64_t i = 0; config_tensor_at(c, i, &s); i++)
        if (s.required)
            n += s.ne[0] * s.ne[1];
    return n;
}
