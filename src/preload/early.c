/* early.c - every function of hip_api.def as one that does nothing and says that HIP is not
 * initialised. Safe in a signal handler. */
#include "preload/preload.h"

/* The parameters are there for the type alone. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Functions that do not return an error return their value for "not supported". One macro does it
 * all: an argument handed on to another macro is expanded first, and bool may be a macro. */
#define HIP_FN(ret, name, params, args, cls, since)                                                \
    static ret early_##name params {                                                               \
        return _Generic((ret *)NULL, hipError_t *                                                  \
                        : hipErrorNotInitialized, default                                          \
                        : HIP_UNSUPPORTED_##ret);                                                  \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    static void early_##name params {}
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

#pragma GCC diagnostic pop

const struct hip_api *early_table(void) {
    static const struct hip_api table = {
#define HIP_FN(ret, name, params, args, cls, since) .name = early_##name,
#define HIP_VOID_FN(name, params, args, cls, since) .name = early_##name,
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
    };
    return &table;
}
