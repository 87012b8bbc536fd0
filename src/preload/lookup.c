/* lookup.c - dlsym and dlvsym: for a HIP function of a HIP runtime they return the audited one.
 *
 * Everything else is left to the C library. Where the result depends on the caller (RTLD_NEXT,
 * RTLD_DEFAULT), which the C library tells by the return address, it is reached by a jump. With
 * those two handles, HIP names resolve to this library anyway. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "preload/next.h"
#include "preload/preload.h"

/* HIP_FN_COUNT if the name is no HIP function's. */
static enum hip_fn function_named(const char *name) {
    if (!name)
        return HIP_FN_COUNT;
    if (strncmp(name, "hip", 3) == 0 || strncmp(name, "__hip", 5) == 0)
        return hip_fn_find(name);
#define HIP_CXX(name_, symbol)                                                                     \
    if (strcmp(name, #symbol) == 0)                                                                \
        return HIP_FN_##name_;
    if (strncmp(name, "_Z", 2) == 0) {
#include "hip/hip_cxx.def"
    }
#undef HIP_CXX
    return HIP_FN_COUNT;
}

static bool is_runtimes(const void *function) {
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    return strncmp(file, "libamdhip64.so", 14) == 0 || strncmp(file, "libhiprtc.so", 12) == 0;
}

/* found: what the C library answered; NULL stays NULL, with its dlerror(). */
static void *audited(void *found, enum hip_fn fn) {
    if (!found || fn == HIP_FN_COUNT || !preload_is_wanted() || !is_runtimes(found))
        return found;
    return preload_exported(fn);
}

static bool passes(const void *handle, const char *name) {
    return handle == RTLD_NEXT || handle == RTLD_DEFAULT || preload_me.inside ||
           function_named(name) == HIP_FN_COUNT;
}

PRELOAD_EXPORT void *dlsym(void *restrict handle, const char *restrict name) {
    next_dlsym_fn next = next_dlsym();
    if (passes(handle, name))
        return next(handle, name);
    return audited(next(handle, name), function_named(name));
}

PRELOAD_EXPORT void *dlvsym(void *restrict handle, const char *restrict name,
                            const char *restrict version) {
    next_dlvsym_fn next = next_dlvsym();
    if (passes(handle, name))
        return next(handle, name, version);
    return audited(next(handle, name, version), function_named(name));
}
