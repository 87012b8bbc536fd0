/* mempool.c - stream-ordered allocation and memory pools.
 *
 * hipMallocAsync returns an address at once; the block becomes accessible when the stream reaches
 * the allocation, and is unmapped when it reaches hipFreeAsync. So a use that is not ordered after
 * the one and before the other faults. A pool is a set of counters: addresses are never recycled
 * early. */
#include <pthread.h>
#include <stdatomic.h>

#include "soft/runtime/error.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/graph_block.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/stream.h"

struct mempool {
    struct soft_handle handle;
    int device;
    bool exportable;            /* as a file descriptor */
    _Atomic uint64_t threshold; /* hipMemPoolAttrReleaseThreshold */
    _Atomic int reuse[3];       /* hipMemPoolReuse…: remembered, without effect */
    _Atomic uint64_t used, used_high;
};

enum { POOLS_MAX = 4096 };
static struct soft_handles *pools;
static struct mempool *default_pool[SOFT_DEVICES_MAX];
static _Atomic(struct mempool *) current_pool[SOFT_DEVICES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct mempool *new_pool(int device) {
    struct mempool *p = soft_handle_alloc(pools);
    if (p) {
        p->device = device;
        for (int i = 0; i < 3; i++)
            atomic_store(&p->reuse[i], 1);
    }
    return p;
}

static void prepare(void) {
    pools = soft_handles_new(sizeof(struct mempool), POOLS_MAX);
    for (int i = 0; pools && i < SOFT_DEVICES_MAX; i++) {
        default_pool[i] = new_pool(i);
        atomic_store(&current_pool[i], default_pool[i]);
    }
}

static struct mempool *resolve(hipMemPool_t handle) {
    pthread_once(&once, prepare);
    return soft_handle_valid(pools, handle) ? (struct mempool *)handle : NULL;
}

static void count_used(struct mempool *p, uint64_t size) {
    uint64_t now = atomic_fetch_add(&p->used, size) + size;
    uint64_t high = atomic_load(&p->used_high);
    while (now > high && !atomic_compare_exchange_weak(&p->used_high, &high, now))
        ;
}

void soft_mempool_return(const struct soft_block *b) {
    if (b->pool)
        atomic_fetch_sub(&((struct mempool *)b->pool)->used, b->size);
}

bool soft_mempool_is_exportable(hipMemPool_t handle) {
    const struct mempool *p = resolve(handle);
    return p && p->exportable;
}

hipMemPool_t soft_mempool_new(int device) {
    pthread_once(&once, prepare);
    return (hipMemPool_t)new_pool(device);
}

bool soft_mempool_device(hipMemPool_t handle, int *device) {
    const struct mempool *p = resolve(handle);
    if (p)
        *device = p->device;
    return p;
}

void soft_mempool_adopt(hipMemPool_t handle, struct soft_block *b) {
    b->pool = handle;
    count_used((struct mempool *)handle, b->size);
}

struct soft_block *soft_mempool_claim_imported(const void *ptr) {
    struct soft_block copy;
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    bool imported = soft_memory_find(addr, &copy) && copy.kind == SOFT_IMPORTED && copy.pool;
    return imported ? soft_memory_claim(addr, 1u << SOFT_IMPORTED) : NULL;
}

static void empty_pool(void *object, void *device) {
    struct mempool *p = object;
    if (p->device == *(const int *)device)
        atomic_store(&p->used, 0);
}

void soft_mempool_reset(int device) {
    pthread_once(&once, prepare);
    if (pools)
        soft_handles_each(pools, empty_pool, &device);
}

/* ---- allocation ----------------------------------------------------------------------------- */

/* An allocation node. */
static hipError_t capture_allocation(void **out, size_t size, const struct mempool *pool,
                                     struct soft_stream *st) {
    struct soft_graph_block *block;
    struct soft_op *op;
    hipMemAllocNodeParams params = {
        .poolProps = { .allocType = hipMemAllocationTypePinned,
                       .location = { .type = hipMemLocationTypeDevice, .id = pool->device } },
        .bytesize = size,
    };
    hipError_t r = soft_graph_block_new(&params, &block);
    if (r != hipSuccess)
        return r;
    void *address = block->params.dptr;
    r = soft_op_graph_block(&op, block, false);
    if (r == hipSuccess)
        r = soft_capture_add(st, op);
    if (r == hipSuccess)
        *out = address;
    return r;
}

/* A free node; memory that is no graph's cannot be freed by one. */
static hipError_t capture_free(void *ptr, struct soft_stream *st) {
    struct soft_op *op;
    struct soft_graph_block *block = soft_graph_block_find((uint64_t)(uintptr_t)ptr);
    if (!block)
        return soft_capture_refuse(st);
    hipError_t r = soft_op_graph_block(&op, block, true);
    return r == hipSuccess ? soft_capture_add(st, op) : r;
}

static hipError_t allocate(void **out, size_t size, struct mempool *pool, hipStream_t stream,
                           const char *what) {
    struct soft_stream *st;
    struct soft_block *b;
    if (!out || !pool)
        return hipErrorInvalidValue;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    *out = NULL;
    if (!size)
        return st->capture ? soft_capture_refuse(st) : hipSuccess;
    if (st->capture)
        return capture_allocation(out, size, pool, st);
    struct soft_op *op = soft_op_new(SOFT_OP_COMMIT, what);
    r = op ? soft_memory_alloc(pool->device, SOFT_DEVICE, size, 0, true, &b) : hipErrorOutOfMemory;
    if (r != hipSuccess) {
        if (op)
            soft_op_free(op);
        return r;
    }
    b->pool = pool;
    count_used(pool, size);
    op->u.block = b;
    void *address = (void *)(uintptr_t)b->addr;
    r = soft_submit(st, op, NULL);
    if (r == hipSuccess)
        *out = address;
    return r;
}

hipError_t soft_hipMallocAsync(void **ptr, size_t size, hipStream_t stream) {
    struct soft_stream *st;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess)
        return r;
    pthread_once(&once, prepare);
    return allocate(ptr, size, atomic_load(&current_pool[st->device]), stream, "hipMallocAsync");
}

