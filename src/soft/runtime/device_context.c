/* device_context.c - peer access, and the contexts of the driver API.
 *
 * HIP has one context per device, the primary one; the hipCtx functions only hand it out and keep a
 * stack per thread. A handle is the address of the device's entry in `contexts`. Thread-safe. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "soft/runtime/device.h"
#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"

struct ihipCtx_t {
    _Atomic unsigned retained;
};
static struct ihipCtx_t contexts[SOFT_DEVICES_MAX];

/* enabled[a][b]: kernels of device a may touch memory of device b. */
static _Atomic bool enabled[SOFT_DEVICES_MAX][SOFT_DEVICES_MAX];

/* A thread's stack of contexts: each with the device that was current before, to return to. On the
 * heap, because thread-local storage of a library that may be opened late is scarce. */
enum { CONTEXT_STACK = 128 };
struct stack {
    int depth;
    struct {
        int device, before;
    } at[CONTEXT_STACK];
};
static _Thread_local struct stack *stack;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void) {
    pthread_key_create(&key, free);
}

/* ---- peers --------------------------------------------------------------------------------- */

/* Any two different devices reach each other. */
hipError_t soft_hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId) {
    if (!canAccessPeer)
        return hipErrorInvalidValue;
    if (soft_check_device(deviceId) != hipSuccess || soft_check_device(peerDeviceId) != hipSuccess)
        return hipErrorInvalidDevice;
    *canAccessPeer = deviceId != peerDeviceId;
    return hipSuccess;
}

static hipError_t check_peer(int peer) {
    int can = 0;
    hipError_t r = soft_hipDeviceCanAccessPeer(&can, soft_current_device(), peer);
    return r == hipSuccess && can ? hipSuccess : hipErrorInvalidDevice;
}

hipError_t soft_hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags) {
    if (flags)
        return hipErrorInvalidValue;
    hipError_t r = check_peer(peerDeviceId);
    if (r != hipSuccess)
        return r;
    bool before = atomic_exchange(&enabled[soft_current_device()][peerDeviceId], true);
    return before ? hipErrorPeerAccessAlreadyEnabled : hipSuccess;
}

