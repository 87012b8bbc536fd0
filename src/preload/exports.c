/* exports.c - every function of hip_api.def under its HIP name.
 *
 * The call of the decorated function is the last thing each one does, with the same arguments, so
 * that the compiler makes it a jump: the audit then sees the program's return address and records
 * the program's call site. A test looks at the call sites. */
#include "preload/preload.h"

#include <string.h>

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    PRELOAD_EXPORT ret name params;                                                                \
    PRELOAD_EXPORT ret name params {                                                               \
        return preload_table(__builtin_return_address(0))->name args;                              \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    PRELOAD_EXPORT void name params;                                                               \
    PRELOAD_EXPORT void name params {                                                              \
        preload_table(__builtin_return_address(0))->name args;                                     \
    }
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

/* What ROCm 5 exports under C++ names only. */
#define HIP_CXX(name, symbol) PRELOAD_EXPORT __typeof__(name) symbol __attribute__((alias(#name)));
#include "hip/hip_cxx.def"
#undef HIP_CXX

typedef void (*any_fn)(void);

void *preload_exported(enum hip_fn fn) {
    static const any_fn exported[HIP_FN_COUNT] = {
#define HIP_FN(ret, name, params, args, cls, since) [HIP_FN_##name] = (any_fn)name,
#define HIP_VOID_FN(name, params, args, cls, since) [HIP_FN_##name] = (any_fn)name,
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
    };
    void *out;
    memcpy(&out, &exported[fn], sizeof out);
    return out;
}
