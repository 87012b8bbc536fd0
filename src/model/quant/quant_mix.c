#include "model/quant/quant_mix.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct quant_mix mixes[] = {
#define TENSOR_TYPE_COMPUTED(type, number, elements, bytes, codec, halves, first, file_type)       \
    { #type, file_type, TENSOR_TYPE_##type, QUANT_MIX_PURE },
#include "model/quant/tensor_type.def"
#define QUANT_MIX(name, file_type, type, rule)                                                     \
    { name, file_type, TENSOR_TYPE_##type, QUANT_MIX_##rule },
#include "model/quant/quant_mix.def"
#undef QUANT_MIX
};

const char *quant_mix_names(void) {
    static const char list[] = ""
#define TENSOR_TYPE_COMPUTED(type, number, elements, bytes, codec, halves, first, file_type)       \
    " " #type
#include "model/quant/tensor_type.def"
#define QUANT_MIX(name, file_type, type, rule) " " name
#include "model/quant/quant_mix.def"
#undef QUANT_MIX
        ;
    return list + 1;
}

enum rc quant_mix_find(const char *name, const struct quant_mix **out, struct err *e) {
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (strcasecmp(mixes[i].name, name) == 0) {
            *out = &mixes[i];
            return RC_OK;
        }
    return err_set(e, RC_USAGE, "no type is called '%s'; there are %s", name, quant_mix_names());
}

static bool ends_with(const char *name, const char *tail) {
    size_t n = strlen(name), t = strlen(tail);
    return n >= t && strcmp(name + n - t, tail) == 0;
}

bool quant_mix_applies(const char *name, uint32_t n_dims) {
    return n_dims >= 2 && ends_with(name, ".weight") && !ends_with(name, "_norm.weight") &&
           !ends_with(name, ".ffn_gate_inp.weight");
}

/* What rows get whose length is not a multiple of a type's block: the next better type. */
static enum tensor_type fit_rows(enum tensor_type type, uint64_t ne0) {
    if (tensor_type_row_bytes(type, ne0) != 0)
        return type;
    enum tensor_type next = TENSOR_TYPE_F16;
    switch (type) {
    case TENSOR_TYPE_Q2_K:
    case TENSOR_TYPE_Q3_K:
        next = TENSOR_TYPE_Q4_0;
        break;
    case TENSOR_TYPE_Q4_K:
        next = TENSOR_TYPE_Q5_0;
        break;
    case TENSOR_TYPE_Q5_K:
        next = TENSOR_TYPE_Q5_1;
        break;
    case TENSOR_TYPE_Q6_K:
        next = TENSOR_TYPE_Q8_0;
        break;
    case TENSOR_TYPE_IQ4_XS:
        next = TENSOR_TYPE_IQ4_NL;
        break;
    default:
        break;
    }
    return tensor_type_row_bytes(next, ne0) != 0 ? next : TENSOR_TYPE_F16;
}

/* The first and last eighth of the layers and every third between: where errors cost most. */
static bool deserves_more_bits(uint32_t layer, uint32_t layers) {
    uint32_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/* The "medium" rule that model files in circulation follow: the output matrix is Q6_K, and so are
 * attn_v and ffn_down of the layers above. A 70B model shares one attn_v among eight heads, and it
 * gets at least Q5_K. */
static enum tensor_type choose_medium(enum tensor_type type, const struct quant_mix_model *m,
                                      const char *name) {
    if (strcmp(name, "output.weight") == 0 || (m->tied && strcmp(name, "token_embd.weight") == 0))
        return TENSOR_TYPE_Q6_K;
    unsigned layer;
    bool value = ends_with(name, ".attn_v.weight"), down = ends_with(name, ".ffn_down.weight");
    if (!(value || down) || sscanf(name, "blk.%u.", &layer) != 1)
        return type;
    if (deserves_more_bits(layer, m->layers))
        return TENSOR_TYPE_Q6_K;
    if (value && m->layers == 80 && m->heads != m->kv_heads)
        return TENSOR_TYPE_Q5_K;
    return type;
}

enum tensor_type quant_mix_choose(const struct quant_mix *mix, const struct quant_mix_model *m,
                                  const char *name, uint64_t ne0) {
    enum tensor_type type = mix->type;
    if (mix->rule == QUANT_MIX_MEDIUM)
        type = choose_medium(type, m, name);
    return fit_rows(type, ne0);
}
