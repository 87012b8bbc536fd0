/* found.h - asking the runtime about memory that the ledger does not know. */
#ifndef AUDIT_FOUND_H
#define AUDIT_FOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_types.h"

/* Asks what lies at address and enters the answer into the ledger. False if the runtime does not
 * know it either; *error is then hipSuccess, or the device error that keeps it from answering. The
 * program's own last error is left as it was where HIP allows that. */
bool found_at(uint64_t address, hipError_t *error);

#endif
