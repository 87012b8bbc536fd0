#include "soft/runtime/image/texture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/error.h"
#include "soft/runtime/image/array.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/start.h"

enum { DWORDS = 16, TYPE_AT = 8, ORDER_AT, WIDTH_AT, SAMPLER_AT = 12 };
enum { BASE_ALIGNMENT = 256, LINEAR_MAX = 1 << 27, EXTENT_MAX = 16384, PITCH_MAX = 65536 };

struct object {
    struct object *next;
    struct soft_block *block;
    bool is_surface, has_view;
    hipResourceDesc resource;
    hipTextureDesc texture;
    hipResourceViewDesc view;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;

/* ---- descriptors ---- */

/* Rows of texels, wherever they lie. */
struct surface {
    uint64_t base;
    hipChannelFormatDesc desc;
    size_t width, height, depth; /* height and depth may be 0 */
    size_t pitch;                /* elements */
    bool layered;
};

/* Number formats of gfx9, and what the device libraries call type and width together. */
enum { UNORM = 0, SNORM = 1, UINT = 4, SINT = 5, FLOAT = 7 };
enum { HSA_SNORM8 = 0, HSA_UNORM8 = 2, HSA_SINT8 = 8, HSA_UINT8 = 11, HSA_HALF = 14, HSA_FLOAT };

static unsigned data_format(unsigned bits, unsigned channels) {
    static const uint8_t formats[3][5] = {
        { 0, 1, 3, 0, 10 },  /* 8 bits: 8, 8_8, 8_8_8_8 */
        { 0, 2, 5, 0, 12 },  /* 16 bits */
        { 0, 4, 11, 0, 14 }, /* 32 bits */
    };
    return formats[bits / 16][channels];
}

static unsigned number_format(const hipChannelFormatDesc *d, bool normalised) {
    if (d->f == hipChannelFormatKindFloat)
        return FLOAT;
    bool is_signed = d->f == hipChannelFormatKindSigned;
    return normalised ? is_signed ? SNORM : UNORM : is_signed ? SINT : UINT;
}

static uint32_t hsa_type(const hipChannelFormatDesc *d, bool normalised) {
    uint32_t size = (uint32_t)d->x / 16; /* 8, 16, 32 bits: 0, 1, 2 */
    bool is_signed = d->f == hipChannelFormatKindSigned;
    if (d->f == hipChannelFormatKindFloat)
        return d->x == 16 ? HSA_HALF : HSA_FLOAT;
    if (normalised)
        return (is_signed ? HSA_SNORM8 : HSA_UNORM8) + size;
    return (is_signed ? HSA_SINT8 : HSA_UINT8) + size;
}

/* R, RG, RGBA, and which channel each result is: channels that are not there are 0, 0 and 1. */
static uint32_t hsa_order(unsigned channels) {
    return channels == 1 ? 1 : channels == 2 ? 3 : 8;
}
static uint32_t selects(unsigned channels) {
    enum { ZERO = 0, ONE = 1, RED = 4, GREEN, BLUE, ALPHA };
    unsigned y = channels > 1 ? GREEN : ZERO, z = channels > 2 ? BLUE : ZERO;
    unsigned w = channels > 3 ? ALPHA : ONE;
    return RED | y << 3 | z << 6 | w << 9;
}

static void fill_names(uint32_t d[DWORDS], const hipChannelFormatDesc *desc, unsigned channels,
                       bool normalised, size_t width) {
    d[TYPE_AT] = hsa_type(desc, normalised);
    d[ORDER_AT] = hsa_order(channels);
    d[WIDTH_AT] = (uint32_t)width;
}

static hipError_t fill_image(uint32_t d[DWORDS], const struct surface *s, bool normalised) {
    enum { TYPE_1D = 8, LAYERED = 4 }; /* 1D, 2D, 3D one after the other; their arrays 4 further */
    unsigned bits, channels;
    uint32_t rows = s->height ? (uint32_t)s->height : 1, deep = s->depth ? (uint32_t)s->depth : 1;
    if (!soft_channels(&s->desc, &bits, &channels) || s->base % BASE_ALIGNMENT || !s->width ||
        s->width > EXTENT_MAX || rows > EXTENT_MAX || s->pitch > PITCH_MAX || s->pitch < s->width)
        return hipErrorInvalidValue;
    unsigned type = TYPE_1D + (s->height ? 1u : 0) + (s->depth && !s->layered ? 1u : 0) +
                    (s->layered ? LAYERED : 0u);
    d[0] = (uint32_t)(s->base >> 8);
    d[1] = (uint32_t)(s->base >> 40) | data_format(bits, channels) << 20 |
           number_format(&s->desc, normalised) << 26;
    d[2] = (uint32_t)(s->width - 1) | (rows - 1) << 14;
    d[3] = selects(channels) | type << 28;
    d[4] = (deep - 1) | (uint32_t)(s->pitch - 1) << 13;
    fill_names(d, &s->desc, channels, normalised, s->width);
    return hipSuccess;
}

static hipError_t fill_buffer(uint32_t d[DWORDS], const hipResourceDesc *r, bool normalised) {
    uint64_t base = (uint64_t)(uintptr_t)r->res.linear.devPtr;
    unsigned bits, channels;
    if (!base || !soft_channels(&r->res.linear.desc, &bits, &channels))
        return hipErrorInvalidValue;
    size_t element = (size_t)bits * channels / 8, count = r->res.linear.sizeInBytes / element;
    if (!count || count > LINEAR_MAX)
        return hipErrorInvalidValue;
    d[0] = (uint32_t)base;
    d[1] = (uint32_t)(base >> 32) | (uint32_t)element << 16;
    d[2] = (uint32_t)count;
    d[3] = selects(channels) | number_format(&r->res.linear.desc, normalised) << 12 |
           data_format(bits, channels) << 15;
    fill_names(d, &r->res.linear.desc, channels, normalised, count);
    return hipSuccess;
}

static void fill_sampler(uint32_t d[DWORDS], const hipTextureDesc *t) {
    static const uint32_t clamps[] = { [hipAddressModeWrap] = 0,
                                       [hipAddressModeMirror] = 1,
                                       [hipAddressModeClamp] = 2,
                                       [hipAddressModeBorder] = 6 };
    uint32_t *s = d + SAMPLER_AT;
    for (unsigned i = 0; i < 3; i++) {
        unsigned mode = (unsigned)t->addressMode[i] <= hipAddressModeBorder ? t->addressMode[i] : 0;
        if (!t->normalizedCoords && (mode == hipAddressModeWrap || mode == hipAddressModeMirror))
            mode = hipAddressModeClamp; /* only coordinates from 0 to 1 repeat */
        s[0] |= clamps[mode] << 3 * i;
    }
    if (!t->normalizedCoords)
        s[0] |= 1u << 15;
    if (t->filterMode == hipFilterModeLinear)
        s[2] |= 1u << 20 | 1u << 22; /* magnifying and minifying */
    const float *c = t->borderColor; /* black, opaque black or opaque white: there is no other */
    if (c[3] == 1.0f)
        s[3] |= (c[0] == 1.0f && c[1] == 1.0f && c[2] == 1.0f ? 2u : 1u) << 30;
}

static hipError_t fill_array(uint32_t d[DWORDS], hipArray_t handle, bool normalised) {
    const struct soft_array *a = soft_array_of(handle);
    if (!a)
        return hipErrorInvalidValue;
    struct surface s = { .base = a->addr,
                         .desc = a->seen.desc,
                         .width = a->seen.width,
                         .height = a->seen.height,
                         .depth = a->seen.depth,
                         .pitch = a->seen.width,
                         .layered = a->flags & hipArrayLayered };
    return fill_image(d, &s, normalised);
}

static hipError_t fill_pitched(uint32_t d[DWORDS], const hipResourceDesc *r, bool normalised) {
    unsigned bits, channels;
    if (!r->res.pitch2D.devPtr || !r->res.pitch2D.height ||
        !soft_channels(&r->res.pitch2D.desc, &bits, &channels))
        return hipErrorInvalidValue;
    size_t element = (size_t)bits * channels / 8;
    if (r->res.pitch2D.pitchInBytes % element)
        return hipErrorInvalidValue;
    struct surface s = { .base = (uint64_t)(uintptr_t)r->res.pitch2D.devPtr,
                         .desc = r->res.pitch2D.desc,
                         .width = r->res.pitch2D.width,
                         .height = r->res.pitch2D.height,
                         .pitch = r->res.pitch2D.pitchInBytes / element };
    return fill_image(d, &s, normalised);
}

/* The channels of an element; NULL if the resource is of an unknown kind. */
static const hipChannelFormatDesc *channels_of(const hipResourceDesc *r) {
    const struct soft_array *a =
        r->resType == hipResourceTypeArray ? soft_array_of(r->res.array.array) : NULL;
    return a                                      ? &a->seen.desc
           : r->resType == hipResourceTypeLinear  ? &r->res.linear.desc
           : r->resType == hipResourceTypePitch2D ? &r->res.pitch2D.desc
                                                  : NULL;
}

/* Integers of 32 bits cannot be normalised: ROCm reads them as they are, whatever the mode says. */
static bool is_normalised(const hipResourceDesc *r, const hipTextureDesc *t) {
    const hipChannelFormatDesc *d = channels_of(r);
    return t->readMode == hipReadModeNormalizedFloat &&
           !(d && d->f != hipChannelFormatKindFloat && d->x == 32);
}

static hipError_t describe(uint32_t d[DWORDS], const hipResourceDesc *r, const hipTextureDesc *t) {
    bool normalised = t && is_normalised(r, t);
    memset(d, 0, DWORDS * sizeof *d);
    if (t)
        fill_sampler(d, t);
    switch (r->resType) {
    case hipResourceTypeArray:
        return fill_array(d, r->res.array.array, normalised);
    case hipResourceTypeLinear:
        return t ? fill_buffer(d, r, normalised) : hipErrorInvalidValue;
    case hipResourceTypePitch2D:
        return t ? fill_pitched(d, r, normalised) : hipErrorInvalidValue;
    case hipResourceTypeMipmappedArray:
        return hipErrorNotSupported;
    default:
        return hipErrorInvalidValue;
    }
}

/* A filter makes floats, which integers that are not normalised are not. */
static hipError_t check_modes(const hipResourceDesc *r, const hipTextureDesc *t) {
    const hipChannelFormatDesc *d = channels_of(r);
    if (!d)
        return hipSuccess; /* refused elsewhere */
    if (t->filterMode == hipFilterModeLinear && d->f != hipChannelFormatKindFloat &&
        !is_normalised(r, t) && r->resType != hipResourceTypeLinear)
        return hipErrorInvalidValue;
    return hipSuccess;
}

/* What ROCm asks of memory that is no array: the device's textureAlignment and
 * texturePitchAlignment. References are more lenient: they tell an offset. */
static bool is_aligned(const hipResourceDesc *r) {
    enum { PITCH_ALIGNMENT = 256 };
    if (r->resType == hipResourceTypeLinear)
        return (uintptr_t)r->res.linear.devPtr % BASE_ALIGNMENT == 0;
    return r->resType != hipResourceTypePitch2D ||
           ((uintptr_t)r->res.pitch2D.devPtr % BASE_ALIGNMENT == 0 &&
            r->res.pitch2D.pitchInBytes % PITCH_ALIGNMENT == 0);
}

/* Views that show an element as it is. Another format would need a descriptor of its own. The
 * numbers of formats count 1, 2 and 4 channels of unsigned and signed integers of 8, 16 and 32
 * bits, then of floats of 16 and 32. */
static bool is_plain_view(const hipResourceDesc *r, unsigned format) {
    unsigned bits, count;
    const hipChannelFormatDesc *d = channels_of(r);
    if (!format)
        return true;
    if (!d || !soft_channels(d, &bits, &count))
        return false;
    unsigned size = bits == 8 ? 0 : bits == 16 ? 1 : 2;
    unsigned row = d->f == hipChannelFormatKindFloat
                       ? 5 + size
                       : 2 * size + (d->f == hipChannelFormatKindSigned);
    return format == 1 + 3 * row + (count == 4 ? 2 : count - 1);
}

/* ---- objects ---- */

hipError_t soft_texture_create(uint64_t *out, const hipResourceDesc *resource,
                               const hipTextureDesc *texture) {
    uint32_t dwords[DWORDS];
    if (!soft_has_images())
        return hipErrorNotSupported;
    hipError_t r = texture ? check_modes(resource, texture) : hipSuccess;
    if (r == hipSuccess)
        r = describe(dwords, resource, texture);
    struct object *o = r == hipSuccess ? calloc(1, sizeof *o) : NULL;
    if (!o)
        return r == hipSuccess ? hipErrorOutOfMemory : r;
    r = soft_memory_alloc(soft_current_device(), SOFT_GLOBAL, sizeof dwords, 0, false, &o->block);
    if (r != hipSuccess) {
        free(o);
        return r;
    }
    o->block->keep = true;
    memcpy(soft_reach(o->block->addr), dwords, sizeof dwords);
    o->is_surface = !texture;
    o->resource = *resource;
    if (texture)
        o->texture = *texture;
    pthread_mutex_lock(&lock);
    o->next = objects;
    objects = o;
    pthread_mutex_unlock(&lock);
    *out = o->block->addr;
    return hipSuccess;
}

/* With the lock: the link that leads to the object. */
static struct object **find(uint64_t addr) {
    struct object **link = &objects;
    while (*link && (*link)->block->addr != addr)
        link = &(*link)->next;
    return link;
}

hipError_t soft_texture_destroy(uint64_t addr) {
    pthread_mutex_lock(&lock);
    struct object **link = find(addr), *o = *link;
    if (o)
        *link = o->next;
    pthread_mutex_unlock(&lock);
    if (!o)
        return hipErrorInvalidValue;
    soft_memory_free(o->block);
    free(o);
    return hipSuccess;
}

/* A copy of the object; false if there is none. */
static bool look_up(const void *handle, struct object *out) {
    pthread_mutex_lock(&lock);
    const struct object *o = *find((uint64_t)(uintptr_t)handle);
    if (o)
        *out = *o;
    pthread_mutex_unlock(&lock);
    return o;
}

/* ---- HIP ---- */

hipError_t soft_hipCreateTextureObject(hipTextureObject_t *pTexObject,
                                       const hipResourceDesc *pResDesc,
                                       const hipTextureDesc *pTexDesc,
                                       const struct hipResourceViewDesc *pResViewDesc) {
    uint64_t addr;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return hipErrorInvalidValue;
    if ((pResViewDesc && pResDesc->resType != hipResourceTypeArray) || !is_aligned(pResDesc))
        return hipErrorInvalidValue; /* only arrays have views */
    if (pResViewDesc && !is_plain_view(pResDesc, (unsigned)pResViewDesc->format))
        return hipErrorNotSupported;
    hipError_t r = soft_texture_create(&addr, pResDesc, pTexDesc);
    if (r != hipSuccess)
        return r;
    if (pResViewDesc) {
        pthread_mutex_lock(&lock);
        struct object *o = *find(addr);
        o->has_view = true;
        o->view = *pResViewDesc;
        pthread_mutex_unlock(&lock);
    }
    *pTexObject = (hipTextureObject_t)(uintptr_t)addr;
    return hipSuccess;
}

hipError_t soft_hipDestroyTextureObject(hipTextureObject_t textureObject) {
    return textureObject ? soft_texture_destroy((uint64_t)(uintptr_t)textureObject) : hipSuccess;
}

hipError_t soft_hipGetTextureObjectResourceDesc(hipResourceDesc *pResDesc,
                                                hipTextureObject_t textureObject) {
    struct object o;
    if (!pResDesc || !look_up(textureObject, &o))
        return hipErrorInvalidValue;
    *pResDesc = o.resource;
    return hipSuccess;
}

hipError_t soft_hipGetTextureObjectTextureDesc(hipTextureDesc *pTexDesc,
                                               hipTextureObject_t textureObject) {
    struct object o;
    if (!pTexDesc || !look_up(textureObject, &o) || o.is_surface)
        return hipErrorInvalidValue;
    *pTexDesc = o.texture;
    return hipSuccess;
}

hipError_t soft_hipGetTextureObjectResourceViewDesc(struct hipResourceViewDesc *pResViewDesc,
                                                    hipTextureObject_t textureObject) {
    struct object o;
    if (!pResViewDesc || !look_up(textureObject, &o) || !o.has_view)
        return hipErrorInvalidValue;
    *pResViewDesc = o.view;
    return hipSuccess;
}

hipError_t soft_hipCreateSurfaceObject(hipSurfaceObject_t *pSurfObject,
                                       const hipResourceDesc *pResDesc) {
    uint64_t addr;
    if (!pSurfObject || !pResDesc)
        return hipErrorInvalidValue;
    if (pResDesc->resType != hipResourceTypeArray)
        return hipErrorInvalidValue;
    hipError_t r = soft_texture_create(&addr, pResDesc, NULL);
    if (r == hipSuccess)
        *pSurfObject = (hipSurfaceObject_t)(uintptr_t)addr;
    return r;
}

hipError_t soft_hipDestroySurfaceObject(hipSurfaceObject_t surfaceObject) {
    return surfaceObject ? soft_texture_destroy((uint64_t)(uintptr_t)surfaceObject) : hipSuccess;
}

hipError_t soft_hipDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
                                                    const hipChannelFormatDesc *fmtDesc,
                                                    int device) {
    unsigned bits, channels;
    if (!maxWidthInElements || !fmtDesc || !soft_channels(fmtDesc, &bits, &channels))
        return hipErrorInvalidValue;
    hipError_t r = soft_check_device(device);
    if (r == hipSuccess)
        *maxWidthInElements = LINEAR_MAX;
    return r;
}

