/* device.c - the functions that choose and configure a device.
 *
 * A device is a number: its memory lives in memory.c, its streams in stream.c, its properties in
 * device_property.c. What is kept here is configuration that HIP lets a program set and read back
 * (flags, limits) and that changes nothing on this device. Thread-safe. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "soft/runtime/device.h"
#include "soft/runtime/error.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

/* What hipLimitStackSize may be on gfx90a: a wave's scratch is counted in 13 bits of 256 dwords. */
enum { STACK_DEFAULT = 1024, STACK_MAX = 131056 };
enum { HEAP_DEFAULT = 8 << 20 };

static struct {
    _Atomic unsigned flags;
    _Atomic size_t stack, heap; /* 0: the default */
} config[SOFT_DEVICES_MAX];

hipError_t soft_hipInit(unsigned int flags) {
    return flags ? hipErrorInvalidValue : hipSuccess;
}

/* HIP_VERSION of the release whose ABI the library speaks. */
static hipError_t version(int *out) {
    if (!out)
        return hipErrorInvalidValue;
    int major = soft_hip_major();
    *out = major == 5 ? 50221153 : major == 6 ? 60443483 : 70051831;
    return hipSuccess;
}

hipError_t soft_hipDriverGetVersion(int *driverVersion) {
    return version(driverVersion);
}
hipError_t soft_hipRuntimeGetVersion(int *runtimeVersion) {
    return version(runtimeVersion);
}

/* ---- which device -------------------------------------------------------------------------- */

hipError_t soft_hipGetDeviceCount(int *count) {
    if (!count)
        return hipErrorInvalidValue;
    *count = (int)soft_settings()->devices;
    return *count ? hipSuccess : hipErrorNoDevice;
}

hipError_t soft_hipGetDevice(int *deviceId) {
    if (!deviceId)
        return hipErrorInvalidValue;
    *deviceId = soft_current_device();
    return hipSuccess;
}

hipError_t soft_hipSetDevice(int deviceId) {
    hipError_t r = soft_check_device(deviceId);
    if (r == hipSuccess)
        soft_set_current_device(deviceId);
    return r;
}

hipError_t soft_hipDeviceGet(hipDevice_t *device, int ordinal) {
    hipError_t r = soft_check_device(ordinal);
    if (r != hipSuccess)
        return r;
    if (!device)
        return hipErrorInvalidValue;
    *device = ordinal;
    return hipSuccess;
}

hipError_t soft_hipSetValidDevices(int *device_arr, int len) {
    int count = (int)soft_settings()->devices;
    if (len < 0 || len > count || (len && !device_arr))
        return hipErrorInvalidValue;
    for (int i = 0; i < len; i++)
        if (soft_check_device(device_arr[i]) != hipSuccess)
            return hipErrorInvalidDevice;
    return hipErrorNotSupported; /* as in ROCm: the list would be ignored */
}

/* ---- what kind of device ------------------------------------------------------------------- */

hipError_t soft_hipDeviceGetName(char *name, int len, hipDevice_t device) {
    hipError_t r = soft_check_device(device);
    if (r != hipSuccess)
        return r;
    if (!name || len <= 0)
        return hipErrorInvalidValue;
    soft_device_name(name, (size_t)len);
    return hipSuccess;
}

hipError_t soft_hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
    hipError_t r = soft_check_device(device);
    if (r != hipSuccess)
        return r;
    if (!uuid)
        return hipErrorInvalidValue;
    soft_device_uuid(device, uuid);
    return hipSuccess;
}

hipError_t soft_hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
    hipDeviceProp_tR0600 p;
    hipError_t r = soft_hipGetDevicePropertiesR0600(&p, device);
    if (r != hipSuccess)
        return r;
    if (!major || !minor)
        return hipErrorInvalidValue;
    *major = p.major;
    *minor = p.minor;
    return hipSuccess;
}

hipError_t soft_hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
    hipError_t r = soft_check_device(device);
    if (r != hipSuccess)
        return r;
    if (!bytes)
        return hipErrorInvalidValue;
    *bytes = soft_settings()->memory;
    return hipSuccess;
}

