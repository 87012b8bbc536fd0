/* alloc.c - the hipMalloc family, and queries about an address. Stream-ordered allocation is
 * in mempool.c. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

enum { PITCH_ALIGNMENT = 256 };

static hipError_t allocate(void **out, size_t size, enum soft_block_kind kind, unsigned flags) {
    struct soft_block *b;
    if (!out)
        return hipErrorInvalidValue;
    *out = NULL;
    hipError_t r = soft_capture_refuse_unsafe();
    if (r != hipSuccess || !size)
        return r;
    r = soft_memory_alloc(soft_current_device(), kind, size, flags, false, &b);
    if (r == hipSuccess)
        *out = (void *)(uintptr_t)b->addr;
    return r;
}

/* Freeing waits for the device (negative: all), so that no queued operation can still use the
 * block. A device that has failed keeps it. */
static hipError_t release(struct soft_block *b, int device) {
    soft_schedule_drain(device);
    hipError_t r = soft_error_observe();
    if (r != hipSuccess) {
        soft_memory_unclaim(b);
        return r;
    }
    soft_mempool_return(b);
    soft_memory_free(b);
    return hipSuccess;
}

/* hipFree, hipHostFree and hipFreeHost are one function, as in ROCm's runtime: each frees whatever
 * HIP has allocated. Any device may be using pinned memory. */
static hipError_t release_any(void *ptr) {
    const unsigned kinds = 1u << SOFT_DEVICE | 1u << SOFT_MANAGED | 1u << SOFT_PINNED;
    hipError_t r = soft_capture_refuse_unsafe();
    if (r != hipSuccess || !ptr)
        return r;
    struct soft_block *b = soft_memory_claim((uint64_t)(uintptr_t)ptr, kinds);
    if (!b)
        b = soft_mempool_claim_imported(ptr);
    return b ? release(b, b->kind == SOFT_PINNED ? -1 : b->device) : hipErrorInvalidValue;
}

/* ---- device memory -------------------------------------------------------------------------- */

hipError_t soft_hipMalloc(void **ptr, size_t size) {
    return allocate(ptr, size, SOFT_DEVICE, 0);
}

/* The host and the device both use signal memory, which holds one value of 64 bits. */
hipError_t soft_hipExtMallocWithFlags(void **ptr, size_t size, unsigned flags) {
    bool signal = flags & hipMallocSignalMemory;
    if (signal && size != sizeof(uint64_t))
        return hipErrorInvalidValue;
    return allocate(ptr, size, signal ? SOFT_MANAGED : SOFT_DEVICE, flags);
}

hipError_t soft_hipMallocManaged(void **ptr, size_t size, unsigned flags) {
    if (flags != hipMemAttachGlobal && flags != hipMemAttachHost)
        return hipErrorInvalidValue;
    return size ? allocate(ptr, size, SOFT_MANAGED, flags) : hipErrorInvalidValue;
}

hipError_t soft_hipFree(void *ptr) {
    return release_any(ptr);
}

static hipError_t allocate_pitched(void **ptr, size_t *pitch, size_t width, size_t height,
                                   size_t depth) {
    size_t row, size;
    if (!ptr || !pitch)
        return hipErrorInvalidValue;
    *ptr = NULL;
    *pitch = 0;
    if (!width || !height || !depth)
        return hipSuccess;
    if (__builtin_add_overflow(width, PITCH_ALIGNMENT - 1, &row))
        return hipErrorOutOfMemory;
    row = row / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    if (__builtin_mul_overflow(row, height, &size) || __builtin_mul_overflow(size, depth, &size))
        return hipErrorOutOfMemory;
    *pitch = row;
    return allocate(ptr, size, SOFT_DEVICE, 0);
}

hipError_t soft_hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height) {
    return allocate_pitched(ptr, pitch, width, height, 1);
}

hipError_t soft_hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height,
                                 unsigned element) {
    if (element != 4 && element != 8 && element != 16)
        return hipErrorInvalidValue;
    return allocate_pitched(ptr, pitch, width, height, 1);
}