/* ---- the driver's names for the same ---- */

static bool translate_resource(const HIP_RESOURCE_DESC *d, hipResourceDesc *out) {
    *out = (hipResourceDesc){ .resType = (enum hipResourceType)d->resType };
    switch (d->resType) {
    case HIP_RESOURCE_TYPE_ARRAY:
        out->res.array.array = d->res.array.hArray;
        return true;
    case HIP_RESOURCE_TYPE_LINEAR:
        out->res.linear.devPtr = d->res.linear.devPtr;
        out->res.linear.desc = soft_channel_desc(d->res.linear.format, d->res.linear.numChannels);
        out->res.linear.sizeInBytes = d->res.linear.sizeInBytes;
        return true;
    case HIP_RESOURCE_TYPE_PITCH2D:
        out->res.pitch2D.devPtr = d->res.pitch2D.devPtr;
        out->res.pitch2D.desc =
            soft_channel_desc(d->res.pitch2D.format, d->res.pitch2D.numChannels);
        out->res.pitch2D.width = d->res.pitch2D.width;
        out->res.pitch2D.height = d->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = d->res.pitch2D.pitchInBytes;
        return true;
    default:
        return false;
    }
}

static hipTextureDesc translate_texture(const HIP_TEXTURE_DESC *d) {
    hipTextureDesc t = {
        .filterMode = (enum hipTextureFilterMode)d->filterMode,
        .readMode = d->flags & HIP_TRSF_READ_AS_INTEGER ? hipReadModeElementType
                                                        : hipReadModeNormalizedFloat,
        .sRGB = (d->flags & HIP_TRSF_SRGB) != 0,
        .normalizedCoords = (d->flags & HIP_TRSF_NORMALIZED_COORDINATES) != 0,
        .maxAnisotropy = d->maxAnisotropy,
        .mipmapFilterMode = (enum hipTextureFilterMode)d->mipmapFilterMode,
        .mipmapLevelBias = d->mipmapLevelBias,
        .minMipmapLevelClamp = d->minMipmapLevelClamp,
        .maxMipmapLevelClamp = d->maxMipmapLevelClamp,
    };
    for (unsigned i = 0; i < 3; i++)
        t.addressMode[i] = (enum hipTextureAddressMode)d->addressMode[i];
    memcpy(t.borderColor, d->borderColor, sizeof t.borderColor);
    return t;
}

