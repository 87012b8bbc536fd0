/* config.h - what a model's metadata says about its shape, as one struct.
 *
 * struct config is plain data that the caller owns; everything here is thread-safe. */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"

enum config_arch {
#define CONFIG_ARCH(id, ...) CONFIG_ARCH_##id,
#include "model/config_arch.def"
#undef CONFIG_ARCH
    CONFIG_ARCH_COUNT,
};

/* How RoPE stretches positions beyond the context the model was trained with. */
enum config_rope_scaling {
    CONFIG_ROPE_NONE,
    CONFIG_ROPE_LINEAR,   /* angles divided by rope_factor */
    CONFIG_ROPE_YARN,     /* low frequencies divided by rope_factor, high ones kept */
    CONFIG_ROPE_LLAMA3,   /* every frequency divided by its element of rope_freqs.weight */
    CONFIG_ROPE_LONGROPE, /* … of rope_factors_long.weight if the run's context exceeds the original
                             one, else of rope_factors_short.weight */
    CONFIG_ROPE_SCALINGS,
};

/* Which elements of a head rotate together: 2i and 2i + 1, or i and i + rope_dims / 2. */
enum config_rope_style { CONFIG_ROPE_PAIRS, CONFIG_ROPE_HALVES };
/* x / rms(x), or (x - mean(x)) / deviation(x); of heads it is always the former. */
enum config_norm { CONFIG_RMS_NORM, CONFIG_LAYER_NORM };
enum config_activation { CONFIG_SILU, CONFIG_GELU /* the approximation by tanh */ };
/* What embeddings are multiplied with. */
enum config_embedding_scale { CONFIG_NO_SCALE, CONFIG_SQRT_DIM };

/* The columns of config_arch.def: how the families differ, besides their tensors. */
struct config_family {
    const char *name;
    enum config_rope_style rope;
    enum config_norm norm;
    enum config_activation activation;
    enum config_embedding_scale embedding_scale;
    uint32_t window;        /* as in struct config */
    uint32_t window_period; /* as in struct config */
    double local_rope_base; /* as in struct config */
    float attention_cap;    /* as in struct config */
    float logit_cap;        /* as in struct config */
    uint32_t wide_layers;   /* models with that many layers scale q.k by 1/sqrt(dim / heads) */
};

struct config {
    enum config_arch arch;
    char name[96]; /* general.name, or "" */
    uint32_t dim, layers, heads, kv_heads, head_size, hidden;
    uint32_t vocab;   /* rows of the embedding */
    uint32_t context; /* positions it was trained with */
    bool tied;        /* there is no output.weight: the embedding is used */
    enum config_norm norm;
    float norm_eps;
    enum config_activation activation;
    float embedding_scale;   /* factor of the embeddings that enter the first layer; 0: none */
    float attention_scale;   /* factor of q.k before softmax; 1/sqrt(head_size) unless the file says
                                otherwise */
    float attention_cap;     /* a score s becomes cap * tanh(s / cap); 0: no cap */
    float logit_cap;         /* the same for logits */
    uint32_t sliding_window; /* positions a token sees in a local layer; 0: no layer is local */
    uint32_t window_period;  /* N: every Nth layer is global; 0: all are local */

    enum config_rope_style rope_style;
    uint32_t rope_dims; /* elements of a head that rotate, even */
    double rope_base;
    double rope_local_base; /* RoPE base of local layers, which are then not scaled; 0: as the
                               others */
    enum config_rope_scaling rope_scaling;
    bool rope_freqs;    /* the file has rope_freqs.weight: divide frequency i by its element i */
    double rope_factor; /* LINEAR and YARN; else 1 */
    uint32_t rope_original_context; /* YARN: the context before stretching */
    double rope_magnitude;          /* cos and sin are multiplied by this; 1 if not YARN */
    double yarn_mix;                /* 1: full YaRN, 0: none */
    double yarn_beta_fast, yarn_beta_slow;
};

/* Reads and checks the metadata of g. RC_UNSUPPORTED for an architecture or feature greta does not
 * run (the message lists what it does), RC_FORMAT for missing or contradictory values; *out is then
 * untouched. Tensors are not compared with it: that is guard_rail.h. */
NODISCARD enum rc config_read(const gguf *g, struct config *out, struct err *e);

/* A shape of config_shape.def by its name; RC_USAGE, with the list of names, if there is none. */
NODISCARD enum rc config_find_shape(const char *name, struct config *out, struct err *e);

/* "llama"; arch is a valid value. */
const char *config_arch_name(enum config_arch arch);
/* False, and *out untouched, if greta does not run that architecture. */
bool config_arch_find(struct gguf_string name, enum config_arch *out);
/* "llama, qwen2, …", for messages. */
const char *config_arch_names(void);
/* The key of the norms' epsilon, after "<arch>.". */
const char *config_epsilon_key(enum config_arch arch);
const char *config_rope_scaling_name(enum config_rope_scaling scaling);

/* Fills what follows from other fields and from the family's row, where it is 0. */
void config_complete(struct config *c);

/* RC_RANGE if sizes contradict each other or are beyond what greta can count; where names the
 * source in the message. */
NODISCARD enum rc config_check(const struct config *c, const char *where, struct err *e);

/* True for a layer whose tokens see sliding_window positions. */
bool config_is_local(const struct config *c, uint32_t layer);

/* ---- the tensors that a configuration implies (config_tensor.def) ---- */

enum config_tensor {
#define CONFIG_TENSOR(id, ...) CONFIG_TENSOR_##id,
#include "model/config_tensor.def"
    CONFIG_TENSOR_COUNT,
};

enum config_tensor_kind { CONFIG_MATRIX, CONFIG_VECTOR, CONFIG_NORM };

struct config_tensor_spec {
    enum config_tensor id;
    int32_t layer; /* -1: not of a layer */
    char name[GGUF_MAX_NAME + 1];
    uint32_t n_dims;
    uint64_t ne[2]; /* ne[1] is 1 for a vector */
    bool required;
    enum config_tensor_kind kind;
};

/* Walks every tensor the architecture must or may have, in file order, from index 0; false past the
 * end. A tied model has no OUTPUT; factors of RoPE are required if the scaling is made of them. */
bool config_tensor_at(const struct config *c, uint64_t index, struct config_tensor_spec *out);

/* The spec of one tensor; layer is ignored for those that are not of a layer. False if the
 * architecture has no such tensor. */
bool config_tensor_spec(const struct config *c, enum config_tensor id, uint32_t layer,
                        struct config_tensor_spec *out);

/* Rows of a fused tensor that serve as a tensor of their own. */
struct config_part {
    enum config_tensor id;
    uint64_t first, rows;
};

/* The parts of a tensor, from index 0; false past the last. Only fused tensors have any. */
bool config_tensor_part(const struct config *c, enum config_tensor whole, unsigned index,
                        struct config_part *out);

/* The name of a role's tensor. */
void config_tensor_name(enum config_tensor id, uint32_t layer, char out[GGUF_MAX_NAME + 1]);

/* The tensor of g with that role, or NULL. */
const struct gguf_tensor *config_find_tensor(const gguf *g, enum config_tensor id, uint32_t layer);

/* True if type may be used for a tensor of that kind. */
bool config_kind_allows(enum config_tensor_kind kind, enum tensor_type type);

/* Parameters: elements of all tensors that are required. */
uint64_t config_parameter_count(const struct config *c);

#endif
