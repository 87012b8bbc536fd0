/* hip_api.h - the HIP API as a table of functions, and what is known about each of them.
 *
 * Everything here comes from hip_api.def and hip_error.def. A struct hip_api is plain data: it
 * belongs to the code that fills it, and may be copied. The look-up functions are pure and
 * thread-safe. */
#ifndef HIP_HIP_API_H
#define HIP_HIP_API_H

#include "hip/hip_types.h"

/* One pointer per function; none is NULL in a table that hip_load() has filled. */
struct hip_api {
#define HIP_FN(ret, name, params, args, cls, since) ret(*name) params;
#define HIP_VOID_FN(name, params, args, cls, since) void(*name) params;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
};

enum hip_fn {
#define HIP_FN(ret, name, params, args, cls, since) HIP_FN_##name,
#define HIP_VOID_FN(name, params, args, cls, since) HIP_FN_##name,
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
    HIP_FN_COUNT
};

/* The classes of hip_api.def, where they are explained. */
enum hip_class {
    HIP_CLASS_DEVICE,
    HIP_CLASS_ERROR,
    HIP_CLASS_ALLOC,
    HIP_CLASS_FREE,
    HIP_CLASS_COPY,
    HIP_CLASS_SET,
    HIP_CLASS_LAUNCH,
    HIP_CLASS_SYNC,
    HIP_CLASS_STREAM,
    HIP_CLASS_EVENT,
    HIP_CLASS_MODULE,
    HIP_CLASS_GRAPH,
    HIP_CLASS_QUERY,
    HIP_CLASS_RTC,
    HIP_CLASS_REGISTER,
    HIP_CLASS_COUNT
};

/* The traits of hip_api.def, likewise. */
enum hip_trait { HIP_TRAIT_NONE, HIP_TRAIT_SYMBOL, HIP_TRAIT_INSPECTS };

/* The kinds of hip_error.def, likewise. */
enum hip_error_kind { HIP_ERROR_PLAIN, HIP_ERROR_STICKY, HIP_ERROR_ANSWER };

/* What a function that cannot do its work returns, by return type. Texts are never NULL, because
 * callers print them unread. */
#define HIP_UNSUPPORTED_hipError_t           hipErrorNotSupported
#define HIP_UNSUPPORTED_hiprtcResult         HIPRTC_ERROR_INTERNAL_ERROR
#define HIP_UNSUPPORTED_hip_cstring          ""
#define HIP_UNSUPPORTED_hip_fatbin_handle    NULL
#define HIP_UNSUPPORTED_int                  (-1)
#define HIP_UNSUPPORTED_bool                 false
#define HIP_UNSUPPORTED_hipChannelFormatDesc ((hipChannelFormatDesc){ 0 })

/* "hipMalloc"; "?" for a number that is no function. */
const char *hip_fn_name(enum hip_fn fn);

/* The class of a function; HIP_CLASS_COUNT for a number that is no function. */
enum hip_class hip_fn_class(enum hip_fn fn);

/* What hip_api.def says of it besides; HIP_TRAIT_NONE if nothing. */
enum hip_trait hip_fn_trait(enum hip_fn fn);

/* The symbol version node, as "hip_4.2"; "?" for a number that is no function. */
const char *hip_fn_version(enum hip_fn fn);

/* The function of that name, HIP_FN_COUNT if there is none. O(log n). */
enum hip_fn hip_fn_find(const char *name);

/* "ALLOC"; "?" for a number that is no class. */
const char *hip_class_name(enum hip_class cls);

/* What hipGetErrorName and hipGetErrorString give: "hipErrorInvalidValue", "invalid argument".
 * A code that HIP does not know is "hipErrorUnknown", "unknown error", as in ROCm. */
const char *hip_error_name(hipError_t error);
const char *hip_error_string(hipError_t error);

/* PLAIN for a code that HIP does not know. */
enum hip_error_kind hip_error_kind(hipError_t error);

/* True for errors that every call returns from then on, until the device is reset. */
bool hip_error_is_sticky(hipError_t error);

#endif
