/* quant_mix.h - which type each tensor of a model gets. Constant data and pure functions. */
#ifndef MODEL_QUANT_MIX_H
#define MODEL_QUANT_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/quant/tensor_type.h"

enum quant_mix_rule { QUANT_MIX_PURE, QUANT_MIX_MEDIUM };

struct quant_mix {
    const char *name;
    uint32_t file_type; /* general.file_type */
    enum tensor_type type;
    enum quant_mix_rule rule;
};

/* A type of tensor_type.def or a row of quant_mix.def; case is ignored. RC_USAGE, with the list of
 * names, if there is none. */
NODISCARD enum rc quant_mix_find(const char *name, const struct quant_mix **out, struct err *e);

/* "F32, F16, ..." for help texts. */
const char *quant_mix_names(void);

/* What the rules need to know of the model. */
struct quant_mix_model {
    uint32_t layers, heads, kv_heads;
    bool tied; /* the embedding serves as output */
};

/* The type for a matrix of that name whose rows have ne0 elements: what the mix says, or the next
 * better one that fits the rows if they are not a whole number of blocks. */
enum tensor_type quant_mix_choose(const struct quant_mix *mix, const struct quant_mix_model *m,
                                  const char *name, uint64_t ne0);

/* True for the tensors that a mix applies to: weight matrices, not small tensors that need
 * precision. */
bool quant_mix_applies(const char *name, uint32_t n_dims);

#endif