hipError_t soft_hipTexObjectCreate(hipTextureObject_t *pTexObject,
                                   const HIP_RESOURCE_DESC *pResDesc,
                                   const HIP_TEXTURE_DESC *pTexDesc,
                                   const HIP_RESOURCE_VIEW_DESC *pResViewDesc) {
    hipResourceDesc resource;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return hipErrorInvalidValue;
    if (!translate_resource(pResDesc, &resource))
        return hipErrorNotSupported;
    hipTextureDesc texture = translate_texture(pTexDesc);
    if (!pResViewDesc)
        return soft_hipCreateTextureObject(pTexObject, &resource, &texture, NULL);
    const struct hipResourceViewDesc view = {
        .format = (enum hipResourceViewFormat)pResViewDesc->format,
        .width = pResViewDesc->width,
        .height = pResViewDesc->height,
        .depth = pResViewDesc->depth,
        .firstMipmapLevel = pResViewDesc->firstMipmapLevel,
        .lastMipmapLevel = pResViewDesc->lastMipmapLevel,
        .firstLayer = pResViewDesc->firstLayer,
        .lastLayer = pResViewDesc->lastLayer,
    };
    return soft_hipCreateTextureObject(pTexObject, &resource, &texture, &view);
}

static bool translate_back(const hipResourceDesc *r, HIP_RESOURCE_DESC *out) {
    hipArray_Format format = HIP_AD_FORMAT_FLOAT;
    unsigned bits, count;
    const hipChannelFormatDesc *d = channels_of(r);
    memset(out, 0, sizeof *out);
    out->resType = (HIPresourcetype)r->resType;
    if (r->resType == hipResourceTypeArray) {
        out->res.array.hArray = r->res.array.array;
        return true;
    }
    if (!d || !soft_channels(d, &bits, &count) || !soft_array_format(d, &format))
        return false;
    if (r->resType == hipResourceTypeLinear) {
        out->res.linear.devPtr = r->res.linear.devPtr;
        out->res.linear.format = format;
        out->res.linear.numChannels = count;
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
    } else {
        out->res.pitch2D.devPtr = r->res.pitch2D.devPtr;
        out->res.pitch2D.format = format;
        out->res.pitch2D.numChannels = count;
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
    }
    return true;
}

