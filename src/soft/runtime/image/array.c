#include "soft/runtime/image/array.h"

#include <pthread.h>
#include <stddef.h>

#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

enum { ARRAYS_MAX = 1 << 16, ALIGNMENT = 256 };
enum { WIDTH_MAX = 16384, HEIGHT_MAX = 16384, DEPTH_MAX = 8192 };
enum { KNOWN_FLAGS = hipArrayLayered | hipArraySurfaceLoadStore | hipArrayTextureGather };

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct soft_array), ARRAYS_MAX);
}

static struct soft_handles *arrays(void) {
    pthread_once(&pool_once, make_pool);
    return pool;
}

struct soft_array *soft_array_of(hipArray_const_t handle) {
    uintptr_t at = (uintptr_t)handle;
    struct soft_array *a = (struct soft_array *)(at - offsetof(struct soft_array, seen));
    return handle && soft_handle_valid(arrays(), a) ? a : NULL;
}

bool soft_has_images(void) {
    return soft_arch_info(soft_settings()->arch)->images;
}

/* ---- formats ---- */

bool soft_channels(const hipChannelFormatDesc *desc, unsigned *bits, unsigned *count) {
    const int channel[4] = { desc->x, desc->y, desc->z, desc->w };
    *count = 0;
    while (*count < 4 && channel[*count])
        (*count)++;
    for (unsigned i = 0; i < 4; i++)
        if (channel[i] != (i < *count ? channel[0] : 0))
            return false;
    *bits = (unsigned)channel[0];
    bool is_float = desc->f == hipChannelFormatKindFloat;
    return (*count == 1 || *count == 2 || *count == 4) && (unsigned)desc->f <= 2 &&
           ((*bits == 8 && !is_float) || *bits == 16 || *bits == 32);
}

/* One row per format: bits of a channel, its kind. */
static const struct {
    hipArray_Format format;
    int bits;
    enum hipChannelFormatKind kind;
} formats[] = {
    { HIP_AD_FORMAT_UNSIGNED_INT8, 8, hipChannelFormatKindUnsigned },
    { HIP_AD_FORMAT_UNSIGNED_INT16, 16, hipChannelFormatKindUnsigned },
    { HIP_AD_FORMAT_UNSIGNED_INT32, 32, hipChannelFormatKindUnsigned },
    { HIP_AD_FORMAT_SIGNED_INT8, 8, hipChannelFormatKindSigned },
    { HIP_AD_FORMAT_SIGNED_INT16, 16, hipChannelFormatKindSigned },
    { HIP_AD_FORMAT_SIGNED_INT32, 32, hipChannelFormatKindSigned },
    { HIP_AD_FORMAT_HALF, 16, hipChannelFormatKindFloat },
    { HIP_AD_FORMAT_FLOAT, 32, hipChannelFormatKindFloat },
};

hipChannelFormatDesc soft_channel_desc(hipArray_Format format, unsigned channels) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == format)
            return (hipChannelFormatDesc){ .x = channels > 0 ? formats[i].bits : 0,
                                           .y = channels > 1 ? formats[i].bits : 0,
                                           .z = channels > 2 ? formats[i].bits : 0,
                                           .w = channels > 3 ? formats[i].bits : 0,
                                           .f = formats[i].kind };
    return (hipChannelFormatDesc){ .f = hipChannelFormatKindNone };
}

bool soft_array_format(const hipChannelFormatDesc *desc, hipArray_Format *out) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].bits == desc->x && formats[i].kind == desc->f) {
            *out = formats[i].format;
            return true;
        }
    return false;
}

hipChannelFormatDesc soft_hipCreateChannelDesc(int x, int y, int z, int w,
                                               enum hipChannelFormatKind f) {
    return (hipChannelFormatDesc){ .x = x, .y = y, .z = z, .w = w, .f = f };
}

/* ---- making and freeing ---- */

/* Height and depth are 0 where the array has fewer dimensions; layers are depth. */
static bool is_shape(hipExtent e, unsigned flags) {
    bool layered = flags & hipArrayLayered;
    return e.width && e.width <= WIDTH_MAX && e.height <= HEIGHT_MAX && e.depth <= DEPTH_MAX &&
           (e.height || !e.depth || layered) && (!layered || e.depth);
}

