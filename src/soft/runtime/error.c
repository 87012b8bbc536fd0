/* error.c - how errors reach the program.
 *
 * Two kinds. An ordinary error is the result of one call; the thread remembers the last one for
 * hipGetLastError, and a call that succeeds does not wipe it out. A device error is raised by the
 * device while it works; no call is told until one synchronises (soft_error_observe). That call
 * reports it, and from then on every call of every thread does, until hipDeviceReset of that
 * device. To make that possible, hipSetDevice and hipDeviceReset still work. */
#include <stdatomic.h>
#include <stdio.h>

#include <greta/soft.h>

#include "soft/runtime/error.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

static _Atomic int raised[SOFT_DEVICES_MAX];    /* hipError_t per device */
static _Atomic bool reported[SOFT_DEVICES_MAX]; /* a call has returned it */
static _Atomic int sticky;                      /* hipError_t all calls return */
static _Atomic bool said[HIP_FN_COUNT];         /* soft_missing */

static _Thread_local hipError_t last_error __attribute__((tls_model("initial-exec")));
static _Thread_local int current_device __attribute__((tls_model("initial-exec")));

static _Thread_local uint64_t tag __attribute__((tls_model("initial-exec")));

void greta_soft_tag(uint64_t value) {
    tag = value;
}
uint64_t soft_current_tag(void) {
    return tag;
}

int soft_current_device(void) {
    return current_device;
}
void soft_set_current_device(int device) {
    current_device = device;
}

hipError_t soft_check_device(int device) {
    return device >= 0 && (unsigned)device < soft_settings()->devices ? hipSuccess
                                                                      : hipErrorInvalidDevice;
}

/* A program in the sticky state can still choose the device that it must reset, and reset it. */
static bool works_when_failed(enum hip_fn fn) {
    return fn == HIP_FN_hipDeviceReset || fn == HIP_FN_hipSetDevice;
}

hipError_t soft_enter(enum hip_fn fn) {
    hipError_t r = soft_start();
    if (r != hipSuccess)
        return r;
    int error = atomic_load_explicit(&sticky, memory_order_relaxed);
    return error && !works_when_failed(fn) ? (hipError_t)error : hipSuccess;
}

hipError_t soft_leave(hipError_t result) {
    int error = atomic_load_explicit(&sticky, memory_order_relaxed);
    if (error)
        return (hipError_t)error;
    if (result != hipSuccess && result != hipErrorNotReady)
        last_error = result;
    return result;
}

hipError_t soft_missing(enum hip_fn fn) {
    if (!atomic_exchange(&said[fn], true))
        fprintf(stderr,
                "greta: %s: the software device does not have this function; "
                "returning hipErrorNotSupported\n",
                hip_fn_name(fn));
    return hipErrorNotSupported;
}

void soft_error_raise(int device, hipError_t error) {
    int none = hipSuccess;
    atomic_compare_exchange_strong(&raised[device], &none, (int)error);
}

bool soft_error_raised(int device) {
    return atomic_load_explicit(&raised[device], memory_order_acquire) != hipSuccess;
}

hipError_t soft_error_observe(void) {
    for (unsigned i = 0; i < soft_settings()->devices; i++) {
        int error = atomic_load_explicit(&raised[i], memory_order_acquire);
        if (error) {
            atomic_store(&reported[i], true);
            atomic_store(&sticky, error);
            return (hipError_t)error;
        }
    }
    return hipSuccess;
}

/* What another device has failed with, and a call has reported, stays. */
void soft_error_reset(int device) {
    int other = hipSuccess;
    atomic_store(&raised[device], hipSuccess);
    atomic_store(&reported[device], false);
    for (unsigned i = 0; i < soft_settings()->devices && other == hipSuccess; i++)
        if (atomic_load(&reported[i]))
            other = atomic_load(&raised[i]);
    atomic_store(&sticky, other);
    last_error = hipSuccess;
}

void soft_error_forget(void) {
    for (int i = 0; i < SOFT_DEVICES_MAX; i++)
        atomic_store(&raised[i], hipSuccess);
    atomic_store(&sticky, hipSuccess);
}

hipError_t soft_hipGetLastError(void) {
    hipError_t r = soft_hipPeekAtLastError();
    last_error = hipSuccess;
    return r;
}

hipError_t soft_hipPeekAtLastError(void) {
    int error = atomic_load(&sticky);
    return error ? (hipError_t)error : last_error;
}

hipError_t soft_hipExtGetLastError(void) {
    return soft_hipGetLastError();
}

hip_cstring soft_hipGetErrorName(hipError_t error) {
    return hip_error_name(error);
}
hip_cstring soft_hipGetErrorString(hipError_t error) {
    return hip_error_string(error);
}

hipError_t soft_hipDrvGetErrorName(hipError_t error, const char **text) {
    if (!text)
        return hipErrorInvalidValue;
    *text = hip_error_name(error);
    return hipSuccess;
}

hipError_t soft_hipDrvGetErrorString(hipError_t error, const char **text) {
    if (!text)
        return hipErrorInvalidValue;
    *text = hip_error_string(error);
    return hipSuccess;
}
