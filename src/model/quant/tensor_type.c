#include "model/quant/tensor_type.h"

#include <stddef.h>
#include <strings.h>

/* Indexed by the number in the file; a hole has no name. Two lines with one number fail the
 * build (-Woverride-init, part of -Wextra). */
static const struct tensor_type_info types[] = {
#define TENSOR_TYPE(name, number, elements, bytes, use)                                            \
    [number] = { TENSOR_TYPE_##name, #name, elements, bytes, TENSOR_TYPE_##use },
#include "model/quant/tensor_type.def"
};

enum { TYPE_LIMIT = sizeof types / sizeof *types };

const struct tensor_type_info *tensor_type_find(uint32_t number) {
    return number < TYPE_LIMIT && types[number].name ? &types[number] : NULL;
}

const struct tensor_type_info *tensor_type_next(const struct tensor_type_info *previous) {
    for (uint32_t i = previous ? (uint32_t)previous->type + 1 : 0; i < TYPE_LIMIT; i++)
        if (types[i].name)
            return &types[i];
    return NULL;
}

const struct tensor_type_info *tensor_type_find_name(const char *name) {
    for (const struct tensor_type_info *t = tensor_type_next(NULL); t; t = tensor_type_next(t))
        if (strcasecmp(t->name, name) == 0)
            return t;
    return NULL;
}

const char *tensor_type_name(enum tensor_type type) {
    const struct tensor_type_info *t = tensor_type_find(type);
    return t ? t->name : "?";
}

bool tensor_type_is_computable(enum tensor_type type) {
    const struct tensor_type_info *t = tensor_type_find(type);
    return t && t->use == TENSOR_TYPE_COMPUTE;
}

bool tensor_type_is_float(enum tensor_type type) {
    return type == TENSOR_TYPE_F32 || type == TENSOR_TYPE_F16 || type == TENSOR_TYPE_BF16;
}

uint64_t tensor_type_row_bytes(enum tensor_type type, uint64_t n) {
    const struct tensor_type_info *t = tensor_type_find(type);
    uint64_t bytes;
    if (!t || n % t->block_elements != 0 ||
        __builtin_mul_overflow(n / t->block_elements, t->block_bytes, &bytes))
        return 0;
    return bytes;
}
