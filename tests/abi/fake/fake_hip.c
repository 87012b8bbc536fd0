/* fake_hip.c - a libamdhip64 of a few functions, for the tests of the loader.
 *
 * Compiled once per folder and SONAME with
 *   FAKE_DEVICES  what hipGetDeviceCount counts, or
 *   FAKE_ERROR    the error it returns
 *   FAKE_SOFT     exports greta_soft_version
 *   FAKE_VERSION  what hipRuntimeGetVersion gives
 *   FAKE_EMPTY    exports nothing of this */
#include "hip/hip_types.h"

#define EXPORT __attribute__((visibility("default")))

#ifdef FAKE_EMPTY

EXPORT void fake_nothing(void);

void fake_nothing(void) {}

#else

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 0
#endif
#ifndef FAKE_ERROR
#define FAKE_ERROR hipSuccess
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION 60342134
#endif

static hipError_t last_error = hipSuccess;

EXPORT hipError_t hipGetDeviceCount(int *count);
EXPORT hipError_t hipGetLastError(void);
EXPORT hipError_t hipRuntimeGetVersion(int *version);
EXPORT hipError_t hipFree(void *ptr);
EXPORT hipError_t fake_peek(void);

hipError_t hipGetDeviceCount(int *count) {
    *count = FAKE_DEVICES;
    last_error = FAKE_ERROR;
    return FAKE_ERROR;
}

hipError_t hipGetLastError(void) {
    hipError_t last = last_error;
    last_error = hipSuccess;
    return last;
}

/* What the test looks at; hipPeekAtLastError is one of the functions that are not there. */
hipError_t fake_peek(void) {
    return last_error;
}

hipError_t hipRuntimeGetVersion(int *version) {
    *version = FAKE_VERSION;
    return hipSuccess;
}

hipError_t hipFree(void *ptr) {
    return ptr ? hipErrorInvalidValue : hipSuccess;
}

#ifdef FAKE_SOFT
EXPORT const char *greta_soft_version(void);
const char *greta_soft_version(void) {
    return "fake";
}
#endif

#endif
