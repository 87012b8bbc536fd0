/* abi_signatures.h - see abi_signatures.c, which compares the prototypes when it is compiled. */
#ifndef ABI_SIGNATURES_H
#define ABI_SIGNATURES_H

#include <stddef.h>

/* How many functions were compared. */
size_t abi_signatures_compared(void);

#endif
