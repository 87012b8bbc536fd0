/* entry.c - the exported ABI: every function of hip_api.def under its HIP name.
 *
 * Each one starts the runtime, lets a sticky device error answer, calls soft_hipXxx and remembers
 * an error for hipGetLastError. The references are weak: a function the runtime does not implement
 * answers with its name and hipErrorNotSupported. The version script comes from hip_api.def too. */
#include <greta/soft.h>

#include "greta_build.h"
#include "soft/runtime/error.h"
#include "soft/runtime/pool.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/start.h"

#define EXPORT __attribute__((visibility("default")))

int soft_hip_major(void) {
    return SOFT_HIP_MAJOR;
}

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    extern __typeof__(soft_##name) soft_##name __attribute__((weak));
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    extern __typeof__(soft_##name) soft_##name __attribute__((weak));
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

/* The functions that report errors neither fail with the device nor count as calls that failed. */
#define REPORTS_ERRORS(cls) (HIP_CLASS_##cls == HIP_CLASS_ERROR)

#define CALL_hipError_t(name, args, cls)                                                           \
    do {                                                                                           \
        hipError_t r = soft_enter(HIP_FN_##name);                                                  \
        if (REPORTS_ERRORS(cls) && soft_##name)                                                    \
            return soft_##name args;                                                               \
        if (r == hipSuccess)                                                                       \
            r = soft_##name ? soft_##name args : soft_missing(HIP_FN_##name);                      \
        return soft_leave(r);                                                                      \
    } while (0)

/* Functions with other results do not take part in HIP's error state. In a forked child the texts
 * of errors are all that is left of them: the others take locks. */
#define WORKS(cls) (REPORTS_ERRORS(cls) || !soft_is_forked())
#define CALL_OTHER(ret, name, args, cls)                                                           \
    do {                                                                                           \
        if (soft_##name && WORKS(cls))                                                             \
            return soft_##name args;                                                               \
        if (!soft_##name)                                                                          \
            soft_missing(HIP_FN_##name);                                                           \
        return HIP_UNSUPPORTED_##ret;                                                              \
    } while (0)
#define CALL_hiprtcResult(name, args, cls)         CALL_OTHER(hiprtcResult, name, args, cls)
#define CALL_hip_cstring(name, args, cls)          CALL_OTHER(hip_cstring, name, args, cls)
#define CALL_hip_fatbin_handle(name, args, cls)    CALL_OTHER(hip_fatbin_handle, name, args, cls)
#define CALL_int(name, args, cls)                  CALL_OTHER(int, name, args, cls)
#define CALL_bool(name, args, cls)                 CALL_OTHER(bool, name, args, cls)
#define CALL_hipChannelFormatDesc(name, args, cls) CALL_OTHER(hipChannelFormatDesc, name, args, cls)

/* A launch without a result takes part in HIP's error state by itself. */
#define ENTERS(cls) (HIP_CLASS_##cls == HIP_CLASS_LAUNCH)

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    EXPORT ret name params;                                                                        \
    EXPORT ret name params {                                                                       \
        CALL_##ret(name, args, cls);                                                               \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    EXPORT void name params;                                                                       \
    EXPORT void name params {                                                                      \
        if (!soft_##name)                                                                          \
            soft_missing(HIP_FN_##name);                                                           \
        else if (WORKS(cls) || ENTERS(cls))                                                        \
            soft_##name args;                                                                      \
    }
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

/* What ROCm 5 exports under C++ names only. */
#define HIP_CXX(name, symbol) EXPORT __typeof__(name) symbol __attribute__((alias(#name)));
#include "hip/hip_cxx.def"
#undef HIP_CXX

const char *greta_soft_version(void) {
    return GRETA_VERSION;
}
void greta_soft_set_threads(unsigned threads) {
    soft_pool_set_threads(threads);
}