hipError_t soft_hipDeviceDisablePeerAccess(int peerDeviceId) {
    hipError_t r = check_peer(peerDeviceId);
    if (r != hipSuccess)
        return r;
    bool before = atomic_exchange(&enabled[soft_current_device()][peerDeviceId], false);
    return before ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

hipError_t soft_hipDeviceGetP2PAttribute(int *value, hipDeviceP2PAttr attr, int srcDevice,
                                         int dstDevice) {
    if (!value)
        return hipErrorInvalidValue;
    if (srcDevice == dstDevice || soft_check_device(srcDevice) != hipSuccess ||
        soft_check_device(dstDevice) != hipSuccess)
        return hipErrorInvalidDevice;
    switch (attr) {
    case hipDevP2PAttrPerformanceRank:
        *value = 0;
        return hipSuccess;
    case hipDevP2PAttrAccessSupported:
    case hipDevP2PAttrNativeAtomicSupported:
        *value = 1;
        return hipSuccess;
    case hipDevP2PAttrHipArrayAccessSupported:
        *value = 0;
        return hipSuccess;
    }
    return hipErrorInvalidValue;
}

hipError_t soft_hipExtGetLinkTypeAndHopCount(int device1, int device2, uint32_t *linktype,
                                             uint32_t *hopcount) {
    if (!linktype || !hopcount || device1 == device2 || device1 < 0 || device2 < 0)
        return hipErrorInvalidValue;
    if (soft_check_device(device1) != hipSuccess || soft_check_device(device2) != hipSuccess)
        return hipErrorInvalidDevice;
    *linktype = 2; /* HSA's number for PCIe */
    *hopcount = 1;
    return hipSuccess;
}

/* ---- contexts ------------------------------------------------------------------------------ */

/* The device of a handle, or -1. */
static int context_device(hipCtx_t ctx) {
    for (unsigned i = 0; i < soft_settings()->devices; i++)
        if (ctx == &contexts[i])
            return (int)i;
    return -1;
}

static hipError_t push(int device) {
    pthread_once(&once, make_key);
    if (!stack) {
        stack = calloc(1, sizeof *stack);
        pthread_setspecific(key, stack);
    }
    if (!stack || stack->depth == CONTEXT_STACK)
        return hipErrorOutOfMemory;
    stack->at[stack->depth].device = device;
    stack->at[stack->depth++].before = soft_current_device();
    soft_set_current_device(device);
    return hipSuccess;
}

/* The device of the context on top, or -1. */
static int top(void) {
    return stack && stack->depth ? stack->at[stack->depth - 1].device : -1;
}

static void pop(void) {
    soft_set_current_device(stack->at[--stack->depth].before);
}

hipError_t soft_hipCtxCreate(hipCtx_t *ctx, unsigned int flags, hipDevice_t device) {
    (void)flags; /* HIP ignores them but for hipGetDeviceFlags */
    if (!ctx || soft_check_device(device) != hipSuccess)
        return hipErrorInvalidValue;
    hipError_t r = push(device);
    if (r != hipSuccess)
        return r;
    atomic_fetch_add(&contexts[device].retained, 1);
    *ctx = &contexts[device];
    return hipSuccess;
}

static void release(int device) {
    unsigned n = atomic_load(&contexts[device].retained);
    while (n && !atomic_compare_exchange_weak(&contexts[device].retained, &n, n - 1))
        ;
}

hipError_t soft_hipCtxDestroy(hipCtx_t ctx) {
    if (!ctx)
        return hipErrorInvalidValue;
    int device = context_device(ctx);
    if (device < 0)
        return hipErrorInvalidContext;
    if (top() == device)
        pop();
    release(device);
    return hipSuccess;
}

hipError_t soft_hipCtxPushCurrent(hipCtx_t ctx) {
    int device = context_device(ctx);
    return device < 0 ? hipErrorInvalidContext : push(device);
}

hipError_t soft_hipCtxPopCurrent(hipCtx_t *ctx) {
    if (top() < 0)
        return hipErrorInvalidContext;
    if (ctx)
        *ctx = &contexts[top()];
    pop();
    return hipSuccess;
}

/* NULL takes the top of the stack away; a context replaces it. */
hipError_t soft_hipCtxSetCurrent(hipCtx_t ctx) {
    int device = context_device(ctx);
    if (ctx && device < 0)
        return hipErrorInvalidContext;
    if (top() >= 0)
        pop();
    return ctx ? push(device) : hipSuccess;
}

hipError_t soft_hipCtxGetCurrent(hipCtx_t *ctx) {
    if (!ctx)
        return hipErrorInvalidValue;
    *ctx = &contexts[soft_current_device()];
    return hipSuccess;
}

hipError_t soft_hipCtxGetDevice(hipDevice_t *device) {
    return soft_hipGetDevice(device);
}

hipError_t soft_hipCtxGetApiVersion(hipCtx_t ctx, int *apiVersion) {
    if (!apiVersion)
        return hipErrorInvalidValue;
    if (ctx && context_device(ctx) < 0)
        return hipErrorInvalidContext;
    *apiVersion = 4;
    return hipSuccess;
}

hipError_t soft_hipCtxGetCacheConfig(hipFuncCache_t *cacheConfig) {
    return soft_hipDeviceGetCacheConfig(cacheConfig);
}

hipError_t soft_hipCtxSetCacheConfig(hipFuncCache_t cacheConfig) {
    return soft_hipDeviceSetCacheConfig(cacheConfig);
}

hipError_t soft_hipCtxSetSharedMemConfig(hipSharedMemConfig config) {
    return soft_hipDeviceSetSharedMemConfig(config);
}

hipError_t soft_hipCtxGetSharedMemConfig(hipSharedMemConfig *pConfig) {
    return soft_hipDeviceGetSharedMemConfig(pConfig);
}

hipError_t soft_hipCtxSynchronize(void) {
    return soft_hipDeviceSynchronize();
}

hipError_t soft_hipCtxGetFlags(unsigned int *flags) {
    return soft_hipGetDeviceFlags(flags);
}

hipError_t soft_hipCtxEnablePeerAccess(hipCtx_t peerCtx, unsigned int flags) {
    int device = context_device(peerCtx);
    return device < 0 ? hipErrorInvalidContext : soft_hipDeviceEnablePeerAccess(device, flags);
}

hipError_t soft_hipCtxDisablePeerAccess(hipCtx_t peerCtx) {
    int device = context_device(peerCtx);
    return device < 0 ? hipErrorInvalidContext : soft_hipDeviceDisablePeerAccess(device);
}

/* Active: somebody holds the context, or there is memory on the device. */
hipError_t soft_hipDevicePrimaryCtxGetState(hipDevice_t dev, unsigned int *flags, int *active) {
    hipError_t r = soft_check_device(dev);
    if (r != hipSuccess)
        return r;
    uint64_t free_bytes = 0, total = 0;
    soft_memory_info(dev, &free_bytes, &total);
    if (flags)
        *flags = 0;
    if (active)
        *active = atomic_load(&contexts[dev].retained) || free_bytes < total;
    return hipSuccess;
}

hipError_t soft_hipDevicePrimaryCtxRetain(hipCtx_t *pctx, hipDevice_t dev) {
    hipError_t r = soft_check_device(dev);
    if (r != hipSuccess)
        return r;
    if (!pctx)
        return hipErrorInvalidValue;
    atomic_fetch_add(&contexts[dev].retained, 1);
    *pctx = &contexts[dev];
    return hipSuccess;
}

hipError_t soft_hipDevicePrimaryCtxRelease(hipDevice_t dev) {
    hipError_t r = soft_check_device(dev);
    if (r == hipSuccess)
        release(dev);
    return r;
}

/* ROCm leaves the device alone here; hipDeviceReset is the call that resets. */
hipError_t soft_hipDevicePrimaryCtxReset(hipDevice_t dev) {
    return soft_check_device(dev);
}

hipError_t soft_hipDevicePrimaryCtxSetFlags(hipDevice_t dev, unsigned int flags) {
    (void)flags;
    hipError_t r = soft_check_device(dev);
    return r == hipSuccess ? hipErrorContextAlreadyInUse : r;
}