static hipError_t create(hipArray_t *out, const hipChannelFormatDesc *desc, hipExtent extent,
                         unsigned flags, bool driver) {
    unsigned bits, channels;
    if (!out || !desc || flags & ~(unsigned)KNOWN_FLAGS || !is_shape(extent, flags) ||
        !soft_channels(desc, &bits, &channels))
        return hipErrorInvalidValue;
    if (!soft_has_images())
        return hipErrorNotSupported;
    struct soft_array *a = soft_handle_alloc(arrays());
    struct soft_block *b = NULL;
    if (!a)
        return hipErrorOutOfMemory;
    a->element = (size_t)bits * channels / 8;
    a->rows = extent.height ? extent.height : 1;
    a->slices = extent.depth ? extent.depth : 1;
    a->pitch = extent.width * a->element;
    a->slice = a->pitch * a->rows;
    a->flags = flags;
    a->device = soft_current_device();
    /* Descriptors hold addresses that are multiples of 256; so are those of such sizes. */
    uint64_t bytes = (a->slice * a->slices + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    hipError_t r = soft_memory_alloc(a->device, SOFT_DEVICE, bytes, flags, false, &b);
    if (r != hipSuccess) {
        soft_handle_free(arrays(), a);
        return r;
    }
    a->addr = b->addr;
    a->seen = (struct hipArray){ .data = (void *)(uintptr_t)b->addr,
                                 .desc = *desc,
                                 .type = flags,
                                 .width = (unsigned)extent.width,
                                 .height = (unsigned)extent.height,
                                 .depth = (unsigned)extent.depth,
                                 .NumChannels = channels,
                                 .isDrv = driver };
    (void)soft_array_format(desc, &a->seen.Format);
    *out = &a->seen;
    return hipSuccess;
}

hipError_t soft_hipMallocArray(hipArray_t *array, const hipChannelFormatDesc *desc, size_t width,
                               size_t height, unsigned int flags) {
    return create(array, desc, (hipExtent){ width, height, 0 }, flags, false);
}

hipError_t soft_hipMalloc3DArray(hipArray_t *array, const struct hipChannelFormatDesc *desc,
                                 struct hipExtent extent, unsigned int flags) {
    return create(array, desc, extent, flags, false);
}

hipError_t soft_hipArrayCreate(hipArray_t *pHandle, const HIP_ARRAY_DESCRIPTOR *pAllocateArray) {
    if (!pAllocateArray)
        return hipErrorInvalidValue;
    hipChannelFormatDesc desc =
        soft_channel_desc(pAllocateArray->Format, pAllocateArray->NumChannels);
    return create(pHandle, &desc, (hipExtent){ pAllocateArray->Width, pAllocateArray->Height, 0 },
                  hipArrayDefault, true);
}

hipError_t soft_hipArray3DCreate(hipArray_t *array, const HIP_ARRAY3D_DESCRIPTOR *pAllocateArray) {
    const HIP_ARRAY3D_DESCRIPTOR *d = pAllocateArray;
    if (!d)
        return hipErrorInvalidValue;
    hipChannelFormatDesc desc = soft_channel_desc(d->Format, d->NumChannels);
    return create(array, &desc, (hipExtent){ d->Width, d->Height, d->Depth }, d->Flags, true);
}

hipError_t soft_hipFreeArray(hipArray_t array) {
    struct soft_array *a = soft_array_of(array);
    if (!array)
        return hipErrorInvalidValue;
    if (!a)
        return hipErrorContextIsDestroyed; /* what ROCm says of one that was freed */
    hipError_t r = soft_hipFree((void *)(uintptr_t)a->addr);
    soft_handle_free(arrays(), a);
    return r;
}

/* No array has mipmaps: ROCm makes none on Linux, either. */
hipError_t soft_hipFreeMipmappedArray(hipMipmappedArray_t array) {
    return array ? hipErrorInvalidHandle : hipErrorInvalidValue;
}

hipError_t soft_hipMipmappedArrayDestroy(hipMipmappedArray_t array) {
    return soft_hipFreeMipmappedArray(array);
}

hipError_t soft_hipArrayDestroy(hipArray_t array) {
    return soft_hipFreeArray(array);
}

/* ---- questions ---- */

hipError_t soft_hipArrayGetInfo(hipChannelFormatDesc *desc, hipExtent *extent, unsigned int *flags,
                                hipArray_t array) {
    const struct soft_array *a = soft_array_of(array);
    if (!a)
        return hipErrorInvalidHandle;
    if (desc)
        *desc = a->seen.desc;
    if (extent)
        *extent = (hipExtent){ a->seen.width, a->seen.height, a->seen.depth };
    if (flags)
        *flags = a->flags;
    return hipSuccess;
}

hipError_t soft_hipGetChannelDesc(hipChannelFormatDesc *desc, hipArray_const_t array) {
    const struct soft_array *a = soft_array_of(array);
    if (!desc)
        return hipErrorInvalidValue;
    if (!a)
        return hipErrorInvalidHandle;
    *desc = a->seen.desc;
    return hipSuccess;
}

hipError_t soft_hipArray3DGetDescriptor(HIP_ARRAY3D_DESCRIPTOR *pArrayDescriptor,
                                        hipArray_t array) {
    const struct soft_array *a = soft_array_of(array);
    if (!pArrayDescriptor)
        return hipErrorInvalidValue;
    if (!a)
        return hipErrorInvalidHandle;
    *pArrayDescriptor = (HIP_ARRAY3D_DESCRIPTOR){ .Width = a->seen.width,
                                                  .Height = a->seen.height,
                                                  .Depth = a->seen.depth,
                                                  .Format = a->seen.Format,
                                                  .NumChannels = a->seen.NumChannels,
                                                  .Flags = a->flags };
    return hipSuccess;
}

hipError_t soft_hipArrayGetDescriptor(HIP_ARRAY_DESCRIPTOR *pArrayDescriptor, hipArray_t array) {
    HIP_ARRAY3D_DESCRIPTOR d;
    if (!pArrayDescriptor)
        return hipErrorInvalidValue;
    hipError_t r = soft_hipArray3DGetDescriptor(&d, array);
    if (r == hipSuccess)
        *pArrayDescriptor = (HIP_ARRAY_DESCRIPTOR){
            .Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels
        };
    return r;
}