hipError_t soft_hipMalloc3D(hipPitchedPtr *out, hipExtent extent) {
    if (!out)
        return hipErrorInvalidValue;
    void *ptr;
    size_t pitch;
    hipError_t r = allocate_pitched(&ptr, &pitch, extent.width, extent.height, extent.depth);
    if (r == hipSuccess)
        *out = (hipPitchedPtr){
            .ptr = ptr, .pitch = pitch, .xsize = extent.width, .ysize = extent.height
        };
    return r;
}

/* ---- host memory ---------------------------------------------------------------------------- */

static hipError_t allocate_pinned(void **ptr, size_t size, unsigned flags) {
    const unsigned uncached = 0x10000000u; /* hipHostMallocUncached of later headers */
    const unsigned known = hipHostMallocPortable | hipHostMallocMapped |
                           hipHostMallocWriteCombined | hipHostMallocNumaUser |
                           hipHostMallocCoherent | hipHostMallocNonCoherent | uncached;
    const unsigned both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    if (flags & ~known || (flags & both) == both)
        return hipErrorInvalidValue;
    return allocate(ptr, size, SOFT_PINNED, flags);
}

hipError_t soft_hipHostMalloc(void **ptr, size_t size, unsigned flags) {
    return allocate_pinned(ptr, size, flags);
}

hipError_t soft_hipHostAlloc(void **ptr, size_t size, unsigned flags) {
    return allocate_pinned(ptr, size, flags);
}

hipError_t soft_hipExtHostAlloc(void **ptr, size_t size, unsigned flags) {
    return allocate_pinned(ptr, size, flags);
}

hipError_t soft_hipMallocHost(void **ptr, size_t size) {
    return allocate(ptr, size, SOFT_PINNED, 0);
}

hipError_t soft_hipMemAllocHost(void **ptr, size_t size) {
    return allocate(ptr, size, SOFT_PINNED, 0);
}

hipError_t soft_hipHostFree(void *ptr) {
    return release_any(ptr);
}
hipError_t soft_hipFreeHost(void *ptr) {
    return release_any(ptr);
}

/* Whether the process has memory at all these addresses; asked in pieces, because mincore() answers
 * with a byte per page. */
static bool is_mapped(uint64_t addr, size_t size) {
    enum { PIECE = 4096 };
    unsigned char resident[PIECE];
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = addr / page * page, pages = (addr + (size - 1)) / page - addr / page + 1;
    while (pages) {
        uint64_t n = pages < PIECE ? pages : PIECE;
        if (mincore((void *)(uintptr_t)at, n * page, resident))
            return false;
        at += n * page;
        pages -= n;
    }
    return true;
}

hipError_t soft_hipHostRegister(void *host, size_t size, unsigned flags) {
    const unsigned uncached = 0x80000000u; /* hipExtHostRegisterUncached of later headers */
    const unsigned known = hipHostRegisterPortable | hipHostRegisterMapped |
                           hipHostRegisterIoMemory | hipExtHostRegisterCoarseGrained | uncached;
    uint64_t addr = (uint64_t)(uintptr_t)host;
    if (!host || !size || addr + (size - 1) < addr || soft_memory_is_device_address(addr) ||
        flags & ~known || !is_mapped(addr, size))
        return hipErrorInvalidValue;
    return soft_memory_register(host, size, flags);
}

hipError_t soft_hipHostUnregister(void *host) {
    if (!host)
        return hipErrorInvalidValue;
    struct soft_block *b = soft_memory_claim((uint64_t)(uintptr_t)host, 1u << SOFT_REGISTERED);
    return b ? release(b, -1) : hipErrorHostMemoryNotRegistered;
}

static bool find_host(const void *host, struct soft_block *b) {
    return host && soft_memory_find((uint64_t)(uintptr_t)host, b) &&
           (b->kind == SOFT_PINNED || b->kind == SOFT_REGISTERED);
}

hipError_t soft_hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
    struct soft_block b;
    if (!device || flags || !find_host(host, &b))
        return hipErrorInvalidValue;
    *device = host;
    return hipSuccess;
}

hipError_t soft_hipHostGetFlags(unsigned *flags, void *host) {
    struct soft_block b;
    if (!flags || !find_host(host, &b))
        return hipErrorInvalidValue;
    *flags = b.flags;
    return hipSuccess;
}

/* ---- questions ------------------------------------------------------------------------------ */

