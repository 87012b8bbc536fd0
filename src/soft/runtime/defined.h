/* defined.h - which bytes of device memory something has written, for GRETA_SOFT_CHECK=init.
 *
 * Only memory of hipMalloc and its kin can be undefined: what the host reaches, and what belongs to
 * modules, is defined. Copies and sets define what they write, whatever they copy; kernels of host
 * code define everything, because where they write is unknown. Thread-safe. */
#ifndef SOFT_RUNTIME_DEFINED_H
#define SOFT_RUNTIME_DEFINED_H

#include <stdbool.h>
#include <stdint.h>

/* Nothing is kept, and everything is defined, unless GRETA_SOFT_CHECK asks for it. */
void soft_defined_write(uint64_t address, uint64_t bytes);
void soft_defined_write_all(void);
/* The block that starts there is freed. */
void soft_defined_forget(uint64_t address);
/* Has nothing written any of these bytes, which lie in one block? */
bool soft_defined_is_undefined(uint64_t address, uint64_t bytes);

#endif