hipError_t soft_hipMallocFromPoolAsync(void **ptr, size_t size, hipMemPool_t pool,
                                       hipStream_t stream) {
    return allocate(ptr, size, resolve(pool), stream, "hipMallocFromPoolAsync");
}

hipError_t soft_hipFreeAsync(void *ptr, hipStream_t stream) {
    struct soft_stream *st;
    if (!ptr)
        return hipErrorInvalidValue;
    if (soft_stream_resolve(stream, &st) != hipSuccess)
        return hipErrorInvalidHandle;
    if (st->capture)
        return capture_free(ptr, st);
    struct soft_block *b = soft_memory_claim((uint64_t)(uintptr_t)ptr, 1u << SOFT_DEVICE);
    if (!b)
        b = soft_mempool_claim_imported(ptr);
    if (!b)
        return hipErrorInvalidValue;
    struct soft_op *op = soft_op_new(SOFT_OP_UNMAP, "hipFreeAsync");
    if (!op) {
        soft_memory_unclaim(b);
        return hipErrorOutOfMemory;
    }
    soft_mempool_return(b);
    op->u.block = b;
    return soft_submit(st, op, NULL);
}

/* ---- pools ---------------------------------------------------------------------------------- */

hipError_t soft_hipMemPoolCreate(hipMemPool_t *out, const hipMemPoolProps *props) {
    pthread_once(&once, prepare);
    if (!out || !props || props->allocType != hipMemAllocationTypePinned ||
        props->location.type != hipMemLocationTypeDevice)
        return hipErrorInvalidValue;
    hipError_t r = soft_check_device(props->location.id);
    if (r != hipSuccess)
        return hipErrorInvalidValue;
    struct mempool *p = new_pool(props->location.id);
    if (p)
        p->exportable = props->handleTypes & hipMemHandleTypePosixFileDescriptor;
    *out = (hipMemPool_t)p;
    return p ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t soft_hipMemPoolDestroy(hipMemPool_t handle) {
    struct mempool *p = resolve(handle);
    if (!p || p == default_pool[p->device])
        return hipErrorInvalidValue;
    struct mempool *was = p;
    atomic_compare_exchange_strong(&current_pool[p->device], &was, default_pool[p->device]);
    /* Blocks may still name it: closed, but its counters stay usable. */
    return soft_handle_close(p) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipMemPoolTrimTo(hipMemPool_t handle, size_t keep) {
    (void)keep; /* freed blocks hold no memory */
    return resolve(handle) ? hipSuccess : hipErrorInvalidValue;
}

static bool is_reuse(hipMemPoolAttr attr) {
    return attr >= hipMemPoolReuseFollowEventDependencies &&
           attr <= hipMemPoolReuseAllowInternalDependencies;
}

hipError_t soft_hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attr, void *value) {
    struct mempool *p = resolve(handle);
    if (!p || !value)
        return hipErrorInvalidValue;
    if (is_reuse(attr)) {
        atomic_store(&p->reuse[attr - hipMemPoolReuseFollowEventDependencies], *(int *)value);
        return hipSuccess;
    }
    uint64_t number = *(uint64_t *)value;
    switch (attr) {
    case hipMemPoolAttrReleaseThreshold:
        atomic_store(&p->threshold, number);
        return hipSuccess;
    case hipMemPoolAttrReservedMemHigh: /* the high marks can only be reset */
    case hipMemPoolAttrUsedMemHigh:
        if (number)
            return hipErrorInvalidValue;
        atomic_store(&p->used_high, atomic_load(&p->used));
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t soft_hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attr, void *value) {
    struct mempool *p = resolve(handle);
    if (!p || !value)
        return hipErrorInvalidValue;
    if (is_reuse(attr)) {
        *(int *)value = atomic_load(&p->reuse[attr - hipMemPoolReuseFollowEventDependencies]);
        return hipSuccess;
    }
    uint64_t *number = value;
    switch (attr) {
    case hipMemPoolAttrReleaseThreshold:
        *number = atomic_load(&p->threshold);
        return hipSuccess;
    case hipMemPoolAttrReservedMemCurrent:
    case hipMemPoolAttrUsedMemCurrent:
        *number = atomic_load(&p->used);
        return hipSuccess;
    case hipMemPoolAttrReservedMemHigh:
    case hipMemPoolAttrUsedMemHigh:
        *number = atomic_load(&p->used_high);
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t soft_hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc *list,
                                    size_t count) {
    if (!resolve(handle) || (count && !list))
        return hipErrorInvalidValue;
    for (size_t i = 0; i < count; i++)
        if (list[i].location.type != hipMemLocationTypeDevice ||
            soft_check_device(list[i].location.id) != hipSuccess)
            return hipErrorInvalidValue;
    return hipSuccess; /* every device reaches all memory here */
}

hipError_t soft_hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t handle,
                                    hipMemLocation *location) {
    if (!flags || !resolve(handle) || !location || location->type != hipMemLocationTypeDevice ||
        soft_check_device(location->id) != hipSuccess)
        return hipErrorInvalidValue;
    *flags = hipMemAccessFlagsProtReadWrite;
    return hipSuccess;
}

hipError_t soft_hipDeviceGetDefaultMemPool(hipMemPool_t *out, int device) {
    pthread_once(&once, prepare);
    if (!out)
        return hipErrorInvalidValue;
    hipError_t r = soft_check_device(device);
    if (r == hipSuccess)
        *out = (hipMemPool_t)default_pool[device];
    return r;
}

hipError_t soft_hipDeviceGetMemPool(hipMemPool_t *out, int device) {
    pthread_once(&once, prepare);
    if (!out)
        return hipErrorInvalidValue;
    if (soft_check_device(device) != hipSuccess)
        return hipErrorInvalidValue; /* the error that ROCm returns here */
    *out = (hipMemPool_t)atomic_load(&current_pool[device]);
    return hipSuccess;
}

hipError_t soft_hipDeviceSetMemPool(int device, hipMemPool_t handle) {
    struct mempool *p = resolve(handle);
    if (soft_check_device(device) != hipSuccess || !p || p->device != device)
        return hipErrorInvalidValue;
    atomic_store(&current_pool[device], p);
    return hipSuccess;
}