hipError_t soft_hipMemGetInfo(size_t *free_bytes, size_t *total) {
    uint64_t f, t;
    soft_memory_info(soft_current_device(), &f, &t);
    if (free_bytes)
        *free_bytes = f;
    if (total)
        *total = t;
    return free_bytes || total ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipMemPtrGetInfo(void *ptr, size_t *size) {
    struct soft_block b;
    if (!ptr || !size || !soft_memory_find((uint64_t)(uintptr_t)ptr, &b))
        return hipErrorInvalidValue;
    *size = b.size;
    return hipSuccess;
}

hipError_t soft_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr) {
    struct soft_block b;
    if (!ptr || !soft_memory_find((uint64_t)(uintptr_t)ptr, &b))
        return hipErrorNotFound;
    if (base)
        *base = (hipDeviceptr_t)(uintptr_t)b.addr;
    if (size)
        *size = b.size;
    return hipSuccess;
}

static int memory_type(const struct soft_block *b) {
    bool old = soft_hip_major() < 6;
    switch (b->kind) {
    case SOFT_PINNED:
    case SOFT_REGISTERED:
        return old ? (int)HIP5_MEMORY_TYPE_HOST : (int)hipMemoryTypeHost;
    case SOFT_MANAGED: /* ROCm 5 calls it device memory and sets isManaged */
        return old ? (int)HIP5_MEMORY_TYPE_DEVICE : (int)hipMemoryTypeManaged;
    default:
        return old ? (int)HIP5_MEMORY_TYPE_DEVICE : (int)hipMemoryTypeDevice;
    }
}

static bool host_sees(const struct soft_block *b) {
    return b->kind == SOFT_PINNED || b->kind == SOFT_REGISTERED || b->kind == SOFT_MANAGED;
}

hipError_t soft_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *ptr) {
    struct soft_block b;
    if (!out || !ptr)
        return hipErrorInvalidValue;
    if (!soft_memory_find((uint64_t)(uintptr_t)ptr, &b)) {
        if (soft_hip_major() < 6 || soft_memory_is_device_address((uint64_t)(uintptr_t)ptr))
            return hipErrorInvalidValue;
        memset(out, 0, sizeof *out);
        out->memoryType = hipMemoryTypeUnregistered;
        out->device = hipInvalidDeviceId;
        return hipSuccess;
    }
    memset(out, 0, sizeof *out);
    out->memoryType = (hipMemoryType)memory_type(&b);
    out->device = b.device;
    out->devicePointer = (void *)(uintptr_t)ptr;
    out->hostPointer = host_sees(&b) ? (void *)(uintptr_t)ptr : NULL;
    out->isManaged = b.kind == SOFT_MANAGED;
    out->allocationFlags = b.flags;
    return hipSuccess;
}

hipError_t soft_hipPointerGetAttribute(void *data, hipPointer_attribute attribute,
                                       hipDeviceptr_t ptr) {
    struct soft_block b;
    if (!data || !ptr || !soft_memory_find((uint64_t)(uintptr_t)ptr, &b))
        return hipErrorInvalidValue;
    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = (unsigned)memory_type(&b);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(hipDeviceptr_t *)data = ptr;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host_sees(&b))
            return hipErrorInvalidValue;
        *(void **)data = ptr;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = b.addr;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = b.kind == SOFT_MANAGED;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = b.device;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(hipDeviceptr_t *)data = (hipDeviceptr_t)(uintptr_t)b.addr;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = b.size;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = b.state == SOFT_LIVE;
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(hipMemPool_t *)data = b.pool;
        return hipSuccess;
    default:
        return hipErrorNotSupported;
    }
}

hipError_t soft_hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute *attributes,
                                           void **data, hipDeviceptr_t ptr) {
    if (!count || !attributes || !data)
        return hipErrorInvalidValue;
    for (unsigned i = 0; i < count; i++) {
        hipError_t r = soft_hipPointerGetAttribute(data[i], attributes[i], ptr);
        if (r != hipSuccess && attributes[i] == HIP_POINTER_ATTRIBUTE_HOST_POINTER && data[i])
            *(void **)data[i] = NULL; /* a list may name what the pointer lacks */
        else if (r != hipSuccess)
            return r;
    }
    return hipSuccess;
}
