/* tensor_type.h - the types of tensor elements: names, block sizes, arithmetic on sizes.
 *
 * The list is tensor_type.def. A tensor is stored as blocks of a fixed number of elements; a row
 * (dimension 0) is a whole number of blocks. Everything here is constant data: thread-safe. */
#ifndef MODEL_TENSOR_TYPE_H
#define MODEL_TENSOR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* Values are those of the file format. */
enum tensor_type {
#define TENSOR_TYPE(name, number, elements, bytes, use) TENSOR_TYPE_##name = (number),
#include "model/quant/tensor_type.def"
};

enum tensor_type_use { TENSOR_TYPE_STORED, TENSOR_TYPE_COMPUTE };

struct tensor_type_info {
    enum tensor_type type;
    const char *name;        /* as in "Q4_K" */
    uint32_t block_elements; /* elements per block, 1 for plain numbers */
    uint32_t block_bytes;    /* bytes per block */
    enum tensor_type_use use;
};

/* NULL if the number names no type. */
const struct tensor_type_info *tensor_type_find(uint32_t number);

/* Case is ignored; NULL if there is no such name. */
const struct tensor_type_info *tensor_type_find_name(const char *name);

/* Walks the list: the type after `previous` (NULL: the first); NULL at the end. */
const struct tensor_type_info *tensor_type_next(const struct tensor_type_info *previous);

/* "Q4_K", or "?" for a number that names no type. */
const char *tensor_type_name(enum tensor_type type);

/* Types that greta decodes, encodes and runs. */
bool tensor_type_is_computable(enum tensor_type type);

/* F32, F16 or BF16. */
bool tensor_type_is_float(enum tensor_type type);

/* Bytes of a row of n elements; 0 if the type is unknown, n is not a whole number of blocks, or
 * the result does not fit. */
uint64_t tensor_type_row_bytes(enum tensor_type type, uint64_t n);

#endif
