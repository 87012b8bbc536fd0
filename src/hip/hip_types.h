/* hip_types.h - the types of the HIP ABI, declared here so that greta builds without ROCm.
 *
 * The names are HIP's own. The lists are data (hip_error.def, hip_enum.def, hip_flag.def,
 * hip_struct*.def), because tests/abi compares each line with the real headers. Where ROCm 5.x
 * and 6.x differ, the plain name is 6.x and HIP5_* is 5.x, except that hipDeviceProp_t is the
 * layout of 5.x and hipDeviceProp_tR0600 that of 6.x. A runtime can tell the two callers apart
 * only by the SONAME they are linked with. What differs:
 *
 *   enumerations  hipMemoryType (hip5_memory_type), hipGraphNodeType (hip5_graph_node_type)
 *   flags         hipDeviceLmemResizeToMax, hipIpcMemLazyEnablePeerAccess
 *   structures    hipDeviceProp_t, HIP_MEMCPY3D, hipMemPoolProps, hipMemAllocationProp,
 *                 hipMipmappedArray, hipArrayMapInfo, hipExternal*Desc, hipExternalSemaphore*Params
 *   attributes    64, 86, 10001, 10003 and 10004 of hipDeviceAttribute_t (name, UUID, arch,
 *                 gcnArch, gcnArchName) are unused in 6.x; no number means two things
 *
 * Do not include this and the headers of ROCm in one file. Only types; no state. */
#ifndef HIP_HIP_TYPES_H
#define HIP_HIP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handles. */
typedef void *hipDeviceptr_t;
typedef int hipDevice_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipUserObject *hipUserObject_t;
typedef struct hipArray *hipArray_t;
typedef const struct hipArray *hipArray_const_t;
typedef struct hipMipmappedArray *hipMipmappedArray_t;
typedef const struct hipMipmappedArray *hipMipmappedArray_const_t;
typedef struct __hip_texture *hipTextureObject_t;
typedef struct __hip_surface *hipSurfaceObject_t;
typedef void *hipExternalMemory_t;
typedef void *hipExternalSemaphore_t;
typedef struct _hipGraphicsResource hipGraphicsResource;
typedef hipGraphicsResource *hipGraphicsResource_t;
typedef struct ihipLibrary_t *hipLibrary_t;
typedef struct ihipKernel_t *hipKernel_t;
typedef struct ihipLinkState_t *hipLinkState_t;
typedef struct _hiprtcProgram *hiprtcProgram;
typedef struct ihiprtcLinkState *hiprtcLinkState;

typedef enum hipError_t {
#define HIP_ERR(name, value, kind, message)  name = value,
#define HIP_ERR6(name, value, kind, message) name = value,
#define HIP_ERR_ALIAS(name, value, primary)  name = value,
#include "hip/hip_error.def"
#undef HIP_ERR
#undef HIP_ERR6
#undef HIP_ERR_ALIAS
} hipError_t;

/* Enumerations. */
#define HIP_ENUM(type)                    typedef enum type {
#define HIP_VALUE(name, value)            name = value,
#define HIP_VALUE6(name, value)           name = value,
#define HIP_VALUE7(name, value)           name = value,
#define HIP_VALUE5(name, value, hip_name) name = value,
#define HIP_ENUM_END(type)                                                                         \
    }                                                                                              \
    type;
#include "hip/hip_enum.def"
#undef HIP_ENUM
#undef HIP_VALUE
#undef HIP_VALUE6
#undef HIP_VALUE7
#undef HIP_VALUE5
#undef HIP_ENUM_END

/* Flags. */
enum {
#define HIP_FLAG(name, value)            name = value,
#define HIP_FLAG6(name, value)           name = value,
#define HIP_FLAG5(name, value, hip_name) name = value,
#include "hip/hip_flag.def"
#undef HIP_FLAG
#undef HIP_FLAG6
#undef HIP_FLAG5
};
#define hipEventReleaseToSystem    0x80000000u
#define hipHostMallocNonCoherent   0x80000000u
#define hipExtHostAllocNonCoherent 0x80000000u

/* Values that stand for a handle, and the keys of the `extra` argument of a launch. */
#define hipStreamLegacy                 ((hipStream_t)1)
#define hipStreamPerThread              ((hipStream_t)2)
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE    ((void *)0x02)
#define HIP_LAUNCH_PARAM_END            ((void *)0x03)

typedef void (*hipHostFn_t)(void *userData);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *userData);
typedef int (*hip_tracer_callback)(int domain, uint32_t operation, void *data);

/* Structures: those that never changed, those of 6.x, and the 5.x layout of the latter. */
#define HIP_UNION(type)                         typedef union type {
#define HIP_FIELD(type, field_type, name)       field_type name;
#define HIP_FIELD5(type, field_type, name)      field_type name;
#define HIP_FIELD6(type, field_type, name)      field_type name;
#define HIP_ARRAY(type, field_type, name, dims) field_type name dims;
#define HIP_BITS(type, field_type, name, bits)  field_type name : bits;
#define HIP_OPEN(kind)                          kind {
#define HIP_CLOSE(name)                                                                            \
    }                                                                                              \
    name;
#define HIP_INNER(type, path, field_type, name)             field_type name;
#define HIP_INNER_ARRAY(type, path, field_type, name, dims) field_type name dims;
#define HIP_END(type)                                                                              \
    }                                                                                              \
    type;
#define HIP_STRUCT(type) typedef struct type {
#include "hip/hip_struct.def"
#include "hip/hip_struct6.def"
#include "hip/hip_struct7.def"
#undef HIP_STRUCT
#define HIP_STRUCT(type, hip_type) typedef struct type {
#include "hip/hip_struct5.def"
#undef HIP_STRUCT
#undef HIP_UNION
#undef HIP_FIELD
#undef HIP_FIELD5
#undef HIP_FIELD6
#undef HIP_ARRAY
#undef HIP_BITS
#undef HIP_OPEN
#undef HIP_CLOSE
#undef HIP_INNER
#undef HIP_INNER_ARRAY
#undef HIP_END

typedef hipDeviceProp_t hipDeviceProp_tR0000;

/* What 6.x calls launch attributes, 5.x called kernel node attributes. */
typedef hipLaunchAttributeID hipKernelNodeAttrID;
typedef hipLaunchAttributeID hipStreamAttrID;
typedef hipLaunchAttributeValue hipStreamAttrValue;

/* 7.x passes these by pointer; nothing here looks inside. */
typedef struct hipMemcpyAttributes hipMemcpyAttributes;
typedef struct hipMemcpy3DBatchOp hipMemcpy3DBatchOp;
typedef struct hipMemcpy3DPeerParms hipMemcpy3DPeerParms;

/* One word for each return type, as hip_api.def needs it. */
typedef const char *hip_cstring;
typedef void **hip_fatbin_handle;

/* The wrapper that __hipRegisterFatBinary is given (section .hipFatBinSegment). */
struct hip_fatbin_wrapper {
    uint32_t magic; /* HIP_FATBIN_MAGIC */
    uint32_t version;
    const void *binary; /* __CLANG_OFFLOAD_BUNDLE__ */
    void *reserved;
};
enum { HIP_FATBIN_MAGIC = 0x48495046, HIP_FATBIN_VERSION = 1 };

#endif
