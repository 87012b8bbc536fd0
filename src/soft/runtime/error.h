/* error.h - last and sticky errors, and the state that every thread has: its device, its tag.
 * Thread-safe. */
#ifndef SOFT_RUNTIME_ERROR_H
#define SOFT_RUNTIME_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "hip/hip_api.h"
#include "hip/hip_types.h"

/* First and last step of every exported function (src/soft/entry). enter returns the sticky error
 * once a synchronising call has reported it; leave remembers result for hipGetLastError. */
hipError_t soft_enter(enum hip_fn fn);
hipError_t soft_leave(hipError_t result);
hipError_t soft_missing(enum hip_fn fn); /* says the name once; hipErrorNotSupported */

/* A device failed. It becomes visible to calls at the next soft_error_observe(). */
void soft_error_raise(int device, hipError_t error);
bool soft_error_raised(int device);
/* greta_soft_tag() of this thread. */
uint64_t soft_current_tag(void);
/* What a synchronising call ends with: hipSuccess, or the device error, from now on sticky. */
hipError_t soft_error_observe(void);
void soft_error_reset(int device);
/* A forked child: whatever failed was the parent's. */
void soft_error_forget(void);

/* This thread's current device. */
int soft_current_device(void);
void soft_set_current_device(int device);
/* hipSuccess, or hipErrorInvalidDevice */
hipError_t soft_check_device(int device);

#endif
