/* device_property.c - hipDeviceProp_t in both layouts, and the attributes derived from it.
 *
 * device_property.def and device_attribute.def are the two lists. The layout of 6.x is the larger
 * one; attributes and hipChooseDevice are answered from it. Pure functions; thread-safe. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "soft/runtime/device.h"
#include "soft/runtime/error.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

void soft_device_uuid(int device, hipUUID *out) {
    char text[sizeof out->bytes + 1];
    snprintf(text, sizeof text, "gretasoft%07u", soft_settings()->visible[device] % 10000000u);
    memcpy(out->bytes, text, sizeof out->bytes);
}

int soft_device_name(char *out, size_t size) {
    return snprintf(out, size, "greta software device (%s)",
                    soft_arch_info(soft_settings()->arch)->product);
}

/* Bus 0 is the host bridge's on real machines. */
static int device_bus(int device) {
    return (int)soft_settings()->visible[device] + 1;
}

/* The figures that are the same expression in both layouts. */
#define PROP_VARIABLES                                                                             \
    const size_t memory = soft_settings()->memory;                                                 \
    const struct soft_arch_info *gpu = soft_arch_info(soft_settings()->arch);                      \
    const int bus = device_bus(device)

hipError_t soft_hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *prop, int deviceId) {
    const int device = deviceId;
    if (!prop)
        return hipErrorInvalidValue;
    if (soft_check_device(device) != hipSuccess)
        return hipErrorInvalidDevice;
    PROP_VARIABLES;
    memset(prop, 0, sizeof *prop);
    soft_device_name(prop->name, sizeof prop->name);
    strcpy(prop->gcnArchName, gpu->target);
    soft_device_uuid(device, &prop->uuid);
#define PROP(field, value) prop->field = value;
#define PROP5(field, value)
#define PROP6(field, value) prop->field = value;
#include "soft/runtime/device_property.def"
#undef PROP
#undef PROP5
#undef PROP6
    return hipSuccess;
}

hipError_t soft_hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *prop, int device) {
    if (!prop)
        return hipErrorInvalidValue;
    if (soft_check_device(device) != hipSuccess)
        return hipErrorInvalidDevice;
    PROP_VARIABLES;
    memset(prop, 0, sizeof *prop);
    soft_device_name(prop->name, sizeof prop->name);
    strcpy(prop->gcnArchName, gpu->target);
#define PROP(field, value)  prop->field = value;
#define PROP5(field, value) prop->field = value;
#define PROP6(field, value)
#include "soft/runtime/device_property.def"
#undef PROP
#undef PROP5
#undef PROP6
    return hipSuccess;
}

/* The unversioned symbol is the old layout in every release. */
hipError_t soft_hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId) {
    return soft_hipGetDevicePropertiesR0000(prop, deviceId);
}

static int cut(size_t value) {
    return value > INT_MAX ? INT_MAX : (int)value;
}

hipError_t soft_hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId) {
    if (!pi)
        return hipErrorInvalidValue;
    hipDeviceProp_tR0600 p;
    hipError_t r = soft_hipGetDevicePropertiesR0600(&p, deviceId);
    if (r != hipSuccess)
        return r;
    bool old = soft_hip_major() == 5;
    switch ((unsigned)attr) {
#define ATTRIBUTE(name, value)                                                                     \
    case hipDeviceAttribute##name:                                                                 \
        *pi = cut((size_t)(value));                                                                \
        return hipSuccess;
#define ATTRIBUTE5(name, value)                                                                    \
    case hipDeviceAttribute##name:                                                                 \
        if (!old)                                                                                  \
            return hipErrorInvalidValue;                                                           \
        *pi = value;                                                                               \
        return hipSuccess;
#include "soft/runtime/device_attribute.def"
#undef ATTRIBUTE
#undef ATTRIBUTE5
    default:
        return hipErrorInvalidValue;
    }
}

/* HIP's rule: of the devices that have at least as much as asked of everything that was asked, the
 * first; device 0 if none has. All software devices are alike, so that the answer is 0 always, and
 * what remains is to check the arguments. */
hipError_t soft_hipChooseDeviceR0600(int *device, const hipDeviceProp_tR0600 *prop) {
    if (!device || !prop)
        return hipErrorInvalidValue;
    *device = 0;
    return hipSuccess;
}

hipError_t soft_hipChooseDeviceR0000(int *device, const hipDeviceProp_tR0000 *prop) {
    if (!device || !prop)
        return hipErrorInvalidValue;
    *device = 0;
    return hipSuccess;
}

hipError_t soft_hipChooseDevice(int *device, const hipDeviceProp_t *prop) {
    return soft_hipChooseDeviceR0000(device, prop);
}
