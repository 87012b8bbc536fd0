/* decorate.h - puts the hooks in front of a HIP table.
 *
 * Every function of hip_api.def gets a decorated twin, generated in decorate.c: it runs the
 * function's hook of hook_table.h (or, if it has none, records a CALL), calls the runtime, runs the
 * hook's second half, and returns what the runtime returned with errno as the runtime left it. A
 * function that is added to hip_api.def is therefore audited at once; one line in hook_table.h
 * makes the audit understand it. */
#ifndef AUDIT_DECORATE_H
#define AUDIT_DECORATE_H

#include "hip/hip_api.h"

/* Replaces all entries of the table. The originals are in audit.raw already. */
void decorate_table(struct hip_api *table);

#endif
