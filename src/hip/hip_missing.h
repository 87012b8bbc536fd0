/* hip_missing.h - what a table holds for a function that the loaded library lacks.
 *
 * The entry has the function's own type. Called, it says once per process and function, on standard
 * error, "greta: hipFoo: not in LIBRARY; returning hipErrorNotSupported", and returns that; errno
 * and the runtime's last error stay as they were. Thread-safe. */
#ifndef HIP_HIP_MISSING_H
#define HIP_HIP_MISSING_H

#include "hip/hip_api.h"

typedef void (*hip_any_fn)(void);

/* The entry for fn; library (copied) is named in the message. If several libraries lack the same
 * function, the one named last is. fn must be a function. */
hip_any_fn hip_missing_entry(enum hip_fn fn, const char *library);

#endif
