/* texture_reference.c - texture references, as ROCm 5 has them.
 *
 * A reference is a variable of the program with a twin on the device, which kernels read the
 * texture object from. Binding makes an object of what the reference says and writes the twin. The
 * driver's hipTexRefSet... functions only fill in fields, except those that set an array or an
 * address: these bind the reference, so programs call them last. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/image/array.h"
#include "soft/runtime/image/texture.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"

static hipTextureDesc texture_of(const textureReference *t) {
    hipTextureDesc d = {
        .filterMode = t->filterMode,
        .readMode = t->readMode,
        .sRGB = t->sRGB,
        .normalizedCoords = t->normalized,
        .maxAnisotropy = t->maxAnisotropy,
        .mipmapFilterMode = t->mipmapFilterMode,
        .mipmapLevelBias = t->mipmapLevelBias,
        .minMipmapLevelClamp = t->minMipmapLevelClamp,
        .maxMipmapLevelClamp = t->maxMipmapLevelClamp,
    };
    memcpy(d.addressMode, t->addressMode, sizeof d.addressMode);
    return d;
}

/* References of modules have no variable in the program: they are made when first asked for, and
 * kept. */
struct made {
    struct made *next;
    textureReference reference;
    uint64_t addr; /* of the twin */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *all_made;

/* The reference for a texture variable of a module, which lies at addr on the device. */
static hipError_t make_reference(uint64_t addr, uint64_t size, textureReference **out) {
    if (size < sizeof **out)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    struct made *m = all_made;
    while (m && m->addr != addr)
        m = m->next;
    if (!m && (m = calloc(1, sizeof *m))) {
        m->addr = addr;
        memcpy(&m->reference, soft_reach(addr), sizeof m->reference);
        m->reference.textureObject = NULL;
        m->next = all_made;
        all_made = m;
    }
    pthread_mutex_unlock(&lock);
    if (!m)
        return hipErrorOutOfMemory;
    *out = &m->reference;
    return hipSuccess;
}

static bool made_twin(const textureReference *t, uint64_t *addr) {
    pthread_mutex_lock(&lock);
    const struct made *m = all_made;
    while (m && &m->reference != t)
        m = m->next;
    pthread_mutex_unlock(&lock);
    if (m)
        *addr = m->addr;
    return m;
}

/* The twin on the device follows. */
static hipError_t write_twin(const textureReference *t) {
    uint64_t addr, size = sizeof *t;
    if (!made_twin(t, &addr) && soft_symbol_find(t, &addr, &size) != hipSuccess)
        return hipErrorInvalidTexture;
    memcpy(soft_reach(addr), t, size < sizeof *t ? size : sizeof *t);
    return hipSuccess;
}

static hipError_t unbind(textureReference *t) {
    if (t->textureObject)
        (void)soft_texture_destroy((uint64_t)(uintptr_t)t->textureObject);
    t->textureObject = NULL;
    return hipSuccess;
}

static hipError_t bind(const textureReference *tex, const hipResourceDesc *resource) {
    textureReference *t = (textureReference *)(uintptr_t)tex;
    hipTextureDesc d = texture_of(t);
    uint64_t addr;
    if (resource->resType == hipResourceTypeLinear)
        d.filterMode = hipFilterModePoint;
    hipError_t r = soft_texture_create(&addr, resource, &d);
    if (r != hipSuccess)
        return r;
    unbind(t);
    t->textureObject = (hipTextureObject_t)(uintptr_t)addr;
    return write_twin(t);
}

/* ---- the runtime's ---- */

hipError_t soft_hipBindTexture(size_t *offset, const textureReference *tex, const void *devPtr,
                               const hipChannelFormatDesc *desc, size_t size) {
    if (!tex || !devPtr || !desc || !size)
        return hipErrorInvalidValue;
    struct soft_block b;
    uint64_t addr = (uint64_t)(uintptr_t)devPtr;
    if (soft_memory_find(addr, &b) && size > b.size - (addr - b.addr))
        size = b.size - (addr - b.addr); /* UINT_MAX stands for all of it */
    hipResourceDesc r = { .resType = hipResourceTypeLinear };
    r.res.linear.devPtr = (void *)(uintptr_t)devPtr;
    r.res.linear.desc = *desc;
    r.res.linear.sizeInBytes = size;
    if (offset)
        *offset = 0;
    return bind(tex, &r);
}

hipError_t soft_hipBindTexture2D(size_t *offset, const textureReference *tex, const void *devPtr,
                                 const hipChannelFormatDesc *desc, size_t width, size_t height,
                                 size_t pitch) {
    if (!tex || !devPtr || !desc || !width || !height)
        return hipErrorInvalidValue;
    hipResourceDesc r = { .resType = hipResourceTypePitch2D };
    r.res.pitch2D.devPtr = (void *)(uintptr_t)devPtr;
    r.res.pitch2D.desc = *desc;
    r.res.pitch2D.width = width;
    r.res.pitch2D.height = height;
    r.res.pitch2D.pitchInBytes = pitch;
    if (offset)
        *offset = 0;
    return bind(tex, &r);
}

hipError_t soft_hipBindTextureToArray(const textureReference *tex, hipArray_const_t array,
                                      const hipChannelFormatDesc *desc) {
    if (!tex || !array || !desc)
        return hipErrorInvalidValue;
    hipResourceDesc r = { .resType = hipResourceTypeArray };
    r.res.array.array = (hipArray_t)(uintptr_t)array;
    return bind(tex, &r);
}

hipError_t soft_hipUnbindTexture(const textureReference *tex) {
    return tex ? unbind((textureReference *)(uintptr_t)tex) : hipErrorInvalidValue;
}

hipError_t soft_hipGetTextureReference(const textureReference **texref, const void *symbol) {
    uint64_t addr, size;
    if (!texref || !symbol)
        return hipErrorInvalidValue;
    hipError_t r = soft_symbol_find(symbol, &addr, &size);
    *texref = r == hipSuccess ? symbol : NULL;
    return r;
}

hipError_t soft_hipGetTextureAlignmentOffset(size_t *offset, const textureReference *texref) {
    if (!offset || !texref)
        return hipErrorInvalidValue;
    *offset = 0;
    return hipSuccess;
}

/* ---- the driver's ---- */

hipError_t soft_hipModuleGetTexRef(textureReference **texRef, hipModule_t hmod, const char *name) {
    hipDeviceptr_t variable;
    size_t size;
    if (!texRef)
        return hipErrorInvalidValue;
    hipError_t r = soft_hipModuleGetGlobal(&variable, &size, hmod, name);
    return r == hipSuccess ? make_reference((uint64_t)(uintptr_t)variable, size, texRef) : r;
}

hipError_t soft_hipTexRefSetArray(textureReference *tex, hipArray_const_t array,
                                  unsigned int flags) {
    const struct soft_array *a = soft_array_of(array);
    (void)flags; /* HIP_TRSA_OVERRIDE_FORMAT, always */
    if (!tex || !a)
        return hipErrorInvalidValue;
    tex->channelDesc = a->seen.desc;
    tex->format = a->seen.Format;
    tex->numChannels = (int)a->seen.NumChannels;
    return soft_hipBindTextureToArray(tex, array, &a->seen.desc);
}

hipError_t soft_hipTexRefSetAddress(size_t *ByteOffset, textureReference *texRef,
                                    hipDeviceptr_t dptr, size_t bytes) {
    if (!texRef)
        return hipErrorInvalidValue;
    hipChannelFormatDesc d = soft_channel_desc(texRef->format, (unsigned)texRef->numChannels);
    return soft_hipBindTexture(ByteOffset, texRef, dptr, &d, bytes);
}

hipError_t soft_hipTexRefSetAddress2D(textureReference *texRef, const HIP_ARRAY_DESCRIPTOR *desc,
                                      hipDeviceptr_t dptr, size_t Pitch) {
    if (!texRef || !desc)
        return hipErrorInvalidValue;
    hipChannelFormatDesc d = soft_channel_desc(desc->Format, desc->NumChannels);
    return soft_hipBindTexture2D(NULL, texRef, dptr, &d, desc->Width, desc->Height, Pitch);
}

hipError_t soft_hipTexRefSetAddressMode(textureReference *texRef, int dim,
                                        enum hipTextureAddressMode am) {
    if (!texRef || dim < 0 || dim > 2)
        return hipErrorInvalidValue;
    texRef->addressMode[dim] = am;
    return hipSuccess;
}

hipError_t soft_hipTexRefGetAddressMode(enum hipTextureAddressMode *pam,
                                        const textureReference *texRef, int dim) {
    if (!pam || !texRef || dim < 0 || dim > 2)
        return hipErrorInvalidValue;
    *pam = texRef->addressMode[dim];
    return hipSuccess;
}

hipError_t soft_hipTexRefSetFilterMode(textureReference *texRef, enum hipTextureFilterMode fm) {
    if (!texRef)
        return hipErrorInvalidValue;
    texRef->filterMode = fm;
    return hipSuccess;
}

hipError_t soft_hipTexRefGetFilterMode(enum hipTextureFilterMode *pfm,
                                       const textureReference *texRef) {
    if (!pfm || !texRef)
        return hipErrorInvalidValue;
    *pfm = texRef->filterMode;
    return hipSuccess;
}

hipError_t soft_hipTexRefSetFlags(textureReference *texRef, unsigned int Flags) {
    if (!texRef)
        return hipErrorInvalidValue;
    texRef->readMode =
        Flags & HIP_TRSF_READ_AS_INTEGER ? hipReadModeElementType : hipReadModeNormalizedFloat;
    texRef->normalized = (Flags & HIP_TRSF_NORMALIZED_COORDINATES) != 0;
    texRef->sRGB = (Flags & HIP_TRSF_SRGB) != 0;
    return hipSuccess;
}

hipError_t soft_hipTexRefGetFlags(unsigned int *pFlags, const textureReference *texRef) {
    if (!pFlags || !texRef)
        return hipErrorInvalidValue;
    *pFlags = (texRef->readMode == hipReadModeElementType ? HIP_TRSF_READ_AS_INTEGER : 0u) |
              (texRef->normalized ? HIP_TRSF_NORMALIZED_COORDINATES : 0u) |
              (texRef->sRGB ? HIP_TRSF_SRGB : 0u);
    return hipSuccess;
}

hipError_t soft_hipTexRefSetFormat(textureReference *texRef, hipArray_Format fmt,
                                   int NumPackedComponents) {
    if (!texRef)
        return hipErrorInvalidValue;
    texRef->format = fmt;
    texRef->numChannels = NumPackedComponents;
    texRef->channelDesc = soft_channel_desc(fmt, (unsigned)NumPackedComponents);
    return hipSuccess;
}

hipError_t soft_hipTexRefGetFormat(hipArray_Format *pFormat, int *pNumChannels,
                                   const textureReference *texRef) {
    if (!pFormat || !pNumChannels || !texRef)
        return hipErrorInvalidValue;
    *pFormat = texRef->format;
    *pNumChannels = texRef->numChannels;
    return hipSuccess;
}

static hipError_t bound_to(const textureReference *texRef, hipResourceDesc *out) {
    return texRef && texRef->textureObject
               ? soft_hipGetTextureObjectResourceDesc(out, texRef->textureObject)
               : hipErrorInvalidValue;
}

hipError_t soft_hipTexRefGetAddress(hipDeviceptr_t *dev_ptr, const textureReference *texRef) {
    hipResourceDesc d;
    hipError_t r = dev_ptr ? bound_to(texRef, &d) : hipErrorInvalidValue;
    if (r != hipSuccess)
        return r;
    *dev_ptr = d.resType == hipResourceTypeLinear    ? d.res.linear.devPtr
               : d.resType == hipResourceTypePitch2D ? d.res.pitch2D.devPtr
                                                     : NULL;
    return *dev_ptr ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipTexRefGetArray(hipArray_t *pArray, const textureReference *texRef) {
    hipResourceDesc d;
    hipError_t r = pArray ? bound_to(texRef, &d) : hipErrorInvalidValue;
    if (r == hipSuccess && d.resType != hipResourceTypeArray)
        r = hipErrorInvalidValue;
    if (r == hipSuccess)
        *pArray = d.res.array.array;
    return r;
}

hipError_t soft_hipTexRefSetMaxAnisotropy(textureReference *texRef, unsigned int maxAniso) {
    if (!texRef)
        return hipErrorInvalidValue;
    texRef->maxAnisotropy = maxAniso;
    return hipSuccess;
}

hipError_t soft_hipTexRefGetMaxAnisotropy(int *pmaxAnsio, const textureReference *texRef) {
    if (!pmaxAnsio || !texRef)
        return hipErrorInvalidValue;
    *pmaxAnsio = (int)texRef->maxAnisotropy;
    return hipSuccess;
}