/* "0000:01:00.0": 12 characters. HIP writes what fits and says that it did not. */
hipError_t soft_hipDeviceGetPCIBusId(char *pciBusId, int len, int device) {
    hipDeviceProp_tR0600 p;
    hipError_t r = soft_hipGetDevicePropertiesR0600(&p, device);
    if (r != hipSuccess)
        return r;
    if (!pciBusId || len <= 0)
        return hipErrorInvalidValue;
    int n = snprintf(pciBusId, (size_t)len, "%04x:%02x:%02x.0", (unsigned)p.pciDomainID,
                     (unsigned)p.pciBusID, (unsigned)p.pciDeviceID);
    return n < len ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipDeviceGetByPCIBusId(int *device, const char *pciBusId) {
    unsigned domain, bus, slot, function;
    if (!device || !pciBusId)
        return hipErrorInvalidValue;
    if (sscanf(pciBusId, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) != 4)
        return hipErrorInvalidValue;
    for (unsigned i = 0; i < soft_settings()->devices; i++) {
        hipDeviceProp_tR0600 p;
        if (soft_hipGetDevicePropertiesR0600(&p, (int)i) == hipSuccess &&
            (unsigned)p.pciDomainID == domain && (unsigned)p.pciBusID == bus &&
            (unsigned)p.pciDeviceID == slot && function == 0) {
            *device = (int)i;
            return hipSuccess;
        }
    }
    return hipErrorInvalidValue;
}

/* ---- configuration ------------------------------------------------------------------------- */

hipError_t soft_hipGetDeviceFlags(unsigned int *flags) {
    if (!flags)
        return hipErrorInvalidValue;
    *flags = atomic_load(&config[soft_current_device()].flags);
    return hipSuccess;
}

hipError_t soft_hipSetDeviceFlags(unsigned int flags) {
    unsigned resize =
        soft_hip_major() == 5 ? HIP5_DEVICE_LMEM_RESIZE_TO_MAX : hipDeviceLmemResizeToMax;
    unsigned schedule = flags & hipDeviceScheduleMask;
    if (flags & ~(hipDeviceScheduleMask | hipDeviceMapHost | resize))
        return hipErrorInvalidValue;
    if (schedule & (schedule - 1)) /* at most one of spin, yield, block */
        return hipErrorInvalidValue;
    atomic_store(&config[soft_current_device()].flags, schedule);
    return hipSuccess;
}

hipError_t soft_hipDeviceGetLimit(size_t *pValue, enum hipLimit_t limit) {
    if (!pValue || (unsigned)limit > hipLimitMallocHeapSize)
        return hipErrorInvalidValue;
    int device = soft_current_device();
    size_t set;
    switch (limit) {
    case hipLimitStackSize:
        set = atomic_load(&config[device].stack);
        *pValue = set ? set : STACK_DEFAULT;
        return hipSuccess;
    case hipLimitMallocHeapSize:
        set = atomic_load(&config[device].heap);
        *pValue = set ? set : HEAP_DEFAULT;
        return hipSuccess;
    default:
        return hipErrorUnsupportedLimit;
    }
}

hipError_t soft_hipDeviceSetLimit(enum hipLimit_t limit, size_t value) {
    if ((unsigned)limit > hipLimitMallocHeapSize)
        return hipErrorInvalidValue;
    int device = soft_current_device();
    switch (limit) {
    case hipLimitStackSize:
        if (!value || value > STACK_MAX)
            return hipErrorInvalidValue;
        atomic_store(&config[device].stack, value);
        return hipSuccess;
    case hipLimitMallocHeapSize:
        if (!value || value > soft_settings()->memory)
            return hipErrorInvalidValue;
        atomic_store(&config[device].heap, value);
        return hipSuccess;
    default:
        return hipErrorUnsupportedLimit;
    }
}

static bool is_cache_config(hipFuncCache_t c) {
    return (unsigned)c <= hipFuncCachePreferEqual;
}

/* There is one cache configuration on AMD's devices: it can be set, to no effect. */
hipError_t soft_hipDeviceSetCacheConfig(hipFuncCache_t cacheConfig) {
    return is_cache_config(cacheConfig) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipDeviceGetCacheConfig(hipFuncCache_t *cacheConfig) {
    if (!cacheConfig)
        return hipErrorInvalidValue;
    *cacheConfig = hipFuncCachePreferNone;
    return hipSuccess;
}

hipError_t soft_hipDeviceSetSharedMemConfig(hipSharedMemConfig config_) {
    return (unsigned)config_ <= hipSharedMemBankSizeEightByte ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipDeviceGetSharedMemConfig(hipSharedMemConfig *pConfig) {
    if (!pConfig)
        return hipErrorInvalidValue;
    *pConfig = hipSharedMemBankSizeFourByte;
    return hipSuccess;
}

hipError_t soft_hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    if (leastPriority)
        *leastPriority = SOFT_PRIORITY_LEAST;
    if (greatestPriority)
        *greatestPriority = SOFT_PRIORITY_GREATEST;
    return hipSuccess;
}