hipError_t soft_hipTexObjectGetResourceDesc(HIP_RESOURCE_DESC *pResDesc,
                                            hipTextureObject_t texObject) {
    struct object o;
    if (!pResDesc || !look_up(texObject, &o) || !translate_back(&o.resource, pResDesc))
        return hipErrorInvalidValue;
    return hipSuccess;
}

hipError_t soft_hipTexObjectGetTextureDesc(HIP_TEXTURE_DESC *pTexDesc,
                                           hipTextureObject_t texObject) {
    struct object o;
    if (!pTexDesc || !look_up(texObject, &o) || o.is_surface)
        return hipErrorInvalidValue;
    const hipTextureDesc *t = &o.texture;
    memset(pTexDesc, 0, sizeof *pTexDesc);
    for (unsigned i = 0; i < 3; i++)
        pTexDesc->addressMode[i] = (HIPaddress_mode)t->addressMode[i];
    pTexDesc->filterMode = (HIPfilter_mode)t->filterMode;
    pTexDesc->flags = (t->readMode == hipReadModeElementType ? HIP_TRSF_READ_AS_INTEGER : 0) |
                      (t->normalizedCoords ? HIP_TRSF_NORMALIZED_COORDINATES : 0) |
                      (t->sRGB ? HIP_TRSF_SRGB : 0);
    pTexDesc->maxAnisotropy = t->maxAnisotropy;
    pTexDesc->mipmapFilterMode = (HIPfilter_mode)t->mipmapFilterMode;
    pTexDesc->mipmapLevelBias = t->mipmapLevelBias;
    pTexDesc->minMipmapLevelClamp = t->minMipmapLevelClamp;
    pTexDesc->maxMipmapLevelClamp = t->maxMipmapLevelClamp;
    memcpy(pTexDesc->borderColor, t->borderColor, sizeof t->borderColor);
    return hipSuccess;
}

hipError_t soft_hipTexObjectGetResourceViewDesc(HIP_RESOURCE_VIEW_DESC *pResViewDesc,
                                                hipTextureObject_t texObject) {
    struct object o;
    if (!pResViewDesc || !look_up(texObject, &o) || !o.has_view)
        return hipErrorInvalidValue;
    *pResViewDesc = (HIP_RESOURCE_VIEW_DESC){
        .format = (HIPresourceViewFormat)o.view.format,
        .width = o.view.width,
        .height = o.view.height,
        .depth = o.view.depth,
        .firstMipmapLevel = o.view.firstMipmapLevel,
        .lastMipmapLevel = o.view.lastMipmapLevel,
        .firstLayer = o.view.firstLayer,
        .lastLayer = o.view.lastLayer,
    };
    return hipSuccess;
}

hipError_t soft_hipTexObjectDestroy(hipTextureObject_t texObject) {
    return soft_hipDestroyTextureObject(texObject);
}
