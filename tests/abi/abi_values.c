/* Compiled twice, see abi_values.h; ABI_REAL chooses the real headers. */
#include "abi_values.h"

#ifdef ABI_REAL
#include "abi_real.h"
#define abi_values abi_values_real
#else
#include "hip/hip_types.h"
#include <hip/hip_version.h>
#define abi_values abi_values_ours
#endif

#include <string.h>

#ifdef ABI_REAL
int abi_real_major(void) {
    return HIP_VERSION_MAJOR;
}
#define OURS_OR_REAL(ours, real) real
#else
#define OURS_OR_REAL(ours, real) ours
#endif

#define CONSTANT(name, value) row(context, ABI_CONSTANT, name, (long long)(value));
#define NOTHING(...)

static void errors(abi_row_fn *row, void *context) {
#define HIP_ERR(name, value, kind, message) CONSTANT(#name, name)
#if HIP_VERSION_MAJOR > 5
#define HIP_ERR6(name, value, kind, message) CONSTANT(#name, name)
#else
#define HIP_ERR6(name, value, kind, message)
#endif
#define HIP_ERR_ALIAS(name, value, primary) CONSTANT(#name, name)
#include "hip/hip_error.def"
}

static void constants(abi_row_fn *row, void *context) {
#define HIP_ENUM(type)
#define HIP_ENUM_END(type)
#define HIP_VALUE(name, value) CONSTANT(#name, name)
#define HIP_FLAG(name, value)  CONSTANT(#name, name)
#if HIP_VERSION_MAJOR == 5
#define HIP_VALUE5(name, value, hip_name) CONSTANT(#hip_name, OURS_OR_REAL(name, hip_name))
#define HIP_FLAG5(name, value, hip_name)  CONSTANT(#hip_name, OURS_OR_REAL(name, hip_name))
#else
#define HIP_VALUE5(name, value, hip_name)
#define HIP_FLAG5(name, value, hip_name)
#endif
#if HIP_VERSION_MAJOR > 5
#define HIP_VALUE6(name, value) CONSTANT(#name, name)
#define HIP_FLAG6(name, value)  CONSTANT(#name, name)
#else
#define HIP_VALUE6(name, value)
#define HIP_FLAG6(name, value)
#endif
#if HIP_VERSION_MAJOR > 6
#define HIP_VALUE7(name, value) CONSTANT(#name, name)
#else
#define HIP_VALUE7(name, value)
#endif
#include "hip/hip_enum.def"
#include "hip/hip_flag.def"
    CONSTANT("hipEventReleaseToSystem", hipEventReleaseToSystem)
    CONSTANT("hipHostMallocNonCoherent", hipHostMallocNonCoherent)
    CONSTANT("hipStreamPerThread", (size_t)hipStreamPerThread)
    CONSTANT("HIP_LAUNCH_PARAM_BUFFER_POINTER", (size_t)HIP_LAUNCH_PARAM_BUFFER_POINTER)
    CONSTANT("HIP_LAUNCH_PARAM_BUFFER_SIZE", (size_t)HIP_LAUNCH_PARAM_BUFFER_SIZE)
    CONSTANT("HIP_LAUNCH_PARAM_END", (size_t)HIP_LAUNCH_PARAM_END)
}

#define SIZE(name, what) row(context, ABI_SIZE, name, (long long)sizeof(what));
#define FIELD(type, path, name)                                                                    \
    row(context, ABI_OFFSET, name, (long long)offsetof(type, path));                               \
    SIZE(name, ((type *)0)->path)

static long long first_word(const void *object) {
    unsigned word;
    memcpy(&word, object, sizeof(word));
    return word;
}

static void structures(abi_row_fn *row, void *context) {
#define HIP_FIELD(type, field_type, name)                   FIELD(type, name, #type "." #name)
#define HIP_ARRAY(type, field_type, name, dims)             FIELD(type, name, #type "." #name)
#define HIP_INNER(type, path, field_type, name)             FIELD(type, path name, #type "." #path #name)
#define HIP_INNER_ARRAY(type, path, field_type, name, dims) HIP_INNER(type, path, field_type, name)
#define HIP_OPEN(kind)
#define HIP_CLOSE(name)
#define HIP_END(type)
#define HIP_BITS(type, field_type, name, bits)                                                     \
    {                                                                                              \
        type object;                                                                               \
        memset(&object, 0, sizeof(object));                                                        \
        object.name = 1;                                                                           \
        row(context, ABI_OFFSET, #type "." #name, first_word(&object));                            \
    }
#define HIP_STRUCT(type) SIZE(#type, type)
#define HIP_UNION(type)  SIZE(#type, type)
#if HIP_VERSION_MAJOR == 5
#define HIP_FIELD5 HIP_FIELD
#define HIP_FIELD6 NOTHING
#else
#define HIP_FIELD5 NOTHING
#define HIP_FIELD6 HIP_FIELD
#endif
#include "hip/hip_struct.def"
#if HIP_VERSION_MAJOR > 5
#include "hip/hip_struct6.def"
#endif
#if HIP_VERSION_MAJOR > 6
#include "hip/hip_struct7.def"
#endif
#if HIP_VERSION_MAJOR == 5
#undef HIP_STRUCT
#define HIP_STRUCT(type, hip_type) SIZE(#type, type)
#include "hip/hip_struct5.def"
#endif
}

void abi_values(abi_row_fn *row, void *context) {
    errors(row, context);
    constants(row, context);
    structures(row, context);
}
