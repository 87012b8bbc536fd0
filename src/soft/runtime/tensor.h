/* tensor.h - the parts of blocks that the program has named (greta_soft_name_range()).
 *
 * Kept apart from the table of blocks: few programs have names, and only launches of machine code
 * ask for them. Thread-safe. */
#ifndef SOFT_RUNTIME_TENSOR_H
#define SOFT_RUNTIME_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* The named range that contains address; false if there is none. */
bool soft_tensor_find(uint64_t address, uint64_t *start, uint64_t *bytes);

/* Memory is freed: drops the names in it. */
void soft_tensor_forget(uint64_t address, uint64_t bytes);

#endif
