/* managed.c - hints about managed memory. Nothing moves on this device; hints are stored per block,
 * for programs that ask for them. */
#include <string.h>

#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/stream.h"

/* The managed block that holds the range. */
static hipError_t find_managed(const void *ptr, size_t count, struct soft_block *b) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (!ptr || !count || !soft_memory_find(addr, b) || b->kind != SOFT_MANAGED ||
        count > b->size - (addr - b->addr))
        return hipErrorInvalidValue;
    return hipSuccess;
}

static hipError_t check_place(int device) {
    return device == hipCpuDeviceId ? hipSuccess : soft_check_device(device);
}

static bool advise(struct soft_advice *a, hipMemoryAdvise advice, int device) {
    switch (advice) {
    case hipMemAdviseSetReadMostly:
    case hipMemAdviseUnsetReadMostly:
        a->read_mostly = advice == hipMemAdviseSetReadMostly;
        return true;
    case hipMemAdviseSetPreferredLocation:
    case hipMemAdviseUnsetPreferredLocation:
        a->preferred = advice == hipMemAdviseSetPreferredLocation ? device : hipInvalidDeviceId;
        return true;
    case hipMemAdviseSetAccessedBy:
    case hipMemAdviseUnsetAccessedBy:
        a->accessed_by = advice == hipMemAdviseSetAccessedBy ? device : hipInvalidDeviceId;
        return true;
    case hipMemAdviseSetCoarseGrain:
    case hipMemAdviseUnsetCoarseGrain:
        a->coarse = advice == hipMemAdviseSetCoarseGrain;
        return true;
    default:
        return false;
    }
}

hipError_t soft_hipMemAdvise(const void *ptr, size_t count, hipMemoryAdvise advice, int device) {
    struct soft_block b;
    bool any = advice == hipMemAdviseSetReadMostly || advice == hipMemAdviseUnsetReadMostly;
    hipError_t r = any ? hipSuccess : check_place(device); /* which those two do not look at */
    if (r == hipSuccess)
        r = find_managed(ptr, count, &b);
    if (r != hipSuccess)
        return r;
    if (!advise(&b.advice, advice, device))
        return hipErrorInvalidValue;
    soft_memory_advise(b.addr, &b.advice);
    return hipSuccess;
}

/* Nothing is moved, but the prefetch takes its place in the stream. */
static hipError_t prefetch(const void *ptr, size_t count, int device, hipStream_t stream,
                           const char *what) {
    struct soft_stream *st;
    struct soft_block b;
    hipError_t r = check_place(device);
    if (r == hipSuccess)
        r = find_managed(ptr, count, &b);
    if (r == hipSuccess)
        r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    b.advice.prefetched = device;
    soft_memory_advise(b.addr, &b.advice);
    struct soft_op *op = soft_op_new(SOFT_OP_BARRIER, what);
    return op ? soft_submit(st, op, NULL) : hipErrorOutOfMemory;
}

hipError_t soft_hipMemPrefetchAsync(const void *ptr, size_t count, int device, hipStream_t stream) {
    return prefetch(ptr, count, device, stream, "hipMemPrefetchAsync");
}

hipError_t soft_hipMemPrefetchAsync_v2(const void *ptr, size_t count, hipMemLocation location,
                                       unsigned int flags, hipStream_t stream) {
    enum { HOST = 2 }; /* hipMemLocationTypeHost, which headers before ROCm 7 do not have */
    if (flags || (location.type != hipMemLocationTypeDevice && (int)location.type != HOST))
        return hipErrorInvalidValue;
    int device = location.type == hipMemLocationTypeDevice ? location.id : hipCpuDeviceId;
    return prefetch(ptr, count, device, stream, "hipMemPrefetchAsync_v2");
}

/* Devices one after the other, the rest of the room hipInvalidDeviceId. */
static hipError_t give_devices(void *data, size_t size, int device) {
    if (!size || size % sizeof(int))
        return hipErrorInvalidValue;
    for (size_t i = 0; i < size / sizeof(int); i++)
        ((int *)data)[i] = i ? hipInvalidDeviceId : device;
    return hipSuccess;
}

static hipError_t give_number(void *data, size_t size, int32_t value) {
    if (size != sizeof value)
        return hipErrorInvalidValue;
    memcpy(data, &value, sizeof value);
    return hipSuccess;
}

hipError_t soft_hipMemRangeGetAttribute(void *data, size_t data_size,
                                        hipMemRangeAttribute attribute, const void *dev_ptr,
                                        size_t count) {
    struct soft_block b;
    if (!data || find_managed(dev_ptr, count, &b) != hipSuccess)
        return hipErrorInvalidValue;
    switch (attribute) {
    case hipMemRangeAttributeReadMostly:
        return give_number(data, data_size, b.advice.read_mostly);
    case hipMemRangeAttributePreferredLocation:
        return give_number(data, data_size, b.advice.preferred);
    case hipMemRangeAttributeAccessedBy:
        return give_devices(data, data_size, b.advice.accessed_by);
    case hipMemRangeAttributeLastPrefetchLocation:
        return give_number(data, data_size, b.advice.prefetched);
    case hipMemRangeAttributeCoherencyMode:
        return give_number(data, data_size,
                           b.advice.coarse ? hipMemRangeCoherencyModeCoarseGrain
                                           : hipMemRangeCoherencyModeFineGrain);
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t soft_hipMemRangeGetAttributes(void **data, size_t *data_sizes,
                                         hipMemRangeAttribute *attributes, size_t num_attributes,
                                         const void *dev_ptr, size_t count) {
    if (!data || !data_sizes || !attributes || !num_attributes)
        return hipErrorInvalidValue;
    hipError_t r = hipSuccess;
    for (size_t i = 0; i < num_attributes && r == hipSuccess; i++)
        r = soft_hipMemRangeGetAttribute(data[i], data_sizes[i], attributes[i], dev_ptr, count);
    return r;
}
