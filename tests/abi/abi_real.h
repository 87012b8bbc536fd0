/* abi_real.h - the real HIP headers, with what hip_api.def and hip_struct*.def name besides. */
#ifndef ABI_REAL_H
#define ABI_REAL_H

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
#include <hip/hiprtc.h>
#if __has_include(<hip/hip_deprecated.h>)
#include <hip/hip_deprecated.h>
#endif
#include <stdbool.h>
#include <stddef.h>

typedef const char *hip_cstring;
typedef void **hip_fatbin_handle;

/* Tags without a typedef. */
typedef struct hipResourceViewDesc hipResourceViewDesc;
typedef struct surfaceReference surfaceReference;

/* HIP5_x is what the headers of 5.x call x. */
#if HIP_VERSION_MAJOR == 5
#define HIP_STRUCT(type, hip_type) typedef hip_type type;
#define HIP_FIELD(type, field_type, name)
#define HIP_ARRAY(type, field_type, name, dims)
#define HIP_OPEN(kind)
#define HIP_CLOSE(name)
#define HIP_INNER(type, path, field_type, name)
#define HIP_INNER_ARRAY(type, path, field_type, name, dims)
#define HIP_END(type)
#include "hip/hip_struct5.def"
#undef HIP_STRUCT
#undef HIP_FIELD
#undef HIP_ARRAY
#undef HIP_OPEN
#undef HIP_CLOSE
#undef HIP_INNER
#undef HIP_INNER_ARRAY
#undef HIP_END
#endif

#endif
